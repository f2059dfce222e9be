"""Overlapping mentions, against a comparison of all pairs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.data.overlaps import Overlaps, count_overlaps, first_overlap
from onoma.entities import Entity

SPANS = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5)), max_size=12)


def entity(start: int, end: int, label: str = "x") -> Entity:
    return Entity(start, end, "." * (end - start), label)


def kind(a: Entity, b: Entity) -> str:
    if (a.start, a.end) == (b.start, b.end):
        return "same span"
    if (a.start <= b.start and b.end <= a.end) or (b.start <= a.start and a.end <= b.end):
        return "nested"
    return "crossing" if a.start < b.end and b.start < a.end else "apart"


@settings(max_examples=300)
@given(SPANS)
def test_counts_equal_those_of_comparing_all_pairs(spans: list[tuple[int, int]]) -> None:
    entities = [entity(start, start + length) for start, length in spans]
    kinds = [kind(a, b) for a, b in combinations(entities, 2)]
    assert count_overlaps(entities) == Overlaps(
        kinds.count("nested"), kinds.count("crossing"), kinds.count("same span")
    )


@settings(max_examples=300)
@given(SPANS)
def test_a_pair_is_found_exactly_if_there_is_one(spans: list[tuple[int, int]]) -> None:
    entities = [entity(start, start + length) for start, length in spans]
    kinds = {kind(a, b) for a, b in combinations(entities, 2)}
    any_pair = first_overlap(entities)
    assert (any_pair is not None) == bool(kinds - {"apart"})
    assert any_pair is None or kind(*any_pair) != "apart"
    nested = first_overlap(entities, lambda left, right: right.end <= left.end)
    assert (nested is not None) == bool(kinds & {"nested", "same span"})
    assert nested is None or kind(*nested) in ("nested", "same span")
    crossing = first_overlap(entities, lambda left, right: right.end > left.end)
    assert (crossing is not None) == ("crossing" in kinds)
    assert crossing is None or kind(*crossing) == "crossing"


@pytest.mark.parametrize("reverse", [False, True])
def test_the_outer_mention_comes_first_whatever_the_order(reverse: bool) -> None:
    inner, outer = entity(0, 4), entity(0, 9)
    entities = [inner, entity(20, 25), outer]
    assert first_overlap(reversed(entities) if reverse else entities) == (outer, inner)


def test_many_mentions_do_not_take_quadratic_time() -> None:
    entities = [entity(start, start + 3) for start in range(200_000)]
    assert count_overlaps(entities) == Overlaps(0, 199_999 + 199_998, 0)
    assert first_overlap(entities, lambda left, right: right.end <= left.end) is None
