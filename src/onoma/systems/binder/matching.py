"""BINDER's matching in numpy, for the runtime without PyTorch (the same as `Binder.similarities` and `margins`).

The similarity of a span and a type is (l_i·e_k + r_j·e_k + d_w·e_k) / |l_i + r_j + d_w|: three numbers of the type,
one length of the span. Words with which no span can begin that is similar enough are left out first, by an upper
bound; so few spans are ever looked at, and asking for a thousand types costs little more than asking for a few.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

NEVER = np.float32(-1e34)
"""The product of a word with a type whose spans must not begin or end there: below all that can be wanted."""

_ANY_MARGIN = 1e30  # stands for infinity, which cannot be reckoned with: 0 times infinity is not a number
_SLACK = np.float32(1e-3)  # bounds are summed up in another order than similarities, and rounded otherwise
_BEGINNINGS = 1 << 15  # of spans that are looked at at a time


class Parts(NamedTuple):
    """What spans are made of, and its products: l and r of the words of all windows in a row, d, e scaled by 1/τ."""

    left: Floats  # l (words, d)
    right: Floats  # r (words, d)
    left_types: Floats  # l·e (words, types)
    types_right: Floats  # e·r (types, words + widths - 1); what stands beyond the last word is of no account
    left_widths: Floats  # l·d (words, widths)
    right_widths: Floats  # r·d (words, widths)
    types_widths: Floats  # e·d (types, widths)
    widths: Floats  # d (widths, d)

    def narrow(self, widths: int) -> Parts:
        """Without widths beyond the given one."""
        return self._replace(
            left_widths=self.left_widths[:, :widths],
            right_widths=self.right_widths[:, :widths],
            types_widths=self.types_widths[:, :widths],
            widths=self.widths[:widths],
        )


class Found(NamedTuple):
    """Spans with their types, one a row."""

    window: Integers
    first: Integers  # word, counted from the start of its window
    last: Integers
    type: Integers
    margin: Floats

    @classmethod
    def join(cls, several: Iterable[Found]) -> Found:
        """The rows of several."""
        nothing = np.zeros(0, np.int64)
        columns = zip(cls(nothing, nothing, nothing, nothing, np.zeros(0, np.float32)), *several, strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def match(parts: Parts, counts: Integers, threshold: Floats, lowest: float) -> Found:
    """All spans whose similarity to a type exceeds its threshold by at least `lowest`, with that margin.

    Args:
        counts: how many words each window has (windows,).
        threshold: what similarities are compared with (windows, types).
    """
    numbers = np.flatnonzero(counts)  # windows without words have nothing to be found
    parts = parts.narrow(counts.max(initial=0))
    line = _Line.of(parts, counts[numbers], threshold[numbers], min(max(lowest, -_ANY_MARGIN), _ANY_MARGIN))
    beginnings = line.beginnings()
    found = Found.join(line.spans(beginnings[i : i + _BEGINNINGS]) for i in range(0, len(beginnings), _BEGINNINGS))
    return found._replace(window=numbers[found.window])


class _Line(NamedTuple):
    """The words of windows in a row, and the types."""

    parts: Parts
    counts: Integers  # words of each window, at least one (windows,)
    begins: Integers  # the first word of each window (windows,)
    window: Integers  # of each word (words,)
    threshold: Floats  # (windows, types)
    lowest: np.float32  # margin
    inverse: Floats  # 1 / |l_i + r_(i+w) + d_w| (words, widths), not a number where a span would leave its window

    @classmethod
    def of(cls, parts: Parts, counts: Integers, threshold: Floats, lowest: float) -> _Line:
        ends = np.cumsum(counts)
        window = np.repeat(np.arange(len(counts)), counts)
        room = ends[window] - np.arange(len(window))  # words from here to the end of the window
        inverse: Floats = np.reciprocal(_lengths(parts))
        inverse[np.arange(len(parts.widths)) >= room[:, None]] = np.nan
        return cls(parts, counts, ends - counts, window, threshold, np.float32(lowest), inverse)

    def beginnings(self) -> Integers:
        """Where spans may begin that are similar enough, by an upper bound: word · types + type, in ascending order."""
        left, right = self.parts.left_types, self.parts.types_right[:, : len(self.window)]
        if not left.size:
            return np.zeros(0, np.int64)
        wanted = self.threshold + self.lowest  # (windows, types)
        wanted[wanted <= 0] = -_ANY_MARGIN  # the longer a span, the easier for it then: no bound
        rest = np.maximum.reduceat(right, self.begins, axis=1).T + (self.parts.types_widths.max(1) + _SLACK)
        shortest = np.reciprocal(np.nanmax(self.inverse, axis=1, keepdims=True))  # of the spans that begin with a word
        able = np.empty(left.shape, np.bool_)
        for begin, count, most, least in zip(self.begins, self.counts, rest, wanted, strict=True):
            words = slice(begin, begin + count)  # window by window: what is computed stays in the cache
            np.greater_equal(left[words] + most, least * shortest[words], out=able[words])
        return np.flatnonzero(able)

    def spans(self, beginnings: Integers) -> Found:
        """Of the spans that begin there, those with margin enough."""
        types, widths = self.parts.types_widths.shape
        word, kind = np.divmod(beginnings, types)
        window = self.window[word]
        right = self.parts.types_right
        margin = sliding_window_view(right.ravel(), widths)[kind * right.shape[1] + word]  # (beginnings, widths)
        margin += self.parts.left_types.ravel()[beginnings, None]
        margin += self.parts.types_widths[kind]
        margin *= self.inverse[word]
        margin -= self.threshold[window, kind, None]
        found = np.flatnonzero(margin >= self.lowest)
        row, width = np.divmod(found, widths)
        first = (word - self.begins[window])[row]
        return Found(window[row], first, first + width, kind[row], margin.ravel()[found])


def _lengths(parts: Parts) -> Floats:
    """|l_i + r_(i+w) + d_w| (words, widths); where there is no word i + w, some number."""
    left, right = parts.left, parts.right
    words, widths = parts.left_widths.shape
    own_left, own_right, own_width = (np.einsum("nd,nd->n", side, side) for side in (left, right, parts.widths))
    square = np.ones((words, widths), np.float32)
    for w in range(min(widths, words)):
        begin, end = slice(0, words - w), slice(w, words)
        product = (
            np.einsum("nd,nd->n", left[begin], right[end]) + parts.left_widths[begin, w] + parts.right_widths[end, w]
        )
        square[begin, w] = own_left[begin] + own_right[end] + own_width[w] + 2 * product
    return np.sqrt(np.maximum(square, 1e-6))
