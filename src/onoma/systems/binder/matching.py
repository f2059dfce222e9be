"""BINDER's matching in numpy, for the runtime without PyTorch (the same as `Binder.similarities` and `margins`).

The similarity of a span and a type is (l_i·e_k + r_j·e_k + d_w·e_k) / |l_i + r_j + d_w|: three numbers of the type,
one length of the span. What cannot reach the wanted similarity is left out before any span is looked at: first
types in a window, by the greatest products there, then words as beginnings, by their own product and lengths. So
asking for a thousand types costs little more than asking for a few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_PRODUCTS = 1 << 19  # of words and types that are made at a time: few enough to stay in the cache
_BEGINNINGS = 1 << 14  # of spans that are looked at at a time
_SLACK = np.float32(1e-4)  # bounds are summed up in another order than similarities, and rounded otherwise
_ANY_MARGIN = 1e30  # stands for infinity, with which there is no reckoning: 0 times infinity is not a number
_NEVER = np.float32(-1e36)  # the product of a span that must not be: below any margin, whatever it is divided by


class Words(NamedTuple):
    """The words of some windows in a row."""

    left: Floats  # l (words, d)
    right: Floats  # r (words, d)
    counts: Integers  # how many words each window has (windows,)


class Found(NamedTuple):
    """Spans with their types, one a row."""

    window: Integers
    first: Integers  # word, counted from the start of its window
    last: Integers
    type: Integers
    margin: Floats


def match(
    words: Words,
    width: Floats,
    types: Floats,
    threshold: Floats,
    lowest: float,
    passing: tuple[Flags, Flags] | None = None,
) -> Found:
    """All spans whose similarity to a type exceeds its threshold by at least `lowest`, with that margin.

    Args:
        width: d for the allowed widths (widths, d).
        types: e, scaled by 1/τ (types, d).
        threshold: what similarities are compared with (windows, types).
        passing: for joint inference, where spans of a type may begin and where they may end, each (words, types).
    """
    lowest = min(max(lowest, -_ANY_MARGIN), _ANY_MARGIN)
    line = _Line.of(words, width)
    nothing = np.zeros(0, np.int64)
    found = [Found(nothing, nothing, nothing, nothing, np.zeros(0, np.float32))]
    size = max(1, _PRODUCTS // max(1, len(words.left)))
    for start in range(0, len(types), size):
        part = slice(start, start + size)
        left, right, by_width = (side @ types[part].T for side in (words.left, words.right, width))
        if passing is not None:
            left, right = (
                np.where(may[:, part], side, _NEVER) for may, side in zip(passing, (left, right), strict=True)
            )
        searched = _Types(left, right, by_width, threshold[:, part], np.float32(lowest))
        word, kind = searched.beginnings(line)
        for row in range(0, len(word), _BEGINNINGS):
            rows = slice(row, row + _BEGINNINGS)
            window, first, last, one, margin = searched.spans(line, word[rows], kind[rows])
            found.append(Found(window, first, last, one + start, margin))
    return Found(*(np.concatenate(column) for column in zip(*found, strict=True)))


class _Line(NamedTuple):
    """What does not depend on types: windows that have words, all their words in a row, the lengths of their spans."""

    numbers: Integers  # which windows have words (windows,)
    counts: Integers  # how many (windows,)
    begins: Integers  # the first word of each (windows,)
    window: Integers  # of each word, counted among these windows (words,)
    inside: Flags  # whether a span of this width stays in its window (words, widths)
    length: Floats  # |l_i + r_(i+w) + d_w| (words, widths)
    shortest: Floats  # of the spans that begin with a word (words, 1)
    longest: Floats  # (words, 1)

    @classmethod
    def of(cls, words: Words, width: Floats) -> _Line:
        numbers = np.flatnonzero(words.counts)
        counts = words.counts[numbers]
        ends = np.cumsum(counts)
        room = np.repeat(ends, counts) - np.arange(len(words.left))  # words from here to the end of the window
        inside = np.arange(len(width)) < room[:, None]
        length = _lengths(words.left, words.right, width)
        shortest = length.min(1, keepdims=True, initial=np.inf, where=inside)
        longest = length.max(1, keepdims=True, initial=0.0, where=inside)
        window = np.repeat(np.arange(len(counts)), counts)
        return cls(numbers, counts, ends - counts, window, inside, length, shortest, longest)


def _lengths(left: Floats, right: Floats, width: Floats) -> Floats:
    """|l_i + r_(i+w) + d_w| (words, widths); where there is no word i + w, some number."""
    words, widths = len(left), len(width)
    own_left, own_right, own_width = (np.einsum("nd,nd->n", side, side) for side in (left, right, width))
    by_left, by_right = left @ width.T, right @ width.T  # (words, widths)
    square = np.ones((words, widths), np.float32)
    for w in range(min(widths, words)):
        begin, end = slice(0, words - w), slice(w, words)
        product = np.einsum("nd,nd->n", left[begin], right[end]) + by_left[begin, w] + by_right[end, w]
        square[begin, w] = own_left[begin] + own_right[end] + own_width[w] + 2 * product
    return np.sqrt(np.maximum(square, 1e-6))


class _Types(NamedTuple):
    """Some of the types: their products with words and widths, and what they want."""

    left: Floats  # l·e (words, types)
    right: Floats  # r·e (words, types)
    width: Floats  # d·e (widths, types)
    threshold: Floats  # (windows, types)
    lowest: np.float32

    def beginnings(self, line: _Line) -> tuple[Integers, Integers]:
        """The words with which a span of a type may begin, by upper bounds: pairs of word and type."""
        if not len(line.counts):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        wanted = self.threshold[line.numbers] + self.lowest  # (windows, types)
        rest = np.maximum.reduceat(self.right, line.begins) + self.width.max(0)
        most = np.maximum.reduceat(self.left, line.begins) + rest  # no span has a greater product
        shortest = np.minimum.reduceat(line.shortest, line.begins)
        longest = np.maximum.reduceat(line.longest, line.begins)
        window, kind = np.nonzero(most >= _least(wanted, shortest, longest))
        counts = line.counts[window]
        before = np.cumsum(counts) - counts
        window, kind, before = (np.repeat(one, counts) for one in (window, kind, before))  # one row a word now
        word = line.begins[window] + np.arange(len(window)) - before
        most = self.left[word, kind] + rest[window, kind]
        able = most >= _least(wanted[window, kind], line.shortest[word, 0], line.longest[word, 0])
        return word[able], kind[able]

    def spans(self, line: _Line, word: Integers, kind: Integers) -> Found:
        """Of the spans that begin with these words those with margin enough, for the type given with each word."""
        ends = word[:, None] + np.arange(len(self.width))  # (beginnings, widths)
        product = self.right[np.minimum(ends, len(self.right) - 1), kind[:, None]]
        product += self.left[word, kind][:, None]
        product += self.width.T[kind]
        window = line.window[word]
        margin = product / line.length[word] - self.threshold[line.numbers[window], kind][:, None]
        row, width = np.nonzero((margin >= self.lowest) & line.inside[word])
        first = (word - line.begins[window])[row]
        return Found(line.numbers[window[row]], first, first + width, kind[row], margin[row, width])


def _least(wanted: Floats, shortest: Floats, longest: Floats) -> Floats:
    """The least product with which a span as long as these may have the wanted similarity."""
    least: Floats = np.minimum(wanted * shortest, wanted * longest)
    return least - _SLACK * (np.float32(1) + np.abs(least))
