from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import OnomaError
from onoma.decoding import Overlap, resolve_overlaps

Row = tuple[int, int, int, float]  # start, end, rank of the label, score
ROW = st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(0, 2), st.sampled_from([0.1, 0.2, 0.5, 0.9])).map(
    lambda row: (row[0], row[0] + row[1], row[2], row[3])
)
OVERLAP: st.SearchStrategy[Overlap] = st.sampled_from(["flat", "nested", "any"])


def conflict(a: Row, b: Row, overlap: Overlap) -> bool:
    """Whether two different spans exclude each other, by definition."""
    if overlap == "flat":
        return a[0] < b[1] and b[0] < a[1]
    return overlap == "nested" and (a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1])


def obvious_resolution(rows: list[Row], overlap: Overlap, several_labels: bool) -> list[Row]:
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: (-row[3], row[0], row[1], row[2])):
        same = [other for other in kept if other[:2] == row[:2]]
        if same:
            if several_labels and row[2] not in {other[2] for other in same}:
                kept.append(row)
        elif not any(conflict(row, other, overlap) for other in kept):
            kept.append(row)
    return sorted(kept)


@given(st.lists(ROW, max_size=25), OVERLAP, st.booleans())
def test_resolution_agrees_with_plain_loops(rows: list[Row], overlap: Overlap, several_labels: bool) -> None:
    columns = np.array(rows, float).reshape(-1, 4).T
    kept = resolve_overlaps(*columns, overlap=overlap, several_labels=several_labels)
    assert [rows[i] for i in kept] == obvious_resolution(rows, overlap, several_labels)


@pytest.mark.parametrize("overlap", ["flat", "nested"])
def test_resolution_agrees_with_plain_loops_over_several_batches(overlap: Overlap) -> None:
    generator = np.random.default_rng(0)
    start = generator.integers(0, 9_000, 12_000)
    rows = list(zip(start, start + generator.integers(1, 9, 12_000), start * 0, generator.random(12_000), strict=True))
    kept = {rows[i] for i in resolve_overlaps(*np.array(rows).T, overlap=overlap)}
    by_place: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: -row[3]):  # only near spans can be in conflict
        near = [other for place in range(row[0] - 9, row[0] + 10) for other in by_place.get(place, ())]
        excluded = any(row[:2] == other[:2] or conflict(row, other, overlap) for other in near)
        assert (row in kept) == (not excluded)
        if not excluded:
            by_place.setdefault(row[0], []).append(row)


@given(st.lists(st.tuples(st.integers(0, 3), ROW), max_size=25), OVERLAP)
def test_documents_in_one_call_do_not_influence_each_other(rows: list[tuple[int, Row]], overlap: Overlap) -> None:
    group = [document for document, _ in rows]
    columns = np.array([row for _, row in rows], float).reshape(-1, 4).T
    together = [rows[i] for i in resolve_overlaps(*columns, overlap=overlap, group=group)]
    apart = [(d, row) for d in range(4) for row in obvious_resolution([r for g, r in rows if g == d], overlap, False)]
    assert together == apart


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(OnomaError, match="flat, nested, any"):
        resolve_overlaps([0], [1], [0], [0.5], overlap="crossing")  # type: ignore[arg-type]
