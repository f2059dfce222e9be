"""BINDER's matching in numpy, for the runtime without PyTorch (the same as `Binder.similarities` and `margins`).

The similarity of a span and a type is (l_i·e_k + r_j·e_k + d_w·e_k) / |l_i + r_j + d_w|: three numbers of the type and
one length of the span. Words at which no sufficiently similar span can start are excluded first, by an upper bound,
so that few spans are computed, and a thousand types cost little more than a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

IMPOSSIBLE = np.float32(-1e34)
"""The product of a word with a type whose spans must not start or end there."""

_ANY_MARGIN = 1e30  # instead of infinity, because 0 · infinity is NaN
_SLACK = np.float32(1e-3)  # bounds and similarities are summed in different orders, with different rounding
_STARTS_AT_ONCE = 1 << 14  # what is computed for them stays in a core's cache
_BOUNDS_AT_ONCE = 1 << 16  # of words and types, for the same reason
_WIDTH_EDGES = (0, 1, 3)  # spans of 1, of 2 and 3, and of more words have bounds of their own: |l + r + d| differs


class Parts(NamedTuple):
    """The parts of spans and their products: l and r of the words of all windows, d, and e scaled by 1/τ."""

    left: Floats  # l (words, d)
    right: Floats  # r (words, d)
    left_types: Floats  # l·e (words, types)
    right_types: Floats  # r·e (words + widths - 1, types); values behind the last word are ignored
    left_widths: Floats  # l·d (words, widths)
    right_widths: Floats  # r·d (words, widths)
    types_widths: Floats  # e·d (types, widths)
    widths: Floats  # d (widths, d)

    def narrow(self, widths: int) -> Parts:
        """The parts without larger widths."""
        return self._replace(
            left_widths=self.left_widths[:, :widths],
            right_widths=self.right_widths[:, :widths],
            types_widths=self.types_widths[:, :widths],
            widths=self.widths[:widths],
        )


def match(parts: Parts, counts: Integers, threshold: Floats, floor: float) -> Proposals:
    """All spans whose similarity to a type exceeds its threshold by at least `floor`, with that margin as score.

    Args:
        counts: the number of words of each window (windows,).
        threshold: what similarities are compared with (windows, types).
    """
    numbers = np.flatnonzero(counts)  # windows without words have no spans
    parts = parts.narrow(counts.max(initial=0))
    words = _Words.of(parts, counts[numbers], threshold[numbers], min(max(floor, -_ANY_MARGIN), _ANY_MARGIN))
    found = Proposals.concatenate(words.proposals())
    return found._replace(window=numbers[found.window])


class _Words(NamedTuple):
    """The words of all windows, one window after the other, and the types."""

    parts: Parts
    right: Floats  # r·e, with rows behind the last word (words + widths - 1, types)
    begins: Integers  # the first word of each window (windows,)
    window: Integers  # of each word (words,)
    threshold: Floats  # (windows, types)
    floor: np.float32  # lowest margin
    inverse: Floats  # 1 / |l_i + r_(i+w) + d_w| (words, widths), NaN for spans that would leave their window

    @classmethod
    def of(cls, parts: Parts, counts: Integers, threshold: Floats, floor: float) -> _Words:
        ends = np.cumsum(counts)
        window = np.repeat(np.arange(len(counts)), counts)
        room = ends[window] - np.arange(len(window))  # words from here to the end of the window
        inverse: Floats = np.reciprocal(_lengths(parts))
        inverse[np.arange(len(parts.widths)) >= room[:, None]] = np.nan
        right = parts.right_types[: len(window) + len(parts.widths) - 1]
        return cls(parts, right, ends - counts, window, threshold, np.float32(floor), inverse)

    def proposals(self) -> Iterator[Proposals]:
        """The spans with a sufficient margin, from short to long ones."""
        widths = len(self.parts.widths)
        if not self.parts.left_types.size:
            return
        for begin, end in pairwise([*(edge for edge in _WIDTH_EDGES if edge < widths), widths]):
            starts = self.possible_starts(begin, end)
            for first in range(0, len(starts), _STARTS_AT_ONCE):
                yield self.spans(starts[first : first + _STARTS_AT_ONCE], begin, end)

    def possible_starts(self, begin: int, end: int) -> Integers:
        """Where sufficiently similar spans of some widths may start: word · types + type, in ascending order.

        The bound is (l·e + max r·e + max d·e) / min |l + r + d| over the widths.
        """
        wanted = self.threshold + self.floor  # (windows, types)
        wanted[wanted <= 0] = -_ANY_MARGIN  # then longer spans fit more easily, and there is no bound
        inverse = np.fmax.reduce(self.inverse[:, begin:end], axis=1)[:, None]  # NaN if there are no such spans
        widths = self.parts.types_widths[:, begin:end].max(1) + _SLACK
        found = []
        for first, after in pairwise(self._groups()):
            best = _sliding_maximum(self.right[first + begin : after + end - 1], end - begin)
            best += widths
            best += self.parts.left_types[first:after]
            best *= inverse[first:after]
            possible = best >= wanted[self.window[first:after]]
            found.append(np.flatnonzero(possible) + first * best.shape[1])
        return np.concatenate(found)

    def _groups(self) -> list[int]:
        """The first words of groups of windows, so small that the bounds of their spans stay in a core's cache.

        At the end is the number of words.
        """
        words = max(1, _BOUNDS_AT_ONCE // self.right.shape[1])
        edges = self.begins[np.diff(self.begins // words, prepend=-1) > 0]
        return [*edges.tolist(), len(self.window)]

    def spans(self, starts: Integers, begin: int, end: int) -> Proposals:
        """The spans of some widths that start there and have a sufficient margin."""
        types, widths = self.right.shape[1], slice(begin, end)
        word = starts // types
        kind = starts - word * types  # np.divmod takes many times as long
        window = self.window[word]
        margin = self.right.ravel().take(starts[:, None] + types * np.arange(begin, end))  # (starts, widths)
        margin += self.parts.left_types.ravel()[starts, None]
        margin += self.parts.types_widths[kind, widths]
        margin *= self.inverse[word, widths]
        margin -= self.threshold[window, kind, None]
        row, width = np.nonzero(margin >= self.floor)
        first = (word - self.begins[window])[row]
        return Proposals(window[row], first, first + begin + width, kind[row], margin[row, width])


def _sliding_maximum(values: Floats, size: int) -> Floats:
    """The largest of `size` neighbouring rows (rows - size + 1, columns), in log(size) passes."""
    found, done = values, 1
    while done < size:
        step = min(done, size - done)
        found, done = np.maximum(found[:-step], found[step:]), done + step
    return found if size > 1 else found.copy()


def _lengths(parts: Parts) -> Floats:
    """|l_i + r_(i+w) + d_w| (words, widths); any number where there is no word i + w."""
    left, right = parts.left, parts.right
    words, widths = parts.left_widths.shape
    own_left, own_right, own_width = (np.einsum("nd,nd->n", side, side) for side in (left, right, parts.widths))
    square = np.ones((words, widths), np.float32)
    for w in range(min(widths, words)):
        start, end = slice(0, words - w), slice(w, words)
        product = (
            np.einsum("nd,nd->n", left[start], right[end]) + parts.left_widths[start, w] + parts.right_widths[end, w]
        )
        square[start, w] = own_left[start] + own_right[end] + own_width[w] + 2 * product
    return np.sqrt(np.maximum(square, 1e-6))
