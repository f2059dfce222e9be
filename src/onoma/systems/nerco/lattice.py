"""The lattice's word nodes: lexicon words in the windows of a batch, with their first and last word (character).

In Chinese text, the words of a window are its characters, so that a node spans the characters of a lexicon word. A
lexicon word that starts or ends inside a word of the window, such as inside a Latin one, is not a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.inputs.batches import Batch
from onoma.text.lexicon import Lexicon
from onoma.text.words import Spans

Integers = NDArray[np.int64]


class WordNodes(NamedTuple):
    """Nodes of several windows, sorted by window, first and last word."""

    window: Integers
    first: Integers  # word of the window
    last: Integers  # word of the window, inclusive
    word: Integers  # of the lexicon


class PaddedNodes(NamedTuple):
    """The nodes of each window: rows of the same length, with zeros behind the nodes."""

    first: Integers  # (windows, nodes)
    last: Integers  # (windows, nodes)
    word: Integers  # (windows, nodes)
    counts: Integers  # (windows,): number of nodes


def word_nodes(lexicon: Lexicon, batch: Batch, max_nodes: int | None = None) -> WordNodes:
    """The lexicon words in the windows of a batch.

    Args:
        max_nodes: nodes of a window at most; the longest ones stay, of equally long ones the first.
    """
    slices = [
        text[int(spans[0, 0]) : int(spans[-1, 1])] if len(spans) else ""
        for text, spans in zip(batch.texts, batch.offsets, strict=True)
    ]
    found = lexicon.find(slices)
    places, first_at, last_at = _words_at(slices, batch.offsets)
    first, last = first_at[places[found.text] + found.start], last_at[places[found.text] + found.end]
    rows = np.flatnonzero((first >= 0) & (last >= 0))
    nodes = WordNodes(found.text[rows], first[rows], last[rows], found.word[rows])
    return nodes if max_nodes is None else _longest(nodes, max_nodes)


def _words_at(slices: Sequence[str], offsets: Sequence[Spans]) -> tuple[Integers, Integers, Integers]:
    """Where windows start if they stand behind one another, and which word starts and ends at each character, or -1."""
    lengths, words = (np.array([len(one) for one in columns], np.int64) for columns in (slices, offsets))
    places, first_words = np.cumsum(lengths + 1) - lengths - 1, np.cumsum(words) - words
    spans = np.concatenate([np.empty((0, 2), np.int64), *offsets])
    window = np.repeat(np.arange(len(words)), words)
    number = np.arange(len(spans)) - first_words[window]
    shift = places[window] - spans[first_words[window], 0]
    first_at, last_at = np.full((2, int(lengths.sum()) + len(lengths)), -1, np.int64)
    first_at[spans[:, 0] + shift] = number
    last_at[spans[:, 1] + shift] = number
    return places, first_at, last_at


def _longest(nodes: WordNodes, max_nodes: int) -> WordNodes:
    order = np.lexsort((nodes.first, nodes.first - nodes.last, nodes.window))
    kept = np.sort(order[_place_in_window(nodes.window) < max_nodes])
    return WordNodes(*(column[kept] for column in nodes))


def _place_in_window(window: Integers) -> Integers:
    """The place of each node among those of its window."""
    return np.arange(len(window)) - np.searchsorted(window, window)


def pad_nodes(nodes: WordNodes, windows: int) -> PaddedNodes:
    """Nodes as arrays of shape (windows, nodes)."""
    counts = np.bincount(nodes.window, minlength=windows).astype(np.int64)
    place = _place_in_window(nodes.window)
    padded = np.zeros((3, windows, int(counts.max(initial=0))), np.int64)
    padded[:, nodes.window, place] = nodes.first, nodes.last, nodes.word
    return PaddedNodes(padded[0], padded[1], padded[2], counts)
