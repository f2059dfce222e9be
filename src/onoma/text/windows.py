"""Windows: runs of words that fit an encoder. Long documents become overlapping windows; nothing is cut off.

A span of words belongs to exactly one window: the one in which it lies more centrally. Between two
neighbours the border runs through the middle of their overlap, and a span goes to the side where its own
middle lies. A span no longer than the overlap is then wholly inside of its owner, so taking from each
window only what it owns gives every span once, seen with the most context.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onoma.errors import OnomaError

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of one document: window i holds the words start[i]:end[i]."""

    start: Integers
    end: Integers

    def __len__(self) -> int:
        return len(self.start)

    def owns(self, window: ArrayLike, first: ArrayLike, last: ArrayLike) -> NDArray[np.bool_]:
        """Whether spans (first to last word of the document, inclusive) belong to the windows they were found in."""
        borders = self.start[1:] + self.end[:-1]  # twice the middle of each overlap
        middle = np.asarray(first) + np.asarray(last) + 1  # twice the middle of each span
        return np.asarray(np.searchsorted(borders, middle, side="right") == np.asarray(window))


def cut_windows(
    costs: ArrayLike, budget: int, overlap: int = 0, sentence_starts: NDArray[np.integer] | None = None
) -> Windows:
    """Cut words into windows whose costs (say, sub-word tokens) sum to at most `budget`.

    Neighbours share `overlap` words, or as many as half of the budget pays for. Windows end where a
    sentence ends, if one ends in their last quarter, and begin with a sentence if one begins just
    before the overlap. A word that alone costs more than the budget is an error: it could only be cut off.

    >>> windows = cut_windows([1] * 10, budget=6, overlap=2)
    >>> list(zip(windows.start.tolist(), windows.end.tolist()))
    [(0, 6), (4, 10)]
    """
    costs = np.asarray(costs, np.int64)
    if budget < 1 or overlap < 0:
        raise OnomaError(f"windows need a budget of at least 1 and an overlap of at least 0, got {budget}, {overlap}")
    if len(costs) and costs.max() > budget:
        word = int(costs.argmax())
        raise OnomaError(f"word {word} costs {costs[word]}, more than a window of {budget} can hold: raise the budget")
    total = np.concatenate([[0], np.cumsum(costs)])
    breaks = np.zeros(0, np.int64) if sentence_starts is None else np.asarray(sentence_starts, np.int64)
    starts, ends = [], []
    start = end = 0
    while end < len(costs):
        previous, end = end, int(np.searchsorted(total, total[start] + budget, side="right")) - 1
        if end < len(costs):
            end = _last_in(breaks, max(end - (end - start) // 4, previous + 1), end, default=end)
        starts.append(start)
        ends.append(end)
        spare = budget - costs[end] if end < len(costs) else budget  # the next window must hold a new word
        affordable = int(np.searchsorted(total, total[end] - min(budget // 2, spare)))
        latest = max(end - overlap, affordable, start + 1)
        start = _last_in(breaks, max(latest - overlap, affordable, start + 1), latest, default=latest)
    return Windows(np.array(starts, np.int64), np.array(ends, np.int64))


def sentence_windows(costs: ArrayLike, budget: int, overlap: int, sentence_starts: NDArray[np.integer]) -> Windows:
    """One window a sentence; a sentence over the budget becomes several windows."""
    costs = np.asarray(costs, np.int64)
    parts = []
    for start, end in pairwise([*sentence_starts, len(costs)]):
        part = cut_windows(costs[start:end], budget, overlap)
        parts.append((part.start + start, part.end + start))
    if not parts:
        return Windows(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Windows(np.concatenate([start for start, _ in parts]), np.concatenate([end for _, end in parts]))


def _last_in(places: Integers, low: int, high: int, default: int) -> int:
    """The last of the sorted places between low and high, both inclusive."""
    index = int(np.searchsorted(places, high, side="right")) - 1
    return int(places[index]) if index >= 0 and places[index] >= low else default
