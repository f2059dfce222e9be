"""The matching in numpy against a loop over all spans and types, and against the PyTorch model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel

from onoma.decoding import Proposals
from onoma.systems.binder import matching
from onoma.systems.binder.matching import IMPOSSIBLE, Parts, match
from onoma.systems.binder.model import Binder, TextVectors, TypeVectors
from onoma.systems.binder.options import BinderOptions

Spans = dict[tuple[int, int, int, int], float]
SIZE = 6


class Case(NamedTuple):
    """l and r of the words of all windows, d and e, thresholds, and where spans may start and end."""

    counts: Sequence[int]
    left: np.ndarray
    right: np.ndarray
    width: np.ndarray
    types: np.ndarray
    threshold: np.ndarray
    may_start: np.ndarray  # (words, types)
    may_end: np.ndarray

    def match(self, floor: float) -> Proposals:
        beyond = np.full((len(self.width) - 1, len(self.types)), 7.0, np.float32)
        parts = Parts(
            self.left,
            self.right,
            np.where(self.may_start, self.left @ self.types.T, IMPOSSIBLE),
            np.concatenate([np.where(self.may_end, self.right @ self.types.T, IMPOSSIBLE), beyond]),
            self.left @ self.width.T,
            self.right @ self.width.T,
            self.types @ self.width.T,
            self.width,
        )
        return match(parts, np.array(self.counts, np.int64), self.threshold, floor)


def random_case(counts: Sequence[int], widths: int, types: int, seed: int, passing: float = 1.0) -> Case:
    """`passing` is the share of words at which spans may start or end."""
    generator = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return generator.normal(size=shape).astype(np.float32)

    words = sum(counts)
    may = generator.random((2, words, types)) < passing
    vectors = draw(words, SIZE), draw(words, SIZE), draw(widths, SIZE), draw(types, SIZE) * 4
    return Case(counts, *vectors, draw(len(counts), types) + 2, *may)


def slow(case: Case, floor: float) -> Spans:
    found = {}
    begin = 0
    for window, count in enumerate(case.counts):
        for first in range(count):
            for last in range(first, min(count, first + len(case.width))):
                vector = case.left[begin + first] + case.right[begin + last] + case.width[last - first]
                vector = vector / np.linalg.norm(vector)
                for kind, one in enumerate(case.types):
                    margin = float(vector @ one) - float(case.threshold[window, kind])
                    if case.may_start[begin + first, kind] and case.may_end[begin + last, kind] and margin >= floor:
                        found[window, first, last, kind] = margin
        begin += count
    return found


def as_dict(found: Proposals) -> Spans:
    rows = [tuple(row) for row in np.stack(found[:4], axis=1).tolist()]
    assert len(set(rows)) == len(rows)  # no duplicates
    return dict(zip(rows, found.score.tolist(), strict=True))


def assert_same(found: Spans, expected: Spans, floor: float) -> None:
    """The same spans, except for those that reach or miss the floor because of rounding alone."""
    borderline = {span for span, margin in (found | expected).items() if abs(margin - floor) < 1e-4}
    assert found.keys() - borderline == expected.keys() - borderline
    for span in found.keys() & expected.keys():
        assert found[span] == pytest.approx(expected[span], abs=1e-4)


counts = st.lists(st.integers(0, 9), max_size=4)
margins = st.sampled_from([-np.inf, -3.0, 0.0, 1.5, np.inf])


@given(counts, st.integers(1, 6), st.integers(0, 5), margins, st.sampled_from([1.0, 0.5]), st.integers(0, 99))
@settings(max_examples=80)
def test_spans_are_those_of_a_loop_over_all_spans(
    counts: list[int], widths: int, types: int, floor: float, passing: float, seed: int
) -> None:
    case = random_case(counts, widths, types, seed, passing)
    assert_same(as_dict(case.match(floor)), slow(case, floor), floor)


def test_many_starts_are_computed_in_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case([7, 3], 4, 40, 0)
    whole = as_dict(case.match(0.5))
    monkeypatch.setattr(matching, "_STARTS_AT_ONCE", 5)
    assert as_dict(case.match(0.5)) == whole
    assert len(whole) > 50


def test_types_that_cannot_reach_the_floor_are_excluded_before_spans_are_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = random_case([12, 12], 5, 30, 0)
    case.threshold[:, 1:] = 100.0
    computed = []
    spans = matching._Words.spans

    def count(self: Any, starts: Any, *widths: Any) -> Proposals:
        computed.extend(starts.tolist())
        return spans(self, starts, *widths)

    monkeypatch.setattr(matching._Words, "spans", count)
    assert set(case.match(0.0).type.tolist()) == {0}
    assert 0 < len(computed) <= 3 * 24  # for each of three groups of widths


@pytest.mark.parametrize("inference", ["span", "joint"])
def test_results_are_those_of_the_pytorch_model(inference: Any) -> None:
    torch.manual_seed(0)
    tiny = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    encoder = BertModel(BertConfig(vocab_size=9, max_position_embeddings=16, **tiny))
    model = Binder(encoder, None, BinderOptions(vector_size=SIZE, width_size=4, inference=inference), 16)
    counts = torch.tensor([7, 1, 4])
    start, end, left, right = torch.randn(4, 3, 8, SIZE)
    text = TextVectors(*(torch.nn.functional.normalize(x, dim=-1) for x in (start, end)), left, right)
    types = TypeVectors(*torch.randn(3, 5, SIZE) * 5)
    with torch.no_grad():
        sims = model.similarities(text, types, 4)
        margins = model.margins(sims, counts).numpy()  # (windows, types, words, widths)
        width = model.width_vectors(4).numpy()
    exists = np.arange(7) < counts.numpy()[:, None]
    may_start, may_end = (
        (sim >= anchor[..., None]).transpose(1, 2).numpy()[exists] | (inference == "span")
        for sim, anchor in ((sims.start, sims.start_anchor), (sims.end, sims.end_anchor))
    )
    sides = (side[:, 1:].numpy()[exists] for side in (left, right))
    case = Case(counts.tolist(), *sides, width, types.span.numpy(), sims.span_anchor.numpy(), may_start, may_end)
    window, kind, first, spread = np.nonzero(np.isfinite(margins))
    expected = dict(
        zip(zip(window, first, first + spread, kind, strict=True), margins[window, kind, first, spread], strict=True)
    )
    assert expected
    assert_same(as_dict(case.match(-np.inf)), expected, -np.inf)
