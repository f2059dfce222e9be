"""Mentions as columns of numbers: the few operations on whole corpora that all measures are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def encode(left: tuple[Integers, ...], right: tuple[Integers, ...]) -> tuple[Integers, Integers]:
    """One number for each row of two tables: equal rows get the same number, and the numbers sort as the rows do.

    >>> left, right = (np.array([7, 7]), np.array([1, 2])), (np.array([7]), np.array([2]))
    >>> [codes.tolist() for codes in encode(left, right)]
    [[0, 1], [1]]
    """
    columns = [np.concatenate(pair) for pair in zip(left, right, strict=True)]
    order = np.lexsort(columns[::-1])
    changes = np.zeros(len(order), dtype=bool)
    for column in columns:
        sorted_column = column[order]
        changes[1:] |= sorted_column[1:] != sorted_column[:-1]
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(changes)
    return codes[: len(left[0])], codes[len(left[0]) :]


def overlap_any(start: Integers, end: Integers, other_start: Integers, other_end: Integers) -> Booleans:
    """For each span [start, end), whether it shares a character with any of the other spans.

    A span overlaps one of the others exactly when, of those that begin before its end, the farthest end
    lies behind its start: one sort and one search, with no loop.
    """
    order = np.argsort(other_start, kind="stable")
    reach = np.maximum.accumulate(other_end[order])
    begun = np.searchsorted(other_start[order], end, side="left")
    result = begun > 0
    result[result] = reach[begun[result] - 1] > start[result]
    return result


def overlap_pairs(
    start: Integers, end: Integers, other_start: Integers, other_end: Integers
) -> tuple[Integers, Integers]:
    """Every (span, other span) that share a character, as two columns of row numbers.

    A sweep from left to right that keeps the spans still open on each side: its cost is that of sorting
    plus one step a pair, however long the documents are.
    """
    alone = ~overlap_any(start, end, other_start, other_end), ~overlap_any(other_start, other_end, start, end)
    sides = ((start, end), (other_start, other_end))
    events = sorted(
        (int(begin), int(stop), side, int(row))
        for side, (begins, stops) in enumerate(sides)
        for row in np.flatnonzero(~alone[side])
        for begin, stop in [(begins[row], stops[row])]
    )
    pairs: list[tuple[int, int]] = []
    still_open: list[list[tuple[int, int]]] = [[], []]  # for each side (end, row)
    for begin, stop, side, row in events:
        facing = [(far_end, far_row) for far_end, far_row in still_open[1 - side] if far_end > begin]
        still_open[1 - side] = facing
        still_open[side].append((stop, row))
        pairs.extend((row, far_row) if side == 0 else (far_row, row) for _, far_row in facing)
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]
