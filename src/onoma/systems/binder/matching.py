"""BINDER's matching in numpy, for the runtime without PyTorch (the same as `Binder.similarities` and `margins`).

The similarity of a span and a type is (l_i·e_k + r_j·e_k + d_w·e_k) / |l_i + r_j + d_w|: three numbers of the type and
one length of the span. Words at which no sufficiently similar span can start are excluded first, by an upper bound,
then those at which no short one can start, or no long one, by closer bounds. So few spans are computed, and a thousand
types cost little more than a few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

IMPOSSIBLE = np.float32(-1e34)
"""The product of a word with a type whose spans must not start or end there."""

_ANY_MARGIN = 1e30  # instead of infinity, because 0 · infinity is NaN
_SLACK = np.float32(1e-3)  # bounds and similarities are summed in different orders, with different rounding
_STARTS_AT_ONCE = 1 << 14  # what is computed for them stays in a core's cache
_SHORT = 2  # words; longer spans have a bound of their own, because l + r + d has another length


class Parts(NamedTuple):
    """The parts of spans and their products: l and r of the words of all windows, d, and e scaled by 1/τ."""

    left: Floats  # l (words, d)
    right: Floats  # r (words, d)
    left_types: Floats  # l·e (words, types)
    types_right: Floats  # e·r (types, words + widths - 1); values behind the last word are ignored
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
    starts, groups = words.possible_starts(), words.width_groups()
    sections = [starts[i : i + _STARTS_AT_ONCE] for i in range(0, len(starts), _STARTS_AT_ONCE)]
    found = Proposals.concatenate(
        words.spans(words.likely(section, group), group) for section in sections for group in groups
    )
    return found._replace(window=numbers[found.window])


class _Words(NamedTuple):
    """The words of all windows, one window after the other, and the types."""

    parts: Parts
    counts: Integers  # words of each window, at least one (windows,)
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
        return cls(parts, counts, ends - counts, window, threshold, np.float32(floor), inverse)

    def possible_starts(self) -> Integers:
        """Where sufficiently similar spans may start, by an upper bound: word · types + type, in ascending order."""
        left, right = self.parts.left_types, self.parts.types_right[:, : len(self.window)]
        if not left.size:
            return np.zeros(0, np.int64)
        wanted = self.threshold + self.floor  # (windows, types)
        wanted[wanted <= 0] = -_ANY_MARGIN  # then longer spans fit more easily, and there is no bound
        rest = np.maximum.reduceat(right, self.begins, axis=1).T + (self.parts.types_widths.max(1) + _SLACK)
        shortest = np.reciprocal(np.nanmax(self.inverse, axis=1, keepdims=True))  # of the spans that start at a word
        possible = np.empty(left.shape, np.bool_)
        for begin, count, most, least in zip(self.begins, self.counts, rest, wanted, strict=True):
            words = slice(begin, begin + count)  # window by window, so that intermediate results stay in the cache
            np.greater_equal(left[words] + most, least * shortest[words], out=possible[words])
        return np.flatnonzero(possible)

    def width_groups(self) -> list[_WidthGroup]:
        """Short and long spans."""
        widths, words = len(self.parts.widths), len(self.window)
        groups = []
        for begin, end in ((0, min(_SHORT, widths)), (_SHORT, widths)):
            if begin < end and words:
                right = self.parts.types_right
                most = right[:, begin : begin + words].copy()
                for width in range(begin + 1, end):
                    np.maximum(most, right[:, width : width + words], out=most)
                most += self.parts.types_widths[:, begin:end].max(1, keepdims=True) + _SLACK
                groups.append(_WidthGroup(begin, end, most, np.fmax.reduce(self.inverse[:, begin:end], axis=1)))
        return groups

    def likely(self, starts: Integers, group: _WidthGroup) -> Integers:
        """Those of the starts where spans of a group of widths may be sufficiently similar, by an upper bound."""
        word, kind = np.divmod(starts, len(self.parts.types_widths))
        wanted = self.threshold[self.window[word], kind] + self.floor
        inverse = group.inverse[word]  # NaN where there are no such spans
        best = (self.parts.left_types.ravel()[starts] + group.most[kind, word]) * inverse
        return starts[(best >= wanted) | ((wanted <= 0) & (inverse > 0))]  # as above, there may be no bound

    def spans(self, starts: Integers, group: _WidthGroup) -> Proposals:
        """The spans of a group of widths that start there and have a sufficient margin."""
        widths = slice(group.begin, group.end)
        word, kind = np.divmod(starts, len(self.parts.types_widths))
        window = self.window[word]
        right = self.parts.types_right
        margin = sliding_window_view(right.ravel(), group.end - group.begin)[
            kind * right.shape[1] + word + group.begin
        ]  # (starts, widths)
        margin += self.parts.left_types.ravel()[starts, None]
        margin += self.parts.types_widths[kind, widths]
        margin *= self.inverse[word, widths]
        margin -= self.threshold[window, kind, None]
        found = np.flatnonzero(margin >= self.floor)
        row, width = np.divmod(found, group.end - group.begin)
        first = (word - self.begins[window])[row]
        return Proposals(window[row], first, first + group.begin + width, kind[row], margin.ravel()[found])


class _WidthGroup(NamedTuple):
    """Some widths, from `begin` up to `end`."""

    begin: int
    end: int
    most: Floats  # e·r + e·d of a span that starts at a word, at most (types, words)
    inverse: Floats  # of the shortest of these spans, NaN if there is none (words,)


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
