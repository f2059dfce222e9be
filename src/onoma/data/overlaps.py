"""Mentions that overlap: how many pairs there are, and the first pair."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from onoma.entities import Entity


class Overlaps(NamedTuple):
    """Numbers of pairs of mentions: one inside the other, partly overlapping, or with the same span."""

    nested: int
    crossing: int
    same_span: int


def count_overlaps(entities: Iterable[Entity]) -> Overlaps:
    """Count the pairs of mentions that overlap, in one pass from left to right.

    >>> count_overlaps([Entity(0, 4, "Rome", "city"), Entity(0, 9, "Rome Open", "event")])
    Overlaps(nested=1, crossing=0, same_span=0)
    """
    spans = sorted(((entity.start, entity.end) for entity in entities), key=lambda span: (span[0], -span[1]))
    same_span = sum(count * (count - 1) // 2 for count in Counter(spans).values())
    enclosed = crossing = 0
    open_ends: list[int] = []  # sorted ends of the mentions that reach beyond the current start
    for start, end in spans:
        del open_ends[: bisect_right(open_ends, start)]
        shorter = bisect_left(open_ends, end)
        crossing += shorter
        enclosed += len(open_ends) - shorter
        insort(open_ends, end)
    return Overlaps(enclosed - same_span, crossing, same_span)


def first_overlap(
    entities: Iterable[Entity], accepts: Callable[[Entity, Entity], bool] = lambda left, right: True
) -> tuple[Entity, Entity] | None:
    """The first pair of mentions that share a character and that `accepts` accepts; None if there is no such pair.

    The left mention of a pair starts first, or is the longer one if both start together. `accepts` may ask whether
    the pair is nested or crossing: until the first pair of either kind, comparing each mention with the last one that
    is still open is enough.

    >>> first_overlap([Entity(0, 4, "Rome", "city"), Entity(0, 9, "Rome Open", "event")])[0].text
    'Rome Open'
    """
    still_open: list[Entity] = []
    for entity in sorted(entities, key=lambda one: (one.start, -one.end)):
        while still_open and still_open[-1].end <= entity.start:
            still_open.pop()
        if still_open and accepts(still_open[-1], entity):
            return still_open[-1], entity
        still_open.append(entity)
    return None
