"""Scores and margins, and the way from windows to proposals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import EntityType
from onoma.decoding import Proposals
from onoma.inputs.batches import Batch
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.systems.base import margin_of, propose, scores_of


@given(st.floats(0.01, 0.99), st.floats(0.1, 5), st.floats(-3, 3))
def test_margins_are_the_inverse_of_scores(score: float, scale: float, bias: float) -> None:
    config = ModelConfig("binder", scale=scale, bias=bias)
    margin = margin_of(score, config)
    assert float(scores_of(np.array([margin], np.float32), config)[0]) == pytest.approx(score, abs=1e-4)


def test_scores_of_0_and_1_have_infinite_margins() -> None:
    config = ModelConfig("binder", scale=2.0, bias=1.0)
    assert margin_of(0.0, config) == -math.inf
    assert margin_of(1.0, config) == math.inf


@dataclass
class SingleWords:
    """A runtime that proposes every word for every type; scores fall with the type."""

    tokenizer: WordTokenizer
    workers: int = 1
    call_tokens: int | None = None
    backend: str = "none"
    config: ModelConfig = field(default_factory=lambda: ModelConfig("none"))
    labels: None = None
    max_tokens: int = 40
    batches: int = 0

    def ask(self, types: Sequence[EntityType]) -> int:
        return len(types)

    def max_batch_tokens(self, query: int) -> int:
        return self.max_tokens

    def propose(self, batch: Batch, query: int, floor: float) -> Proposals:
        self.batches += 1
        assert len(batch.ids) == 1 or batch.ids.size <= self.max_tokens
        window, word = np.nonzero(np.arange(batch.first.shape[1]) < batch.words[:, None])
        kind = np.tile(np.arange(query), len(word))
        window, word = np.repeat(window, query), np.repeat(word, query)
        found = Proposals(window, word, word, kind, (0.9 - 0.2 * kind).astype(np.float32))
        return found.above(floor)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterable[Any]:
        return map(function, items)

    def with_style(self, corpus: str | None) -> SingleWords:
        return self


@pytest.fixture(scope="module")
def texts(tokenizer: WordTokenizer) -> WindowedTexts:
    """A text of many windows that overlap, an empty one, and a short one."""
    packed = PackedTexts.pack(["Tom flew to Paris . " * 30, "", "Ann sang ."])
    return WindowedTexts.cut(packed, tokenizer, 20, 4)


@pytest.mark.parametrize("workers", [1, 3])
def test_every_word_is_proposed_once(texts: WindowedTexts, tokenizer: WordTokenizer, workers: int) -> None:
    assert len(texts.windows) > 10
    runtime = SingleWords(tokenizer, workers)
    thresholds = np.array([0.5, 0.8], np.float32)  # the second type never reaches its threshold
    found = propose(texts, runtime, 2, thresholds, batch_size=4)
    assert sorted(found.first.tolist()) == list(range(len(texts.packed.words)))
    assert found.first.tolist() == found.last.tolist()
    assert set(found.type.tolist()) == {0}
    assert runtime.batches > 3


def test_only_the_given_windows_are_read(texts: WindowedTexts, tokenizer: WordTokenizer) -> None:
    windows = np.array([2, 3])
    found = propose(texts, SingleWords(tokenizer), 1, np.array([0.5], np.float32), 4, windows)
    start, end = int(texts.windows.start[2]), int(texts.windows.end[3])
    assert set(found.window.tolist()) == {2, 3}
    assert all(start <= word < end for word in found.first.tolist())


def test_without_windows_there_are_no_proposals(tokenizer: WordTokenizer) -> None:
    nothing = WindowedTexts.cut(PackedTexts.pack(["", "  "]), tokenizer, 20, 4)
    assert len(propose(nothing, SingleWords(tokenizer), 1, np.array([0.5], np.float32), 4).score) == 0
