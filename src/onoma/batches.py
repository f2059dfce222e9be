"""Windows as padded arrays: what every system reads, in training and in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.subwords import Pieces, Subwords
from onoma.text.windows import Windows

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows side by side. Position 0 is the encoder's first token ([CLS]); padding words point to it, too."""

    ids: Integers  # (windows, tokens)
    mask: Integers  # (windows, tokens): 1 for tokens, 0 for padding
    first: Integers  # (windows, words): the first token of each word
    last: Integers  # (windows, words): the last token of each word
    words: Integers  # (windows,): how many words each window has

    def take(self, rows: Integers) -> Batch:
        """Some of the windows."""
        return Batch(*(array[rows] for array in (self.ids, self.mask, self.first, self.last, self.words)))


def slice_windows(pieces: Pieces, windows: Windows) -> Iterator[Pieces]:
    """The tokens of each window of a document."""
    edges = np.concatenate([[0], np.cumsum(pieces.counts)])
    for start, end in zip(windows.start, windows.end, strict=True):
        yield Pieces(pieces.ids[edges[start] : edges[end]], pieces.counts[start:end])


def collate(windows: Sequence[Pieces], subwords: Subwords, prefixes: Sequence[Sequence[int]] = ()) -> Batch:
    """Put windows into one padded batch; with `prefixes`, each has tokens of its own between [CLS] and its text."""
    words = np.array([len(window.counts) for window in windows], np.int64)
    before = np.array([len(prefix) for prefix in prefixes] or [0] * len(windows), np.int64)
    tokens = np.array([len(window.ids) for window in windows], np.int64) + before
    ids = np.full((len(windows), int(tokens.max(initial=0)) + 2), subwords.pad, np.int64)
    first = np.zeros((len(windows), int(words.max(initial=0))), np.int64)
    last = np.zeros_like(first)
    ids[:, 0] = subwords.first
    for row, window in enumerate(windows):
        if before[row]:
            ids[row, 1 : before[row] + 1] = prefixes[row]
        ids[row, before[row] + 1 : tokens[row] + 1] = window.ids
        ends = np.cumsum(window.counts) + before[row]
        first[row, : words[row]] = ends - window.counts + 1
        last[row, : words[row]] = ends
    ids[np.arange(len(windows)), tokens + 1] = subwords.last
    mask = (np.arange(ids.shape[1]) < tokens[:, None] + 2).astype(np.int64)
    return Batch(ids, mask, first, last, words)


def put_before(batch: Batch, prefix: Sequence[int]) -> Batch:
    """The same windows with some tokens between [CLS] and their text."""
    if not prefix:
        return batch
    length = batch.first.shape[1]
    ids = np.insert(batch.ids, [1] * len(prefix), prefix, axis=1)
    mask = np.insert(batch.mask, [1] * len(prefix), 1, axis=1)
    shift = (np.arange(length) < batch.words[:, None]) * len(prefix)  # padding words still point to [CLS]
    return Batch(ids, mask, batch.first + shift, batch.last + shift, batch.words)


def bucket(lengths: Sequence[int] | Integers, batch_size: int, most_tokens: int | None = None) -> list[Integers]:
    """Indices of windows in batches of similar length, so that little is padding.

    A batch has at most `batch_size` windows and, if given, at most `most_tokens` tokens with its padding
    (a single window may have more).

    >>> [batch.tolist() for batch in bucket([5, 30, 6, 28, 7], 2)]
    [[1, 3], [4, 2], [0]]
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    batches, start = [], 0
    while start < len(order):
        longest = int(lengths[order[start]])  # the first is the longest: longest first, so that memory peaks early
        size = batch_size if most_tokens is None else max(1, min(batch_size, most_tokens // max(longest, 1)))
        batches.append(order[start : start + size])
        start += size
    return batches
