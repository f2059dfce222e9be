"""The word nodes of windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.inputs.batches import Batch
from onoma.systems.nerco.lattice import WordNodes, pad_nodes, word_nodes
from onoma.text import segment
from onoma.text.lexicon import Lexicon

LEXICON = Lexicon(["南京", "南京市", "市长", "长江", "长江大桥", "大桥", "ab", "b1", "at&t", "苹果 公司"])
PARTS = ("南京", "市", "长江", "大桥", "ab", "b1", "at&t", " ", "苹果", "公司", "，", "在", "a", "大橋")
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)

Node = tuple[int, int, int, str]


def batch_of(windows: list[tuple[str, int, int]]) -> Batch:
    """A batch of windows: their texts, first words, and words after the last."""
    words = [segment(text)[first:end] for text, first, end in windows]
    none = np.zeros((len(windows), 0), np.int64)
    counts = np.array([len(offsets) for offsets in words], np.int64)
    return Batch(none, none, none, none, counts, [text for text, _, _ in windows], words)


def whole(*texts: str) -> Batch:
    return batch_of([(text, 0, len(text)) for text in texts])


def rows(nodes: WordNodes) -> list[Node]:
    window, first, last, word = (column.tolist() for column in nodes)
    return list(zip(window, first, last, map(LEXICON.__getitem__, word), strict=True))


def obvious_rows(batch: Batch) -> list[Node]:
    """Try all runs of words."""
    known = set(LEXICON.words)
    return [
        (window, first, last, folded)
        for window, (text, offsets) in enumerate(zip(batch.texts, batch.offsets, strict=True))
        for first in range(len(offsets))
        for last in range(first, len(offsets))
        if (folded := text[offsets[first, 0] : offsets[last, 1]].replace("橋", "桥")) in known
    ]


def test_nodes_have_words_of_their_window() -> None:
    assert rows(word_nodes(LEXICON, whole("去南京市长江大桥", "", "苹果 公司"))) == [
        (0, 1, 2, "南京"),
        (0, 1, 3, "南京市"),
        (0, 3, 4, "市长"),
        (0, 4, 5, "长江"),
        (0, 4, 7, "长江大桥"),
        (0, 6, 7, "大桥"),
        (2, 0, 3, "苹果 公司"),
    ]


def test_latin_words_are_matched_whole() -> None:
    assert rows(word_nodes(LEXICON, whole("ab、xab、ab1、AT&T"))) == [(0, 0, 0, "ab"), (0, 6, 8, "at&t")]


def test_a_window_sees_only_its_own_words() -> None:
    text = "南京市长江大桥"
    windows = batch_of([(text, 0, 4), (text, 3, 6), (text, 2, 2)])
    assert rows(word_nodes(LEXICON, windows)) == [
        (0, 0, 1, "南京"),
        (0, 0, 2, "南京市"),
        (0, 2, 3, "市长"),
        (1, 0, 1, "长江"),
    ]


@given(st.lists(st.tuples(TEXTS, st.integers(0, 5), st.integers(0, 30)), max_size=5))
def test_the_same_nodes_are_found_by_trying_all_runs_of_words(windows: list[tuple[str, int, int]]) -> None:
    batch = batch_of(windows)
    nodes = word_nodes(LEXICON, batch)
    assert rows(nodes) == obvious_rows(batch)
    assert [column.dtype for column in nodes] == [np.int64] * 4


@given(st.lists(TEXTS, max_size=5), st.integers(0, 4))
def test_the_longest_nodes_of_each_window_stay(texts: list[str], max_nodes: int) -> None:
    batch = whole(*texts)
    expected: list[Node] = []
    for window in range(len(texts)):
        nodes = [node for node in obvious_rows(batch) if node[0] == window]
        expected += sorted(sorted(nodes, key=lambda node: (node[1] - node[2], node[1]))[:max_nodes])
    assert rows(word_nodes(LEXICON, batch, max_nodes)) == expected


@given(st.lists(TEXTS, max_size=5))
def test_padded_nodes_are_the_nodes_of_each_window(texts: list[str]) -> None:
    nodes = word_nodes(LEXICON, whole(*texts))
    padded = pad_nodes(nodes, len(texts))
    for window in range(len(texts)):
        own = nodes.window == window
        assert padded.counts[window] == own.sum()
        for column, flat in ((padded.first, nodes.first), (padded.last, nodes.last), (padded.word, nodes.word)):
            assert column[window, : own.sum()].tolist() == flat[own].tolist()
            assert not column[window, own.sum() :].any()
    assert padded.first.shape == padded.last.shape == padded.word.shape
    assert padded.first.shape == (len(texts), padded.counts.max(initial=0))


@pytest.mark.parametrize("windows", [0, 3])
def test_no_nodes_become_empty_rows(windows: int) -> None:
    padded = pad_nodes(word_nodes(LEXICON, whole(*["无"] * windows)), windows)
    assert padded.word.shape == (windows, 0)
    assert padded.counts.tolist() == [0] * windows
