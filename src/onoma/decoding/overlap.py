"""Overlap: which of several overlapping spans stay. Greedy, best first, vectorised.

- flat: no two spans share a word;
- nested: spans may contain each other but not cross;
- any: spans may overlap in any way.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onoma.errors import OnomaError

_ROUNDS = 3  # vectorised rounds before the remaining spans are visited one by one

Overlap = Literal["flat", "nested", "any"]
Integers = NDArray[np.int64]


def check_overlap(overlap: str) -> None:
    """Raise an error unless `overlap` is one of the three modes."""
    if overlap not in get_args(Overlap):
        raise OnomaError(f"overlap must be one of {', '.join(get_args(Overlap))}, got {overlap!r}")


def resolve_overlaps(
    start: ArrayLike,
    end: ArrayLike,
    rank: ArrayLike,
    score: ArrayLike,
    *,
    overlap: Overlap = "flat",
    several_labels: bool = False,
    group: ArrayLike | None = None,
) -> NDArray[np.intp]:
    """The rows that stay when overlaps are resolved, sorted by group, start, end and rank of the label.

    Rows are visited by falling score; a row stays unless it conflicts with one that was visited before.

    Args:
        start, end: the span, `end` exclusive.
        rank: the rank of the label, which decides between equal scores.
        several_labels: a span that stays keeps all of its labels instead of the best one.
        group: documents, counted from 0, which never conflict with each other.
    """
    check_overlap(overlap)
    start, end, rank = np.asarray(start, np.int64), np.asarray(end, np.int64), np.asarray(rank, np.int64)
    if group is not None and len(start):
        shift = _group_offsets(np.asarray(group, np.int64), end)
        start, end = start + shift, end + shift
    start, end = _compress(start, end)
    order = _best_first(np.asarray(score), start, end, rank)
    rows = order if overlap == "flat" else _first_of_each_span(order, start, end)
    if overlap != "any" and len(rows):
        accepted = (_Flat if overlap == "flat" else _Nested)(int(end.max()))
        rows = rows[_accept_greedily(start[rows], end[rows], accepted)]
    if several_labels:
        rows = _all_labels(rows, order, start, end, rank)
    return rows[np.lexsort((rank[rows], end[rows], start[rows]))]


def _group_offsets(group: Integers, end: Integers) -> Integers:
    """Offsets that put the documents one after the other."""
    lengths = np.zeros(int(group.max()) + 1, np.int64)
    np.maximum.at(lengths, group, end)
    return (np.cumsum(lengths) - lengths)[group]


def _compress(start: Integers, end: Integers) -> tuple[Integers, Integers]:
    """The same spans, counted only in positions where a span starts or ends; their overlaps do not change."""
    used = np.zeros(int(end.max(initial=0)) + 1, np.int64)
    used[start] = used[end] = 1
    place = np.cumsum(used) - used
    return place[start], place[end]


def _best_first(score: NDArray[np.floating], start: Integers, end: Integers, rank: Integers) -> NDArray[np.intp]:
    """Rows by falling score; rows with equal scores are then sorted by start, end and rank."""
    order = np.argsort(-score, kind="stable")
    ordered = score[order]
    ties = np.zeros(len(order) + 1, np.bool_)
    ties[1:-1] = ordered[1:] == ordered[:-1]
    tied = np.flatnonzero(ties[1:] | ties[:-1])
    rows = order[tied]
    order[tied] = rows[np.lexsort((rank[rows], end[rows], start[rows], -score[rows]))]
    return order


def _span_keys(start: Integers, end: Integers) -> Integers:
    return start * (int(end.max(initial=0)) + 1) + end


def _first_of_each_span(order: NDArray[np.intp], start: Integers, end: Integers) -> NDArray[np.intp]:
    """The best row of each span, best first."""
    _, leaders = np.unique(_span_keys(start, end)[order], return_index=True)
    return order[np.sort(leaders)]


def _all_labels(
    rows: NDArray[np.intp], order: NDArray[np.intp], start: Integers, end: Integers, rank: Integers
) -> NDArray[np.intp]:
    """All labels of the spans in `rows`, each label once."""
    keys = _span_keys(start, end)
    wanted = order[np.isin(keys[order], keys[rows])]
    _, leaders = np.unique(keys[wanted] * (int(rank.max(initial=0)) + 1) + rank[wanted], return_index=True)
    return wanted[leaders]


class _Accepted(Protocol):
    """The spans that were accepted so far."""

    def free(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        """Which spans do not conflict with an accepted one."""

    def leading(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        """Which of these spans, given best first, certainly do not conflict with a better one among them."""

    def add_all(self, start: Integers, end: Integers) -> None:
        """Accept spans that do not conflict with each other or with accepted ones."""

    def add(self, start: int, end: int) -> bool:
        """Accept one span unless it conflicts with an accepted one."""


def _accept_greedily(start: Integers, end: Integers, accepted: _Accepted) -> Integers:
    """Greedy selection in the given order: the indices of the spans that are accepted.

    Spans are processed in batches of growing size. Of each batch, spans that conflict with an accepted one are dropped
    at once, and spans that conflict with no better one are accepted at once, for some rounds. Only the few that
    remain, in dense and in sparse text, are visited one by one.
    """
    chosen: list[Integers] = []
    position, size = 0, 4096
    while position < len(start):
        batch = slice(position, position + size)
        rows = np.flatnonzero(accepted.free(start[batch], end[batch])) + position
        for _ in range(_ROUNDS):
            leading = accepted.leading(start[rows], end[rows])
            added, rows = rows[leading], rows[~leading]
            accepted.add_all(start[added], end[added])
            rows = rows[accepted.free(start[rows], end[rows])]
            chosen.append(added)
        single = map(accepted.add, start[rows].tolist(), end[rows].tolist())
        chosen.append(rows[np.fromiter(single, np.bool_, len(rows))])
        position, size = position + size, size * 4
    return np.sort(np.concatenate(chosen))


class _Flat:
    """No two spans share a word: one flag per word."""

    def __init__(self, length: int) -> None:
        self.flags = bytearray(length)

    def free(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        used = np.zeros(len(self.flags) + 1, np.int32)
        np.cumsum(np.frombuffer(self.flags, np.uint8), out=used[1:])
        return np.asarray(used[end] == used[start])

    def leading(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        order = np.argsort(start, kind="stable")
        first, after = start[order], end[order]
        apart = np.ones(len(start), np.bool_)
        apart[order[1:]] = np.maximum.accumulate(after)[:-1] <= first[1:]
        apart[order[:-1]] &= after[:-1] <= first[1:]
        return apart

    def add_all(self, start: Integers, end: Integers) -> None:
        change = np.zeros(len(self.flags) + 1, np.int8)
        change[start] += 1
        change[end] -= 1
        flags = np.frombuffer(self.flags, np.uint8)
        flags |= np.cumsum(change[:-1], dtype=np.int8).view(np.uint8)

    def add(self, start: int, end: int) -> bool:
        if self.flags.find(1, start, end) >= 0:
            return False
        self.flags[start:end] = b"\1" * (end - start)
        return True


class _Nested:
    """No two spans cross.

    Keeps for each position the farthest end of the spans that start there, and the earliest start of those that end
    there. A span is crossed by another that starts inside it and ends behind it, or ends inside it and starts before.
    """

    def __init__(self, length: int) -> None:
        self.reach_array = np.zeros(length + 1, np.int32)
        self.back_array = np.full(length + 1, length + 1, np.int32)
        self.reach, self.back = self.reach_array.data, self.back_array.data  # faster for single values
        self.edges = bytearray(length + 1)  # positions where accepted spans start or end

    def free(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        ahead = _inside(self.reach_array, np.maximum, start, end, empty=0)
        behind = _inside(self.back_array, np.minimum, start, end, empty=len(self.back_array))
        return np.asarray((ahead <= end) & (behind >= start))

    def leading(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        """Spans that are better than all that have an edge inside them: a span that crosses them has one there."""
        rank = np.arange(len(start), dtype=np.int32)
        best = np.full(len(self.edges), len(start), np.int32)  # best rank of the spans with an edge at each position
        best[np.stack([start, end], axis=1)[::-1].ravel()] = np.repeat(rank[::-1], 2)  # the best one is written last
        return np.asarray(_inside(best, np.minimum, start, end, empty=len(start)) > rank)

    def add_all(self, start: Integers, end: Integers) -> None:
        np.maximum.at(self.reach_array, start, end.astype(np.int32))
        np.minimum.at(self.back_array, end, start.astype(np.int32))
        edges = np.frombuffer(self.edges, np.uint8)
        edges[start] = edges[end] = 1

    def add(self, start: int, end: int) -> bool:
        if self.edges.find(1, start + 1, end) >= 0:
            inside = slice(start + 1, end)
            if max(self.reach[inside]) > end or min(self.back[inside]) < start:
                return False
        self.reach[start] = max(self.reach[start], end)
        self.back[end] = min(self.back[end], start)
        self.edges[start] = self.edges[end] = 1
        return True


def _inside(values: NDArray[np.int32], pick: np.ufunc, start: Integers, end: Integers, empty: int) -> NDArray[np.int32]:
    """The minimum or maximum of the values at start + 1 to end - 1 of each span; `empty` if there are none."""
    inner = end - start - 1
    found = np.full(len(start), empty, np.int32)
    step, most = 1, int(inner.max(initial=0))
    while step <= most:  # sparse table: values of runs of `step` positions, two of which cover any range
        rows = np.flatnonzero((inner >= step) & (inner < 2 * step))
        found[rows] = pick(values[start[rows] + 1], values[end[rows] - step])
        step *= 2
        if step <= most:
            values = pick(values[: -(step // 2)], values[step // 2 :])
    return found
