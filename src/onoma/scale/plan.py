"""The plan: which rows of which file each shard holds. It depends on the input and on nothing else.

The rows of a file are cut into groups, which the model reads together: scores differ in the last digits with the texts
that share a batch, so equal results need equal groups. A shard is some whole groups. Workers, engines and the size of
shards therefore have no influence on the result.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from onoma.scale.rows import Row, RowReader

GROUP_ROWS = 256
"""Rows that the model reads together at most."""
GROUP_BYTES = 100_000
"""Bytes from which a group of rows is complete."""

SHARD_ROWS = 4096
SHARD_BYTES = 4_000_000
"""Bytes from which a shard is complete: some minutes of work at most."""
MANY_SHARDS = 10_000
"""With more shards than about this, they become larger instead."""


class Shard(NamedTuple):
    """Consecutive rows of a file."""

    file: int
    first: int
    rows: int
    offset: int  # bytes before the first row, for files of lines


class GroupCounter:
    """Says where groups end; the same when a file is planned and when it is read."""

    def __init__(self) -> None:
        self.rows = self.bytes = 0

    def is_complete_with(self, size: int) -> bool:
        """Count a row of some bytes, and whether it is the last one of a group."""
        self.rows += 1
        self.bytes += size
        complete = self.rows >= GROUP_ROWS or self.bytes >= GROUP_BYTES
        if complete:
            self.rows = self.bytes = 0
        return complete


@dataclass(slots=True)
class FilePlan:
    """The groups of a file: where each of them starts."""

    rows: int = 0
    bytes: int = 0
    first: array[int] = field(default_factory=lambda: array("q"))
    offset: array[int] = field(default_factory=lambda: array("q"))
    before: array[int] = field(default_factory=lambda: array("q"))  # bytes of the groups before

    def add(self, row: Row, starts_group: bool) -> None:
        """Add the next row."""
        if starts_group:
            self.first.append(row.number)
            self.offset.append(row.offset)
            self.before.append(self.bytes)
        self.rows += 1
        self.bytes += row.size


def scan(rows: Iterator[Row]) -> FilePlan:
    """Find the groups of a file."""
    plan, counter, starts_group = FilePlan(), GroupCounter(), True
    for row in rows:
        plan.add(row, starts_group)
        starts_group = counter.is_complete_with(row.size)
    return plan


def cut_shards(files: Sequence[FilePlan], rows_per_shard: int | None = None) -> list[Shard]:
    """Shards of whole groups, each with rows of one file."""
    rows, size = _shard_size(files, rows_per_shard)
    return [shard for number, plan in enumerate(files) for shard in _cut_file(number, plan, rows, size)]


def _shard_size(files: Sequence[FilePlan], rows_per_shard: int | None) -> tuple[int, int]:
    """The rows and bytes from which a shard is complete."""
    size = max(SHARD_BYTES, sum(plan.bytes for plan in files) // MANY_SHARDS)
    if rows_per_shard is not None:
        return rows_per_shard, size
    return max(SHARD_ROWS, sum(plan.rows for plan in files) // MANY_SHARDS), size


def _cut_file(number: int, plan: FilePlan, rows: int, size: int) -> Iterator[Shard]:
    start = 0
    for group in range(1, len(plan.first) + 1):
        is_last = group == len(plan.first)
        first, before = (plan.rows, plan.bytes) if is_last else (plan.first[group], plan.before[group])
        if is_last or first - plan.first[start] >= rows or before - plan.before[start] >= size:
            yield Shard(number, plan.first[start], first - plan.first[start], plan.offset[start])
            start = group


class ShardRows:
    """Reads the rows of shards. A file that is compressed is read on from the last shard where that is possible."""

    def __init__(self, readers: Sequence[RowReader]) -> None:
        self.readers = readers
        self._file, self._next = -1, 0  # the next row that the open file yields
        self._rows: Iterator[Row] = iter(())

    def read(self, shard: Shard) -> Iterator[Row]:
        """The rows of a shard."""
        self._go_to(shard)
        end = shard.first + shard.rows
        while self._next < end:
            row = next(self._rows)
            self._next = row.number + 1
            yield self.readers[shard.file].parse(row)

    def _go_to(self, shard: Shard) -> None:
        reader = self.readers[shard.file]
        if self._file != shard.file or self._next > shard.first or (reader.can_seek and self._next < shard.first):
            self._rows = reader.rows(shard.first, shard.offset) if reader.can_seek else reader.rows()
            self._file, self._next = shard.file, shard.first if reader.can_seek else 0
        while self._next < shard.first:
            self._next = next(self._rows).number + 1
