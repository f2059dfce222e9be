"""Mentions as columns of numbers: the few operations on whole corpora that all measures are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def encode(left: tuple[Integers, ...], right: tuple[Integers, ...]) -> tuple[Integers, Integers]:
    """One number for each row of two tables: equal rows get the same number, and the numbers sort as the rows do.

    The columns hold numbers from 0 on.

    >>> left, right = (np.array([7, 7]), np.array([1, 2])), (np.array([7]), np.array([2]))
    >>> [codes.tolist() for codes in encode(left, right)]
    [[0, 1], [1]]
    """
    codes = np.zeros(len(left[0]) + len(right[0]), dtype=np.int64)
    for pair in zip(left, right, strict=True):
        column = np.concatenate(pair)
        size = int(column.max(initial=0)) + 1
        if (int(codes.max(initial=0)) + 1) * size > np.iinfo(np.int64).max:
            codes = _ranks(codes)
        codes = codes * size + column
    codes = _ranks(codes)
    return codes[: len(left[0])], codes[len(left[0]) :]


def _ranks(values: Integers) -> Integers:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def distinct(codes: Integers) -> tuple[Integers, Integers]:
    """The different codes in rising order, and for each the first row that has it."""
    values, rows = np.unique(codes, return_index=True)
    return values, rows.astype(np.int64)


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
    spans = (start, end), (other_start, other_end)
    events: list[tuple[int, int, int, int]] = []  # start, end, side, row
    for side, (starts, ends) in enumerate(spans):
        rows = np.flatnonzero(overlap_any(starts, ends, *spans[1 - side]))
        events += zip(starts[rows].tolist(), ends[rows].tolist(), [side] * len(rows), rows.tolist(), strict=True)
    pairs: list[tuple[int, int]] = []
    still_open: list[list[tuple[int, int]]] = [[], []]  # for each side (end, row)
    for begin, stop, side, row in sorted(events):
        facing = [(far_end, far_row) for far_end, far_row in still_open[1 - side] if far_end > begin]
        still_open[1 - side] = facing
        still_open[side].append((stop, row))
        pairs.extend((row, far_row) if side == 0 else (far_row, row) for _, far_row in facing)
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
