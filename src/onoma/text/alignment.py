"""Mentions as runs of words: a word is split where a mention starts or ends inside it."""

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
    splits: int  # words that were split because a mention starts or ends inside them


def align(document: Document, *, exact: bool = False) -> Alignment:
    """Cut a document into words such that every mention starts and ends at a word boundary.

    White space at the edges of a mention does not belong to its words. With `exact` it becomes a word of its own, so
    that first and last word give back the exact offsets of the mention (for writing files).

    >>> alignment = align(Document.from_spans("anti-viral", [(5, 8, "x")]))
    >>> alignment.words.tolist(), alignment.mentions.tolist(), alignment.splits
    ([[0, 4], [4, 5], [5, 8], [8, 10]], [[2, 2]], 1)
    """
    words = document_words(document)
    edges = np.array([(entity.start, entity.end) for entity in document.entities], np.int32).reshape(-1, 2)
    starts, ends = edges[:, 0], edges[:, 1]
    if exact:
        words = _with_gaps(words, starts, ends, len(document.text))
    pieces = split_at(words, edges.ravel())
    mentions = mention_words(pieces, starts, ends)
    pieces_per_word = np.searchsorted(pieces[:, 0], words[:, 1]) - np.searchsorted(pieces[:, 0], words[:, 0])
    return Alignment(pieces, mentions, int(np.count_nonzero(pieces_per_word > 1)))


def document_words(document: Document) -> Spans:
    """The words of a document: those of its source if it gives them, else those of `segment`."""
    if document.words is None:
        return segment(document.text)
    return np.array(document.words, np.int32).reshape(-1, 2)


def mention_words(words: Spans, starts: NDArray[np.int32], ends: NDArray[np.int32]) -> Spans:
    """The first and last word of each mention, given by character offsets; (-1, -1) if it covers no word."""
    first = np.searchsorted(words[:, 1], starts, side="right")
    last = np.searchsorted(words[:, 0], ends, side="left") - 1
    mentions = np.stack([first, last], axis=1).astype(np.int32)
    mentions[first > last] = -1
    return mentions


def _with_gaps(words: Spans, starts: NDArray[np.int32], ends: NDArray[np.int32], length: int) -> Spans:
    """Add the gaps between words in which a mention starts or ends."""
    gap_starts = np.concatenate([[0], words[:, 1]])
    gap_ends = np.concatenate([words[:, 0], [length]])
    begins = np.searchsorted(gap_starts, starts, side="right") - 1
    begins = begins[starts < gap_ends[begins]]
    finishes = np.searchsorted(gap_ends, ends, side="left")
    finishes = finishes[ends > gap_starts[finishes]]
    chosen = np.union1d(begins, finishes).astype(np.intp)
    gaps = np.stack([gap_starts[chosen], gap_ends[chosen]], axis=1)
    return np.sort(np.concatenate([words, gaps.astype(np.int32)]), axis=0)
