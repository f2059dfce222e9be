"""From proposals to entities: thresholds, overlap, stitching. Pure functions on arrays.

Every system puts out the same thing, `Proposals`. Decoding takes those above their thresholds, from the
window that owns them, best first, and leaves out what conflicts with something better:

- flat: no two mentions share a word;
- nested: mentions may lie inside each other but not cross;
- any: mentions may overlap as they like.

"Better" is the higher score; equal scores go to the earlier start, then the earlier end, then the label
that comes first in the alphabet, so the order in which labels are asked for has no influence. A label that says
"none of the others", such as "miscellaneous", comes after all others: it gets what they leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onoma.entities import Entity
from onoma.errors import OnomaError
from onoma.text.windows import Windows
from onoma.text.words import Spans

CATCH_ALL = frozenset(
    [
        *("misc", "miscellaneous", "miscellaneous entity", "other", "others", "other entity"),
        *("其他", "其它", "其他实体", "杂项"),
    ]
)
"""Labels of what is none of the other types that are asked for."""

_ROUNDS = 3  # of accepting at once before walking

Overlap = Literal["flat", "nested", "any"]
Integers = NDArray[np.int64]


class Proposals(NamedTuple):
    """Spans of words that a system proposes, one a row; five arrays of the same length."""

    window: Integers
    first: Integers  # word, counted from the start of the window
    last: Integers  # word, inclusive
    type: Integers  # index of the type asked for
    score: NDArray[np.float32]

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Proposals:
        """Some of the proposals, by index or mask."""
        return Proposals(self.window[rows], self.first[rows], self.last[rows], self.type[rows], self.score[rows])


def above(proposals: Proposals, threshold: ArrayLike) -> Proposals:
    """The proposals that reach their threshold: one number, or one a proposal.

    For one a type, give `limits[proposals.type]`.
    """
    # In the precision of the scores, so that 0.8 reaches 0.8; a score that is not a number reaches nothing.
    return proposals.take(proposals.score >= np.asarray(threshold, proposals.score.dtype))


def stitch(proposals: Proposals, windows: Windows) -> Proposals:
    """What each window owns, in words of the document."""
    offset = windows.start[proposals.window]
    moved = proposals._replace(first=proposals.first + offset, last=proposals.last + offset)
    return moved.take(windows.owns(moved.window, moved.first, moved.last))


def decode(
    text: str,
    words: Spans,
    proposals: Proposals,
    labels: Sequence[str],
    *,
    threshold: ArrayLike = 0.5,
    overlap: Overlap = "flat",
    several_labels: bool = False,
    windows: Windows | None = None,
) -> list[Entity]:
    """The entities of one document, in order of their offsets.

    `proposals.type` counts into `labels`; `threshold` is one number or one a label. Without `windows` the
    proposals are in words of the document.

    >>> words = np.array([(0, 3), (4, 8), (9, 11), (12, 17)], np.int32)
    >>> one = Proposals(*(np.array([x]) for x in (0, 3, 3, 0, 0.9)))
    >>> decode("Tom flew to Paris", words, one, ["city"])
    [Entity(start=12, end=17, text='Paris', label='city', score=0.9)]
    """
    limits = np.asarray(threshold, float)
    if limits.ndim and len(limits) != len(labels):
        raise OnomaError(f"{len(limits)} thresholds were given for {len(labels)} labels")
    limits = np.broadcast_to(limits, len(labels))
    proposals = above(proposals, limits[proposals.type])
    if windows is not None:
        proposals = stitch(proposals, windows)
    rank = np.argsort(np.argsort(np.array(labels, object), kind="stable"))
    kept = select(
        proposals.first,
        proposals.last + 1,
        rank[proposals.type],
        to_choose_by(proposals.score, proposals.type, labels),
        overlap=overlap,
        several_labels=several_labels,
    )
    starts, ends = words[proposals.first[kept], 0].tolist(), words[proposals.last[kept], 1].tolist()
    rows = zip(starts, ends, proposals.type[kept].tolist(), proposals.score[kept].tolist(), strict=True)
    return [Entity(start, end, text[start:end], labels[kind], score) for start, end, kind, score in rows]


def to_choose_by(score: NDArray[np.float32], kind: Integers, labels: Sequence[str]) -> NDArray[np.float32]:
    """Scores for `select`: those of labels that mean "none of the others" lie below all others.

    >>> to_choose_by(np.array([0.9, 0.4], np.float32), np.array([0, 1]), ["MISC", "person"]).round(1).tolist()
    [-1.1, 0.4]
    """
    last = np.array([label.strip().casefold() in CATCH_ALL for label in labels], np.bool_)
    return score - 2 * last[kind].astype(score.dtype) if last.any() else score


def select(
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

    `end` is exclusive. `group` numbers the documents, which never conflict with each other, from 0.
    With `several_labels` a span that stays keeps all of its labels, else only the best one.
    """
    if overlap not in get_args(Overlap):
        raise OnomaError(f"overlap must be one of {', '.join(get_args(Overlap))}, got {overlap!r}")
    start, end, rank = np.asarray(start, np.int64), np.asarray(end, np.int64), np.asarray(rank, np.int64)
    if group is not None and len(start):
        shift = _group_offsets(np.asarray(group, np.int64), end)
        start, end = start + shift, end + shift
    start, end = _without_gaps(start, end)
    order = _best_first(np.asarray(score), start, end, rank)
    rows = order if overlap == "flat" else _first_of_each_span(order, start, end)
    if overlap != "any" and len(rows):
        taken = (_Flat if overlap == "flat" else _Nested)(int(end.max()))
        rows = rows[_walk(start[rows], end[rows], taken)]
    if several_labels:
        rows = _all_labels(rows, order, start, end, rank)
    return rows[np.lexsort((rank[rows], end[rows], start[rows]))]


