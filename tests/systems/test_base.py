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


class LengthScores(SingleWords):
    """A runtime whose scores depend on the characters of words and on their neighbours."""

    def propose(self, batch: Batch, query: int, floor: float) -> Proposals:
        found = super().propose(batch, query, 0.0)
        ends = [own[:, 1].sum() - own[0, 0] * len(own) for own in batch.offsets]
        score = [
            1 - 1 / (2 + ord(batch.texts[row][batch.offsets[row][word, 0]]) + kind + 10 * ends[row])
            for row, word, kind in zip(*(one.tolist() for one in (found.window, found.first, found.type)), strict=True)
        ]
        return found._replace(score=np.array(score, np.float64))


@pytest.fixture(scope="module")
def texts(tokenizer: WordTokenizer) -> WindowedTexts:
    """A text of many windows that overlap, an empty one, and a short one."""
    long = " ".join(f"Tom flew to Paris {number} ." for number in range(30))
    packed = PackedTexts.pack([long, "", "Ann sang ."])
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


def read_all(texts: WindowedTexts, runtime: SingleWords) -> list[tuple[float, ...]]:
    """Every proposal as a row, in order."""
    found = propose(texts, runtime, 2, np.array([0.5, 0.5], np.float32), batch_size=4)
    return sorted(zip(*(column.tolist() for column in found), strict=True))


def test_windows_with_the_same_words_are_read_once(tokenizer: WordTokenizer) -> None:
    runtime = SingleWords(tokenizer)
    for words in (100, 10_000):
        texts = WindowedTexts.cut(PackedTexts.pack(["😀" * words, "😀 " * words]), tokenizer, 20, 4)
        runtime.batches = 0
        assert [row[1] for row in read_all(texts, runtime)[::2]] == list(range(2 * words))
        assert runtime.batches <= 4  # full windows and the last one, with and without spaces


@given(
    st.lists(st.lists(st.sampled_from(["Tom ", "Tom", "Paris. ", "北", "😀"]), max_size=40).map("".join), max_size=6)
)
def test_equal_windows_have_the_same_proposals_as_if_each_were_read(tokenizer: WordTokenizer, texts: list[str]) -> None:
    windowed = WindowedTexts.cut(PackedTexts.pack(texts), tokenizer, 8, 2)

    class AllDiffer(WindowedTexts):
        def distinct(self, rows: Any) -> Any:
            return np.arange(len(rows)), np.arange(len(rows))

    each = AllDiffer(windowed.packed, windowed.token_ids, windowed.token_edges, windowed.windows)
    runtime = LengthScores(tokenizer)
    assert read_all(windowed, runtime) == read_all(each, runtime)


def test_only_the_given_windows_are_read(texts: WindowedTexts, tokenizer: WordTokenizer) -> None:
    windows = np.array([2, 3])
    found = propose(texts, SingleWords(tokenizer), 1, np.array([0.5], np.float32), 4, windows)
    start, end = int(texts.windows.start[2]), int(texts.windows.end[3])
    assert set(found.window.tolist()) == {2, 3}
    assert all(start <= word < end for word in found.first.tolist())


def test_without_windows_there_are_no_proposals(tokenizer: WordTokenizer) -> None:
    nothing = WindowedTexts.cut(PackedTexts.pack(["", "  "]), tokenizer, 20, 4)
    assert len(propose(nothing, SingleWords(tokenizer), 1, np.array([0.5], np.float32), 4).score) == 0
