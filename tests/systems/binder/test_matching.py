"""The matching in numpy against a loop over all spans and types, and against the PyTorch model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel

from onoma.systems.binder import matching
from onoma.systems.binder.matching import Words, match
from onoma.systems.binder.model import Binder, TextVectors, TypeVectors
from onoma.systems.binder.options import BinderOptions

Spans = dict[tuple[int, int, int, int], float]
SIZE = 6


def random_case(counts: Sequence[int], widths: int, types: int, seed: int) -> tuple[Words, Any, Any, Any]:
    generator = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return generator.normal(size=shape).astype(np.float32)

    words = Words(draw(sum(counts), SIZE), draw(sum(counts), SIZE), np.array(counts, np.int64))
    return words, draw(widths, SIZE), draw(types, SIZE) * 4, draw(len(counts), types)


def slow(words: Words, width: Any, types: Any, threshold: Any, lowest: float, passing: Any = None) -> Spans:
    found = {}
    begin = 0
    for window, count in enumerate(words.counts):
        for first in range(count):
            for last in range(first, min(count, first + len(width))):
                vector = words.left[begin + first] + words.right[begin + last] + width[last - first]
                vector = vector / np.linalg.norm(vector)
                for kind, one in enumerate(types):
                    margin = float(vector @ one) - float(threshold[window, kind])
                    allowed = passing is None or (passing[0][begin + first, kind] and passing[1][begin + last, kind])
                    if allowed and margin >= lowest:
                        found[window, first, last, kind] = margin
        begin += count
    return found


def as_dict(found: matching.Found) -> Spans:
    rows = [tuple(row) for row in np.stack(found[:4], axis=1).tolist()]
    assert len(set(rows)) == len(rows)  # nothing twice
    return dict(zip(rows, found.margin.tolist(), strict=True))


def assert_same(found: Spans, expected: Spans, lowest: float) -> None:
    """The same spans, but for those that miss or reach the limit by rounding alone."""
    doubtful = {span for span, margin in (found | expected).items() if abs(margin - lowest) < 1e-4}
    assert found.keys() - doubtful == expected.keys() - doubtful
    for span in found.keys() & expected.keys():
        assert found[span] == pytest.approx(expected[span], abs=1e-4)


counts = st.lists(st.integers(0, 9), max_size=4)
margins = st.sampled_from([-np.inf, -3.0, 0.0, 1.5, np.inf])


@given(
    counts, st.integers(1, 6), st.integers(0, 5), st.sampled_from([-np.inf, -3.0, 0.0, 1.5, np.inf]), st.integers(0, 99)
)
@settings(max_examples=60)
def test_finds_what_a_loop_over_all_spans_finds(
    counts: list[int], widths: int, types: int, lowest: float, seed: int
) -> None:
    case = random_case(counts, widths, types, seed)
    assert_same(as_dict(match(*case, lowest)), slow(*case, lowest), lowest)


@given(counts, st.integers(1, 4), st.integers(1, 4), st.sampled_from([-np.inf, 0.0]), st.integers(0, 99))
@settings(max_examples=30)
def test_joint_inference_leaves_out_what_does_not_pass(
    counts: list[int], widths: int, types: int, lowest: float, seed: int
) -> None:
    case = random_case(counts, widths, types, seed)
    generator = np.random.default_rng(seed)
    passing = tuple(generator.random((sum(counts), types)) < 0.5 for _ in range(2))
    assert_same(as_dict(match(*case, lowest, passing)), slow(*case, lowest, passing), lowest)  # type: ignore[arg-type]


def test_many_types_in_small_blocks_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case([7, 3], 4, 40, 0)
    whole = as_dict(match(*case, 0.5))
    monkeypatch.setattr(matching, "_PRODUCTS", 30)
    monkeypatch.setattr(matching, "_BEGINNINGS", 5)
    assert as_dict(match(*case, 0.5)) == pytest.approx(whole, abs=1e-5)
    assert whole


def test_types_out_of_reach_are_left_out_before_spans_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    words, width, types, threshold = random_case([12, 12], 5, 30, 0)
    looked_at = []
    spans = matching._Types.spans

    def count(self: Any, line: Any, word: Any, kind: Any) -> Any:
        looked_at.append(len(word))
        return spans(self, line, word, kind)

    monkeypatch.setattr(matching._Types, "spans", count)
    threshold[:, 1:] = 100.0
    found = match(words, width, types, threshold, 0.0)
    assert set(found.type.tolist()) == {0}
    assert 0 < sum(looked_at) <= 24


@pytest.mark.parametrize("inference", ["span", "joint"])
def test_agrees_with_the_model_in_pytorch(inference: Any) -> None:
    torch.manual_seed(0)
    tiny = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    encoder = BertModel(BertConfig(vocab_size=9, max_position_embeddings=16, **tiny))
    model = Binder(encoder, None, BinderOptions(size=SIZE, width_size=4, inference=inference), 16)
    counts = torch.tensor([7, 1, 4])
    start, end, left, right = torch.randn(4, 3, 8, SIZE)
    text = TextVectors(*(torch.nn.functional.normalize(x, dim=-1) for x in (start, end)), left, right)
    types = TypeVectors(*torch.randn(3, 5, SIZE) * 5)
    with torch.no_grad():
        sims = model.similarities(text, types, 4)
        margins = model.margins(sims, counts).numpy()  # (windows, types, words, widths)
        width = model.width_vectors(4).numpy()
    exists = np.arange(7) < counts.numpy()[:, None]
    words = Words(left[:, 1:].numpy()[exists], right[:, 1:].numpy()[exists], counts.numpy())
    passing = tuple(
        (sim >= anchor[..., None]).transpose(1, 2).numpy()[exists]
        for sim, anchor in ((sims.start, sims.start_anchor), (sims.end, sims.end_anchor))
    )
    found = match(
        words,
        width,
        types.span.numpy(),
        sims.span_anchor.numpy(),
        -np.inf,
        passing if inference == "joint" else None,  # type: ignore[arg-type]
    )
    window, kind, first, spread = np.nonzero(np.isfinite(margins))
    expected = dict(
        zip(zip(window, first, first + spread, kind, strict=True), margins[window, kind, first, spread], strict=True)
    )
    assert expected
    assert_same(as_dict(found), expected, -np.inf)