def _group_offsets(group: Integers, end: Integers) -> Integers:
    """Puts the documents one after the other on a single line of words."""
    lengths = np.zeros(int(group.max()) + 1, np.int64)
    np.maximum.at(lengths, group, end)
    return (np.cumsum(lengths) - lengths)[group]


def _without_gaps(start: Integers, end: Integers) -> tuple[Integers, Integers]:
    """The spans on a line that has only the places where a span begins or ends: overlap is what it was."""
    used = np.zeros(int(end.max(initial=0)) + 1, np.int64)
    used[start] = used[end] = 1
    place = np.cumsum(used) - used
    return place[start], place[end]


def _best_first(score: NDArray[np.floating], start: Integers, end: Integers, rank: Integers) -> NDArray[np.intp]:
    """Rows by falling score; the few that tie are then put in order by start, end and rank."""
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
    """The best row of every span, best first."""
    _, leaders = np.unique(_span_keys(start, end)[order], return_index=True)
    return order[np.sort(leaders)]


def _all_labels(
    rows: NDArray[np.intp], order: NDArray[np.intp], start: Integers, end: Integers, rank: Integers
) -> NDArray[np.intp]:
    """Every label of the spans in `rows`, each label once."""
    keys = _span_keys(start, end)
    wanted = order[np.isin(keys[order], keys[rows])]
    _, leaders = np.unique(keys[wanted] * (int(rank.max(initial=0)) + 1) + rank[wanted], return_index=True)
    return wanted[leaders]


class _Taken(Protocol):
    """The spans accepted so far."""

    def free(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        """Which spans conflict with nothing accepted."""

    def leading(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        """Which of these spans, given best first, surely conflict with none that is better."""

    def add_all(self, start: Integers, end: Integers) -> None:
        """Accept spans that have no conflict."""

    def add(self, start: int, end: int) -> bool:
        """Accept one span unless it conflicts with something accepted."""


def _walk(start: Integers, end: Integers, taken: _Taken) -> Integers:
    """Greedy selection in the given order: the indices of the spans that are accepted.

    Spans come in batches of growing size. Of each batch, what conflicts with something accepted before
    is dropped at once, and what conflicts with nothing better is accepted at once, some times over. Only
    the rest, which is little in crowded and in sparse text alike, is walked one by one.
    """
    accepted: list[Integers] = []
    position, size = 0, 4096
    while position < len(start):
        batch = slice(position, position + size)
        rows = np.flatnonzero(taken.free(start[batch], end[batch])) + position
        for _ in range(_ROUNDS):
            leading = taken.leading(start[rows], end[rows])
            chosen, rows = rows[leading], rows[~leading]
            taken.add_all(start[chosen], end[chosen])
            rows = rows[taken.free(start[rows], end[rows])]
            accepted.append(chosen)
        added = map(taken.add, start[rows].tolist(), end[rows].tolist())
        accepted.append(rows[np.fromiter(added, np.bool_, len(rows))])
        position, size = position + size, size * 4
    return np.sort(np.concatenate(accepted))


class _Flat:
    """No two spans share a word: a flag a word."""

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
    """No two spans cross. For each place: how far spans that begin there reach, and how far back those that end there.

    A span crosses another that begins inside of it and reaches beyond its end, or that ends inside of it
    and reaches back before its start.
    """

    def __init__(self, length: int) -> None:
        self.reach_array = np.zeros(length + 1, np.int32)
        self.back_array = np.full(length + 1, length + 1, np.int32)
        self.reach, self.back = self.reach_array.data, self.back_array.data  # faster one by one
        self.edges = bytearray(length + 1)  # where accepted spans begin or end

    def free(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        ahead = _inside(self.reach_array, np.maximum, start, end, empty=0)
        behind = _inside(self.back_array, np.minimum, start, end, empty=len(self.back_array))
        return np.asarray((ahead <= end) & (behind >= start))

    def leading(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        """Those that are better than all with an edge inside of them: whatever crosses them is among these."""
        rank = np.arange(len(start), dtype=np.int32)
        best = np.full(len(self.edges), len(start), np.int32)  # of the spans with an edge at each place
        best[np.stack([start, end], axis=1)[::-1].ravel()] = np.repeat(rank[::-1], 2)  # the best is written last
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
    """The least or greatest value at the places inside of each span, start + 1 to end - 1; `empty` if there is none."""
    inner = end - start - 1
    found = np.full(len(start), empty, np.int32)
    step, most = 1, int(inner.max(initial=0))
    while step <= most:  # values of stretches of `step` places: two of them, overlapping, make up any range
        rows = np.flatnonzero((inner >= step) & (inner < 2 * step))
        found[rows] = pick(values[start[rows] + 1], values[end[rows] - step])
        step *= 2
        if step <= most:
            values = pick(values[: -(step // 2)], values[step // 2 :])
    return found
