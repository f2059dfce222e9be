"""Shards as files of JSON lines or Parquet: the columns of the input, and one with entities."""

from __future__ import annotations

import base64
import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from itertools import groupby
from typing import IO, TYPE_CHECKING, Any

from onoma.entities import Entity
from onoma.scale.columns import UNWRITABLE, entity_type, is_json, to_table
from onoma.scale.rows import MAX_REASON, Row

if TYPE_CHECKING:
    import pyarrow as pa

DECIMALS = 4
"""Of scores, as in the output of `onoma extract`."""

_FLUSH_ROWS, _FLUSH_BYTES = 1024, 16_000_000  # of a row group of Parquet


class ShardWriter(ABC):
    """Writes the rows of one shard, and counts what is written."""

    def __init__(self) -> None:
        self.documents = 0
        self.labels: Counter[str] = Counter()
        self.errors: list[tuple[int, str]] = []  # numbers of rows that cannot be written, and why

    @abstractmethod
    def write(self, row: Row, entities: Sequence[Entity]) -> None:
        """Add a row."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is left."""

    def count(self, entities: Sequence[Mapping[str, Any]]) -> None:
        """Count a row that is written."""
        self.documents += 1
        self.labels.update(entity["label"] for entity in entities)


def as_values(entities: Sequence[Entity]) -> list[dict[str, Any]]:
    """Entities as plain values, with rounded scores."""
    return [entity.to_dict() | {"score": round(entity.score, DECIMALS)} for entity in entities]


class JsonLinesWriter(ShardWriter):
    """One JSON object per line. What comes from JSON lines stays as it is, character by character."""

    def __init__(self, file: IO[bytes], column: str) -> None:
        super().__init__()
        self.file, self.column = file, json.dumps(column, ensure_ascii=False)

    def write(self, row: Row, entities: Sequence[Entity]) -> None:
        start = row.line if row.line is not None else json.dumps(_plain(row.values()), ensure_ascii=False)
        found = as_values(entities)
        ending = f"{self.column}: {json.dumps(found, ensure_ascii=False)}}}\n"
        self.file.write(f"{start[:-1].rstrip()}, {ending}".encode())
        self.count(found)

    def finish(self) -> None:
        """Everything is written already."""


def _plain(value: Any) -> Any:
    """A value of Parquet as JSON has it: numbers that JSON cannot write become null, bytes base64."""
    match value:
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case float():
            return value if math.isfinite(value) else None
        case None | str() | bool() | int():
            return value
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case datetime() | date() | time():
            return value.isoformat()
    return str(value)


class ParquetWriter(ShardWriter):
    """Row groups of about a thousand rows."""

    def __init__(self, file: IO[bytes], column: str, schema: pa.Schema) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter as Writer

        super().__init__()
        self.schema, self.column = schema, pa.field(column, entity_type())
        self.rows: list[Row] = []
        self.entities: list[list[dict[str, Any]]] = []
        self.bytes = 0
        self.writer = Writer(file, schema.append(self.column), compression="zstd")

    def write(self, row: Row, entities: Sequence[Entity]) -> None:
        self.rows.append(row)
        self.entities.append(as_values(entities))
        self.bytes += row.size
        if len(self.rows) >= _FLUSH_ROWS or self.bytes >= _FLUSH_BYTES:
            self._flush()

    def finish(self) -> None:
        self._flush()
        self.writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self.rows:
            return
        try:
            tables = [self._table(self.rows, self.entities)]
            written = self.entities
        except (pa.ArrowException, *UNWRITABLE):
            tables, written = self._try_rows()
        if tables:
            self.writer.write_table(pa.concat_tables(tables))
        for entities in written:
            self.count(entities)
        self.rows, self.entities, self.bytes = [], [], 0

    def _try_rows(self) -> tuple[list[pa.Table], list[list[dict[str, Any]]]]:
        """The same row by row; those that fail become errors."""
        import pyarrow as pa

        tables, written = [], []
        for row, entities in zip(self.rows, self.entities, strict=True):
            try:
                tables.append(self._table([row], [entities]))
                written.append(entities)
            except (pa.ArrowException, *UNWRITABLE) as error:
                self.errors.append((row.number, f"the row cannot be written as Parquet ({error})"[:MAX_REASON]))
        return tables, written

    def _table(self, rows: Sequence[Row], entities: Sequence[list[dict[str, Any]]]) -> pa.Table:
        import pyarrow as pa

        if rows[0].arrow is None:
            table = to_table([row.values() for row in rows], self.schema)
        else:
            table = _take(rows, self.schema)
        return table.append_column(self.column, pa.array(entities, self.column.type))


def _take(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """Rows of record batches as one table."""
    import pyarrow as pa

    sources = [row.arrow for row in rows if row.arrow is not None]
    slices = []
    for _, own in groupby(enumerate(sources), key=lambda one: (id(one[1].batch), one[1].place - one[0])):
        run = [source for _, source in own]  # consecutive rows: `take` does not know all types, such as string views
        slices.append(run[0].batch.slice(run[0].place, len(run)))
    table = pa.Table.from_batches(slices)
    return pa.Table.from_arrays([_convert(table, field) for field in schema], schema=schema)


def _convert(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """The column of a table for a field of the output, which may have another type."""
    import pyarrow as pa

    if field.name not in table.column_names:
        return pa.chunked_array([pa.nulls(len(table), field.type)])
    column = table.column(field.name)
    if is_json(field) and not is_json(table.schema.field(field.name)):
        values = (None if one is None else json.dumps(_plain(one), ensure_ascii=False) for one in column.to_pylist())
        return pa.chunked_array([pa.array(values, field.type)])
    return column if column.type == field.type else column.cast(field.type)
