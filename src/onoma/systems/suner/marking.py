"""Where the markers of candidate spans stand (equation 8), in numpy.

Markers are put behind the text instead of into it: attention knows places only by their positions, and those of
markers are their own. With tied positions, [e] has the position of its span's first token and [/e] that of its last,
so the text's positions stay as they were.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.batches import Batch

Integers = NDArray[np.int64]

PADDING, TEXT, OPENING, CLOSING = 0, 1, 2, 3
"""What stands at a place."""


class Candidates(NamedTuple):
    """Spans of words, sorted by window; three arrays of the same length."""

    window: Integers
    first: Integers  # word
    last: Integers  # word, inclusive

    @property
    def slot(self) -> Integers:
        """The number of each candidate within its window."""
        return np.arange(len(self.window)) - np.searchsorted(self.window, self.window)

    def tokens(self, batch: Batch) -> tuple[Integers, Integers]:
        """The first and the last token of each candidate."""
        return batch.first[self.window, self.first], batch.last[self.window, self.last]


class Marked(NamedTuple):
    """Texts with the markers of candidates behind them."""

    ids: Integers  # (windows, tokens + markers); 0 at markers
    positions: Integers  # (windows, tokens + markers)
    roles: Integers  # (windows, tokens + markers): padding, text, opening or closing marker
    opening: Integers  # (candidates,): the place of [e] in its window
    closing: Integers  # (candidates,): the place of [/e]


def mark(batch: Batch, candidates: Candidates, *, tied: bool = True) -> Marked:
    """Texts and markers in one sequence: all tokens, then all [e], then all [/e]."""
    windows, tokens = batch.ids.shape
    window, slot = candidates.window, candidates.slot
    most = int(slot.max(initial=-1)) + 1
    length = tokens + 2 * most
    ids, positions, roles = (np.zeros((windows, length), np.int64) for _ in range(3))
    ids[:, :tokens], roles[:, :tokens] = batch.ids, batch.mask * TEXT
    opening, closing = tokens + slot, tokens + most + slot
    first, last = candidates.tokens(batch)
    roles[window, opening], roles[window, closing] = OPENING, CLOSING
    positions[:, :tokens] = np.arange(tokens)
    positions[window, opening], positions[window, closing] = first, last
    if not tied:
        _untie(positions, tokens, window, opening, closing)
    return Marked(ids, positions, roles, opening, closing)


def _untie(positions: Integers, tokens: int, window: Integers, opening: Integers, closing: Integers) -> None:
    """Positions as if the markers stood within the text, each [e] before its first token, each [/e] behind its last."""
    first, last = positions[window, opening], positions[window, closing]
    begun, ended = (np.zeros((len(positions), tokens + 1), np.int64) for _ in range(2))
    np.add.at(begun, (window, first + 1), 1)
    np.add.at(ended, (window, last + 1), 1)
    begun, ended = begun.cumsum(1), ended.cumsum(1)  # [t]: how many begin, or end, before token t
    positions[:, :tokens] += begun[:, 1:] + ended[:, :-1]
    positions[window, opening] += begun[window, first] + ended[window, first] + _among_equals(window, first)
    positions[window, closing] += 1 + begun[window, last + 1] + ended[window, last] + _among_equals(window, last)


def _among_equals(window: Integers, token: Integers) -> Integers:
    """The number of each marker among those of the same window and token, in their order."""
    key = window * (int(token.max(initial=0)) + 1) + token
    order = np.argsort(key, kind="stable")
    rank = np.empty(len(key), np.int64)
    rank[order] = np.arange(len(key)) - np.searchsorted(key[order], key[order])
    return rank
