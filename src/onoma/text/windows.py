"""Windows: runs of words that fit an encoder. Long documents become overlapping windows; nothing is truncated.

Every span of words belongs to exactly one window, the one in which it lies more centrally: the border between two
neighbouring windows is the middle of their overlap, and a span belongs to the side on which its own middle lies. A
span that is not longer than the overlap lies entirely inside the window it belongs to, so each span is found once,
with the most context.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        borders = self.start[1:] + self.end[:-1]  # middle of each overlap, times two
        middle = np.asarray(first) + np.asarray(last) + 1  # middle of each span, times two
        return np.asarray(np.searchsorted(borders, middle, side="right") == np.asarray(window))


def cut_windows(
    costs: ArrayLike, budget: int, overlap: int = 0, sentence_starts: NDArray[np.integer] | None = None
) -> Windows:
    """Cut words into windows whose costs (numbers of tokens, for instance) add up to at most `budget`.

    Neighbouring windows share `overlap` words, or as many as fit into half of the budget. A window ends at a sentence
    boundary if there is one in its last quarter, and starts at one if there is one just before the overlap. A word
    that costs more than the budget is an error, because it could only be truncated.

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
        spare = budget - costs[end] if end < len(costs) else budget  # the next window needs room for a new word
        affordable = int(np.searchsorted(total, total[end] - min(budget // 2, spare)))
        latest = max(end - overlap, affordable, start + 1)
        start = _last_in(breaks, max(latest - overlap, affordable, start + 1), latest, default=latest)
    return Windows(np.array(starts, np.int64), np.array(ends, np.int64))


def _last_in(places: Integers, low: int, high: int, default: int) -> int:
    """The last of the sorted places in [low, high], both inclusive."""
    index = int(np.searchsorted(places, high, side="right")) - 1
    return int(places[index]) if index >= 0 and places[index] >= low else default
