"""Markers around candidate spans (equation 8), in numpy.

Markers are appended to the text instead of inserted: attention sees only positions, and markers have positions of
their own. With tied positions, [e] has the position of the span's first token and [/e] that of its last token, so the
positions of the text do not change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.inputs.batches import Batch

Integers = NDArray[np.int64]

PADDING, TEXT, OPENING, CLOSING = 0, 1, 2, 3
"""The role of a token in a marked sequence."""


class Candidates(NamedTuple):
    """Spans of words, sorted by window; three arrays of the same length."""

    window: Integers
    first: Integers  # word
    last: Integers  # word, inclusive

    @property
    def slot(self) -> Integers:
        """The index of each candidate within its window."""
        return np.arange(len(self.window)) - np.searchsorted(self.window, self.window)

    def tokens(self, batch: Batch) -> tuple[Integers, Integers]:
        """The first and the last token of each candidate."""
        return batch.first[self.window, self.first], batch.last[self.window, self.last]


class Markers(NamedTuple):
    """The markers of candidates, per window: first all [e], then all [/e]."""

    positions: Integers  # (windows, markers)
    roles: Integers  # (windows, markers): padding, opening or closing marker
    opening: Integers  # (candidates,): the place of [e] in its window
    closing: Integers  # (candidates,): the place of [/e]


class Marked(NamedTuple):
    """Texts followed by the markers of candidates."""

    ids: Integers  # (windows, tokens + markers); 0 at markers
    positions: Integers  # (windows, tokens + markers)
    roles: Integers  # (windows, tokens + markers): padding, text, opening or closing marker
    opening: Integers  # (candidates,): the place of [e] in its window
    closing: Integers  # (candidates,): the place of [/e]


class PackedMarkers(NamedTuple):
    """The markers of candidates without padding: [e] and [/e] of the first candidate, of the second, and so on."""

    positions: Integers  # (markers,)
    windows: Integers  # (windows with candidates,)
    edges: Integers  # (windows with candidates + 1,): the first marker of each, and at the end the number of markers
    roles: Integers  # (markers,): opening or closing marker


def pack_markers(candidates: Candidates, first: Integers, last: Integers) -> PackedMarkers:
    """Markers with the positions of the first and last token of their spans."""
    windows, start = np.unique(candidates.window, return_index=True)
    number = len(candidates.window)
    positions = np.stack([first, last], axis=1).ravel()
    return PackedMarkers(positions, windows, 2 * np.append(start, number), np.tile([OPENING, CLOSING], number))


def place_markers(candidates: Candidates, first: Integers, last: Integers, windows: int) -> Markers:
    """Markers with the positions of the first and last token of their spans."""
    window, slot = candidates.window, candidates.slot
    most = int(slot.max(initial=-1)) + 1
    positions, roles = (np.zeros((windows, 2 * most), np.int64) for _ in range(2))
    opening, closing = slot, most + slot
    roles[window, opening], roles[window, closing] = OPENING, CLOSING
    positions[window, opening], positions[window, closing] = first, last
    return Markers(positions, roles, opening, closing)


def mark(batch: Batch, candidates: Candidates, *, tied: bool = True) -> Marked:
    """Texts and markers in one sequence: all tokens, then all [e], then all [/e]."""
    windows, tokens = batch.ids.shape
    markers = place_markers(candidates, *candidates.tokens(batch), windows)
    ids = np.concatenate([batch.ids, np.zeros_like(markers.roles)], axis=1)
    positions = np.concatenate([np.tile(np.arange(tokens), (windows, 1)), markers.positions], axis=1)
    roles = np.concatenate([batch.mask * TEXT, markers.roles], axis=1)
    opening, closing = tokens + markers.opening, tokens + markers.closing
    if not tied:
        _untie(positions, tokens, candidates.window, opening, closing)
    return Marked(ids, positions, roles, opening, closing)


def _untie(positions: Integers, tokens: int, window: Integers, opening: Integers, closing: Integers) -> None:
    """Positions as if markers stood inside the text, each [e] before its first token, each [/e] behind its last."""
    first, last = positions[window, opening], positions[window, closing]
    begun, ended = (np.zeros((len(positions), tokens + 1), np.int64) for _ in range(2))
    np.add.at(begun, (window, first + 1), 1)
    np.add.at(ended, (window, last + 1), 1)
    begun, ended = begun.cumsum(1), ended.cumsum(1)  # [t]: how many spans start, or end, before token t
    positions[:, :tokens] += begun[:, 1:] + ended[:, :-1]
    positions[window, opening] += begun[window, first] + ended[window, first] + _among_equals(window, first)
    positions[window, closing] += 1 + begun[window, last + 1] + ended[window, last] + _among_equals(window, last)


def _among_equals(window: Integers, token: Integers) -> Integers:
    """The index of each marker among those of the same window and token, in their order."""
    key = window * (int(token.max(initial=0)) + 1) + token
    order = np.argsort(key, kind="stable")
    rank = np.empty(len(key), np.int64)
    rank[order] = np.arange(len(key)) - np.searchsorted(key[order], key[order])
    return rank
