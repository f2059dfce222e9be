"""Batches: windows as padded arrays, which every system reads in training and in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.inputs.tokenizer import WordTokenizer
from onoma.text.words import Spans

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows of similar length. Token 0 is the encoder's first token ([CLS]); padding words point to it."""

    ids: Integers  # (windows, tokens)
    mask: Integers  # (windows, tokens): 1 for tokens, 0 for padding
    first: Integers  # (windows, words): the first token of each word
    last: Integers  # (windows, words): the last token of each word
    words: Integers  # (windows,): number of words
    texts: Sequence[str]  # the text of each window
    offsets: Sequence[Spans]  # character offsets of the words of each window in its text

    def take(self, rows: Integers) -> Batch:
        """Some of the windows, without padding that none of them needs."""
        tokens, words = int(self.mask[rows].sum(1).max(initial=0)), int(self.words[rows].max(initial=0))
        return Batch(
            self.ids[rows, :tokens],
            self.mask[rows, :tokens],
            self.first[rows, :words],
            self.last[rows, :words],
            self.words[rows],
            [self.texts[row] for row in rows],
            [self.offsets[row] for row in rows],
        )

    def with_prefix(self, prefix: Sequence[int]) -> Batch:
        """The same windows with tokens inserted between [CLS] and the text."""
        if not prefix:
            return self
        ids = np.insert(self.ids, [1] * len(prefix), prefix, axis=1)
        mask = np.insert(self.mask, [1] * len(prefix), 1, axis=1)
        shift = (np.arange(self.first.shape[1]) < self.words[:, None]) * len(prefix)  # padding words stay at [CLS]
        return Batch(ids, mask, self.first + shift, self.last + shift, self.words, self.texts, self.offsets)


def collate(
    token_ids: NDArray[np.int32],
    token_edges: Integers,
    start: Integers,
    end: Integers,
    tokenizer: WordTokenizer,
    texts: Sequence[str],
    offsets: Sequence[Spans],
    prefixes: Sequence[Sequence[int]] = (),
) -> Batch:
    """Put windows into one padded batch.

    Args:
        token_ids: tokens of a sequence of words.
        token_edges: the first token of each word, and at the end the number of tokens (words + 1,).
        start, end: the words of each window (windows,).
        prefixes: tokens for each window that stand between [CLS] and its text.
    """
    rows = np.arange(len(start))
    before = np.array([len(prefix) for prefix in prefixes], np.int64) if prefixes else np.zeros_like(start)
    first_token = token_edges[start]
    words, tokens = end - start, token_edges[end] - first_token
    ids = np.full((len(rows), int((tokens + before).max(initial=0)) + 2), tokenizer.pad, np.int64)
    ids[:, 0] = tokenizer.cls
    for number, prefix in enumerate(prefixes):
        ids[number, 1 : 1 + len(prefix)] = prefix
    row, place = _ranges(tokens)
    ids[row, place + 1 + before[row]] = token_ids[first_token[row] + place]
    ids[rows, tokens + before + 1] = tokenizer.sep
    mask = (np.arange(ids.shape[1]) < (tokens + before)[:, None] + 2).astype(np.int64)
    first, last = (np.zeros((len(rows), int(words.max(initial=0))), np.int64) for _ in range(2))
    row, place = _ranges(words)
    word, shift = start[row] + place, before[row] - first_token[row]
    first[row, place] = token_edges[word] + shift + 1
    last[row, place] = token_edges[word + 1] + shift
    return Batch(ids, mask, first, last, words, texts, offsets)


def _ranges(lengths: Integers) -> tuple[Integers, Integers]:
    """The row and the place of every element of rows of these lengths.

    >>> [column.tolist() for column in _ranges(np.array([2, 1]))]
    [[0, 0, 1], [0, 1, 0]]
    """
    row = np.repeat(np.arange(len(lengths)), lengths)
    return row, np.arange(len(row)) - (np.cumsum(lengths) - lengths)[row]


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> tuple[Integers, Integers]:
    """Rows of token ids as one padded array, and its mask."""
    lengths = np.array([len(row) for row in rows], np.int64)
    ids = np.full((len(rows), int(lengths.max(initial=0))), pad, np.int64)
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    ids[mask] = np.concatenate([np.asarray(row, np.int64) for row in rows]) if len(rows) else 0
    return ids, mask.astype(np.int64)


def bucket_by_length(
    lengths: Sequence[int] | Integers,
    max_windows: int,
    max_tokens: int | None = None,
    *,
    workers: int = 1,
    min_tokens: int = 64,
    call_tokens: int | None = None,
) -> list[Integers]:
    """Indices of windows in batches of similar length, longest first, so that little is padding.

    Args:
        max_windows: windows in a batch at most.
        max_tokens: tokens in a batch at most, with padding; a single window may have more.
        workers: threads among which the batches are divided. With several, no batch has more than one thread's share
            of the windows, and the last batches are smaller, so that no thread waits long for another.
        min_tokens: batches are not made smaller than this for that purpose.
        call_tokens: what a batch costs besides its tokens, in tokens; a batch ends earlier if that saves more padding.
            None: batches are filled in any case.

    >>> [batch.tolist() for batch in bucket_by_length([5, 30, 6, 28, 7], 2)]
    [[1, 3], [4, 2], [0]]
    """
    lengths = np.asarray(lengths, np.int64)
    order = np.argsort(-lengths, kind="stable")
    remaining = np.cumsum(lengths[order][::-1])[::-1]  # tokens of this window and all behind it
    if workers > 1:
        max_windows = min(max_windows, max(1, len(order) // workers))
    batches, start = [], 0
    while start < len(order):
        size = max_windows
        if max_tokens is not None:
            budget = max_tokens
            if workers > 1:
                budget = min(budget, max(min_tokens, int(remaining[start]) // (2 * workers)))
            size = min(size, budget // max(1, int(lengths[order[start]])))
        batch = order[start : start + max(1, size)]
        if call_tokens is not None:
            batch = batch[: _best_size(lengths[batch], call_tokens)]
        batches.append(batch)
        start += len(batch)
    return batches


def _best_size(lengths: Integers, call_tokens: int) -> int:
    """How many of these windows, longest first, should share a batch, if the others form another one.

    >>> _best_size(np.array([30, 29, 28, 12, 11, 11]), 8), _best_size(np.array([30, 29, 28, 27]), 8)
    (3, 4)
    """
    saved = (lengths[0] - lengths) * (len(lengths) - np.arange(len(lengths)))  # padding, if a batch ends before each
    best = int(saved.argmax())
    return best if saved[best] > call_tokens else len(lengths)
