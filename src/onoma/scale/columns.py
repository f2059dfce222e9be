"""Columns of the output in Parquet: their types, found in the input.

Values of one column in JSON lines may have different types, or be objects with ever new keys. Such a column becomes a
column of strings, each of them a value in JSON. The metadata of its field says so.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from onoma.errors import DataError
from onoma.scale.rows import ParquetTable, Row, RowReader
from onoma.scale.storage import require

if TYPE_CHECKING:
    import pyarrow as pa

MAX_FIELDS = 100
"""Objects with more fields than this are stored as JSON."""

UNWRITABLE = (OverflowError, UnicodeError)
"""What pyarrow raises for some values, beside its own exceptions."""

_JSON = {b"onoma": b"json"}  # metadata of fields
_RECORDS_AT_ONCE = 1024


def entity_type() -> pa.DataType:
    """The type of the column of entities."""
    import pyarrow as pa

    fields = {"start": pa.int64(), "end": pa.int64(), "text": pa.string(), "label": pa.string(), "score": pa.float64()}
    return pa.list_(pa.struct(list(fields.items())))


class ColumnTypes:
    """Finds the types of the columns of a file while its rows are counted."""

    def __init__(self, reader: RowReader, entities_column: str) -> None:
        """Rows that have the column of entities already are left out: they are not written."""
        require("pyarrow", "output in Parquet")
        self.reader, self.entities_column = reader, entities_column
        self.types: dict[str, pa.DataType | None] = {}  # None: stored as JSON
        self.waiting: list[dict[str, Any]] = []

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, whose records are taken into account."""
        for row in rows:
            self.reader.parse(row)
            if row.record is not None and row.error is None and self.entities_column not in row.record:
                self.waiting.append(row.record)
            if len(self.waiting) == _RECORDS_AT_ONCE:
                self._add_waiting()
            yield row
        self._add_waiting()

    def _add_waiting(self) -> None:
        names = dict.fromkeys(name for record in self.waiting for name in record)
        for name in names:
            found = _infer([record.get(name) for record in self.waiting])
            self.types[name] = _common(self.types[name], found) if name in self.types else found
        self.waiting = []

    def schema(self) -> pa.Schema:
        """The schema of the file."""
        import pyarrow as pa

        if isinstance(self.reader, ParquetTable):
            return self.reader.open().schema_arrow.remove_metadata()
        return pa.schema([_field(name, kind) for name, kind in self.types.items()])


def _infer(values: Sequence[Any]) -> pa.DataType | None:
    import pyarrow as pa

    try:
        found = pa.array(values).type  # unlike `infer_type`, it refuses values of different types
    except (pa.ArrowException, *UNWRITABLE):  # of different types, too large, or not UTF-8
        return None
    return found if _is_storable(found) else None


def _is_storable(kind: pa.DataType) -> bool:
    """Whether Parquet can hold a type: no objects without fields, and not too many fields."""
    inner = [kind]
    for one in inner:  # grows
        inner += [one.field(place).type for place in range(one.num_fields)]
        if len(inner) > MAX_FIELDS or str(one) == "struct<>":
            return False
    return True


def _common(one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
    """A type for the values of both; None if there is none."""
    import pyarrow as pa

    if one is None or other is None:
        return None
    try:
        found = pa.unify_schemas([pa.schema([("x", one)]), pa.schema([("x", other)])], promote_options="permissive")
    except pa.ArrowException:
        return None
    return found.field(0).type if _is_storable(found.field(0).type) else None


def _field(name: str, kind: pa.DataType | None) -> pa.Field:
    import pyarrow as pa

    if kind is None:
        return pa.field(name, pa.string(), metadata=_JSON)
    return pa.field(name, pa.string() if pa.types.is_null(kind) else kind)


def unify(schemas: Sequence[pa.Schema], names: Sequence[str]) -> pa.Schema:
    """The schema of all files; `names` are those of the files."""
    import pyarrow as pa

    fields: dict[str, pa.Field] = {}
    for schema, file in zip(schemas, names, strict=True):
        for field in schema:
            known = fields.setdefault(field.name, field)
            if known.type == field.type:
                fields[field.name] = field if is_json(field) else known
                continue
            kind = _common(known.type, field.type)
            if kind is None and not (is_json(known) or is_json(field)):
                fix = "convert the column to one type, or annotate the files into folders of their own"
                message = f"the column {field.name!r} is {field.type} here but {known.type} in another file"
                raise DataError(message, path=file, fix=fix)
            fields[field.name] = _field(field.name, None if is_json(known) or is_json(field) else kind)
    return pa.schema(list(fields.values()))


def read_schema(text: str | None) -> pa.Schema | None:
    """A schema from its serialised form in base64."""
    if text is None:
        return None
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def is_json(field: pa.Field) -> bool:
    """Whether a column holds JSON because its values have no common type."""
    return bool(field.metadata == _JSON)


def to_table(records: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Records as a table; a column that they do not have is null."""
    import pyarrow as pa

    columns = []
    for field in schema:
        values = [record.get(field.name) for record in records]
        if is_json(field):
            values = [None if one is None else json.dumps(one, ensure_ascii=False) for one in values]
        elif pa.types.is_floating(field.type):
            values = [float(one) if isinstance(one, int) else one for one in values]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)
