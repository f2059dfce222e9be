"""Mentions as runs of words: where a mention begins or ends inside a word, the word is split there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Document
from onoma.text.words import Spans, segment, split_at


@dataclass(frozen=True, slots=True)
class Alignment:
    """The words of a document and its mentions in terms of them."""

    words: Spans  # (words, 2) characters
    mentions: Spans  # (mentions, 2) first and last word, inclusive; (-1, -1) for a mention that covers no word
    splits: int  # words that were split because a mention begins or ends inside


def align(document: Document, *, exact: bool = False) -> Alignment:
    """Cut a document into words such that each of its mentions begins and ends at a word's edge.

    White space at the edges of a mention is left out of its words. With `exact`, it becomes a word of
    its own, so that first and last word give back the very offsets of the mention (for writing files).

    >>> alignment = align(Document.from_spans("anti-viral", [(5, 8, "x")]))
    >>> alignment.words.tolist(), alignment.mentions.tolist(), alignment.splits
    ([[0, 4], [4, 5], [5, 8], [8, 10]], [[2, 2]], 1)
    """
    words = segment(document.text) if document.words is None else np.array(document.words, np.int32).reshape(-1, 2)
    edges = np.array([(entity.start, entity.end) for entity in document.entities], np.int32).reshape(-1, 2)
    starts, ends = edges[:, 0], edges[:, 1]
    if exact:
        words = _with_gaps(words, starts, ends, len(document.text))
    pieces = split_at(words, edges.ravel())
    first = np.searchsorted(pieces[:, 1], starts, side="right")
    last = np.searchsorted(pieces[:, 0], ends, side="left") - 1
    mentions = np.stack([first, last], axis=1).astype(np.int32)
    mentions[first > last] = -1
    pieces_a_word = np.searchsorted(pieces[:, 0], words[:, 1]) - np.searchsorted(pieces[:, 0], words[:, 0])
    return Alignment(pieces, mentions, int(np.count_nonzero(pieces_a_word > 1)))


def _with_gaps(words: Spans, starts: NDArray[np.int32], ends: NDArray[np.int32], length: int) -> Spans:
    """Add the gaps between words in which a mention begins or ends."""
    gap_starts = np.concatenate([[0], words[:, 1]])
    gap_ends = np.concatenate([words[:, 0], [length]])
    begins = np.searchsorted(gap_starts, starts, side="right") - 1
    begins = begins[starts < gap_ends[begins]]
    finishes = np.searchsorted(gap_ends, ends, side="left")
    finishes = finishes[ends > gap_starts[finishes]]
    chosen = np.union1d(begins, finishes).astype(np.intp)
    gaps = np.stack([gap_starts[chosen], gap_ends[chosen]], axis=1)
    return np.sort(np.concatenate([words, gaps.astype(np.int32)]), axis=0)
