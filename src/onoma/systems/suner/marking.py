"""Markers around candidate spans (equation 8), in numpy.

Markers are appended to the text instead of inserted: attention sees only positions, and markers have positions of
their own. With tied positions, [e] has the position of the span's first token and [/e] that of its last token, so the
positions of the text do not change.

The role of a token says what it is: padding, text, or a marker. The markers of pair i have the roles 2 + 2i and 3 + 2i.
If pairs have no identity, i is 0 for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.inputs.batches import Batch
from onoma.systems.suner.options import SunerOptions

Integers = NDArray[np.int64]

PADDING, TEXT, OPENING, CLOSING = 0, 1, 2, 3
"""The role of a token in a marked sequence; those of markers are of pair 0."""


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
    roles: Integers  # (windows, markers): padding, or opening or closing marker of a pair
    opening: Integers  # (candidates,): the place of [e] in its window
    closing: Integers  # (candidates,): the place of [/e]


class Marked(NamedTuple):
    """Texts followed by the markers of candidates."""

    ids: Integers  # (windows, tokens + markers); 0 at markers
    positions: Integers  # (windows, tokens + markers)
    roles: Integers  # (windows, tokens + markers): padding, text, or opening or closing marker of a pair
    opening: Integers  # (candidates,): the place of [e] in its window
    closing: Integers  # (candidates,): the place of [/e]


class PackedMarkers(NamedTuple):
    """The markers of candidates without padding: [e] and [/e] of the first candidate, of the second, and so on.

    They are in groups of markers that see each other: those of a window, or pairs.
    """

    positions: Integers  # (markers,)
    windows: Integers  # (groups,)
    edges: Integers  # (groups + 1,): the first marker of each, and at the end the number of markers
    roles: Integers  # (markers,): opening or closing marker of a pair


def pair_numbers(
    candidates: Candidates, options: SunerOptions, generator: np.random.Generator | None = None
) -> Integers:
    """The number i of the markers [e_i] and [/e_i] of each candidate.

    Pairs are counted in the order of the text. In training, a `generator` gives numbered pairs random numbers, so that
    all numbers are trained.
    """
    if options.marker_identity == "shared":
        return np.zeros(len(candidates.window), np.int64)
    if generator is None or options.marker_identity == "paired":
        return candidates.slot
    windows = int(candidates.window.max(initial=-1)) + 1
    shuffled = np.argsort(generator.random((windows, options.marker_numbers)), axis=1)
    return shuffled[candidates.window, candidates.slot]


def pack_markers(candidates: Candidates, first: Integers, last: Integers, options: SunerOptions) -> PackedMarkers:
    """Markers with the positions of the first and last token of their spans."""
    windows, start = np.unique(candidates.window, return_index=True)
    if options.marker_identity == "paired":
        windows, start = candidates.window, np.arange(len(candidates.window))
    roles = 2 * pair_numbers(candidates, options)[:, None] + np.array([OPENING, CLOSING])
    edges = 2 * np.append(start, len(candidates.window))
    return PackedMarkers(np.stack([first, last], axis=1).ravel(), windows, edges, roles.ravel())


def place_markers(
    candidates: Candidates, first: Integers, last: Integers, windows: int, numbers: Integers | int = 0
) -> Markers:
    """Markers with the positions of the first and last token of their spans, and with the numbers of their pairs."""
    window, slot = candidates.window, candidates.slot
    most = int(slot.max(initial=-1)) + 1
    positions, roles = (np.zeros((windows, 2 * most), np.int64) for _ in range(2))
    opening, closing = slot, most + slot
    roles[window, opening], roles[window, closing] = OPENING + 2 * numbers, CLOSING + 2 * numbers
    positions[window, opening], positions[window, closing] = first, last
    return Markers(positions, roles, opening, closing)


def mark(batch: Batch, candidates: Candidates, *, tied: bool = True, numbers: Integers | int = 0) -> Marked:
    """Texts and markers in one sequence: all tokens, then all [e], then all [/e]; `numbers` are those of pairs."""
    windows, tokens = batch.ids.shape
    markers = place_markers(candidates, *candidates.tokens(batch), windows, numbers)
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
