"""Proposals: the one thing that every system outputs, spans of words with a type and a score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onoma.text.windows import Windows

Integers = NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


class Proposals(NamedTuple):
    """Proposed spans, one per row: five arrays of the same length."""

    window: Integers
    first: Integers  # word, counted from the start of the window (after `stitch`: of the texts)
    last: Integers  # word, inclusive
    type: Integers  # index into the types that were asked for
    score: NDArray[np.float32]

    @classmethod
    def concatenate(cls, parts: Iterable[Proposals]) -> Proposals:
        """The rows of all parts, in their order; without parts, no rows."""
        columns = zip(cls(_NONE, _NONE, _NONE, _NONE, np.zeros(0, np.float32)), *parts, strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Proposals:
        """Some of the rows, by index or mask."""
        return Proposals(self.window[rows], self.first[rows], self.last[rows], self.type[rows], self.score[rows])

    def in_windows(self, windows: Sequence[Integers]) -> Proposals:
        """The rows of each window once for every window that it stands for: `windows[i]` are those of window i.

        >>> one = Proposals(*(np.array([x]) for x in (0, 3, 4, 0, 0.9)))
        >>> one.in_windows([np.array([5, 7])]).window.tolist()
        [5, 7]
        """
        counts = np.array([len(own) for own in windows], np.int64)
        if (counts == 1).all():
            return self._replace(window=np.concatenate([_NONE, *windows])[self.window])
        repeated = self.take(np.repeat(np.arange(len(self.window)), counts[self.window]))
        return repeated._replace(window=np.concatenate([_NONE, *(windows[row] for row in self.window.tolist())]))

    def reaches(self, thresholds: ArrayLike) -> NDArray[np.bool_]:
        """Whether the score of each row reaches its threshold: one number, or one per type."""
        # compared in the precision of the scores, so that 0.8 reaches 0.8; a score of NaN reaches nothing
        limits = np.asarray(thresholds, self.score.dtype)
        return np.asarray(self.score >= (limits[self.type] if limits.ndim else limits))

    def above(self, thresholds: ArrayLike) -> Proposals:
        """The rows whose score reaches its threshold."""
        return self.take(self.reaches(thresholds))


def stitch(proposals: Proposals, windows: Windows) -> Proposals:
    """The proposals that belong to the window in which they were found, counted in words of the texts."""
    offset = windows.start[proposals.window]
    moved = proposals._replace(first=proposals.first + offset, last=proposals.last + offset)
    return moved.take(windows.owns(moved.window, moved.first, moved.last))
