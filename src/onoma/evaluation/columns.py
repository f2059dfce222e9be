"""Operations on columns of numbers (the mentions of a whole corpus), which the measures are built on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def encode(left: tuple[Integers, ...], right: tuple[Integers, ...]) -> tuple[Integers, Integers]:
    """One code per row of two tables: equal rows get equal codes, and codes sort in the same order as rows.

    The tables are given as columns of non-negative numbers.

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
    """The distinct codes in ascending order, and for each of them the first row that has it."""
    values, rows = np.unique(codes, return_index=True)
    return values, rows.astype(np.int64)


def overlap_any(start: Integers, end: Integers, other_start: Integers, other_end: Integers) -> Booleans:
    """For each span [start, end), whether it shares a character with any of the other spans.

    A span overlaps one of the others exactly if, among those that start before its end, the largest end is greater
    than its start: one sort and one search, without a loop.
    """
    order = np.argsort(other_start, kind="stable")
    largest_end = np.maximum.accumulate(other_end[order])
    started = np.searchsorted(other_start[order], end, side="left")  # the number of others that start before the end
    result = started > 0
    result[result] = largest_end[started[result] - 1] > start[result]
    return result


def overlap_pairs(
    start: Integers, end: Integers, other_start: Integers, other_end: Integers
) -> tuple[Integers, Integers]:
    """All pairs of a span and another span that share a character, as two columns of row numbers.

    One pass from left to right that keeps the open spans of both sides. The cost is that of sorting plus one step per
    pair, independent of the length of documents.
    """
    spans = (start, end), (other_start, other_end)
    events: list[tuple[int, int, int, int]] = []  # start, end, side, row
    for side, (starts, ends) in enumerate(spans):
        rows = np.flatnonzero(overlap_any(starts, ends, *spans[1 - side]))
        events += zip(starts[rows].tolist(), ends[rows].tolist(), [side] * len(rows), rows.tolist(), strict=True)
    pairs: list[tuple[int, int]] = []
    still_open: list[list[tuple[int, int]]] = [[], []]  # (end, row) of each side
    for span_start, span_end, side, row in sorted(events):
        others = [(other_end, other_row) for other_end, other_row in still_open[1 - side] if other_end > span_start]
        still_open[1 - side] = others
        still_open[side].append((span_end, row))
        pairs.extend((row, other_row) if side == 0 else (other_row, row) for _, other_row in others)
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def pair_in_order(row: Integers, other_row: Integers, order: Integers) -> Integers:
    """Go through pairs of rows in the given order, and keep those whose rows are both still unpaired."""
    used: set[int] = set()
    other_used: set[int] = set()
    kept = []
    for place, one, other in zip(order.tolist(), row[order].tolist(), other_row[order].tolist(), strict=True):
        if one not in used and other not in other_used:
            used.add(one)
            other_used.add(other)
            kept.append(place)
    return np.array(kept, dtype=np.int64)
