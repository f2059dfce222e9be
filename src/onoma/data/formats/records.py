"""Records: JSON objects with checked fields, and what the formats with one document per JSON object share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from onoma.data.formats.base import Format, located, short_repr
from onoma.data.formats.json_values import read_values
from onoma.entities import Document
from onoma.errors import DataError
from onoma.files import atomic_write, plain_suffix

_SNIFFED_RECORDS = 100


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object with its file and line. Its methods return a field of one type, or raise a DataError."""

    fields: dict[str, Any]
    path: Path
    line: int
    example: str

    def __contains__(self, key: str) -> bool:
        return key in self.fields

    def error(self, message: str) -> DataError:
        return DataError(message, path=self.path, line=self.line, fix=f"a record looks like {self.example}")

    def _field(self, key: str, expected: str, accepts: Callable[[Any], bool]) -> Any:
        if key not in self.fields:
            raise self.error(f"the key {key!r} is missing")
        value = self.fields[key]
        if not accepts(value):
            raise self.error(f"{key!r} must be {expected}, got {short_repr(value)}")
        return value

    def text(self, key: str) -> str:
        value: str = self._field(key, "a string", _is_text)
        return value

    def texts(self, key: str) -> list[str]:
        value: list[str] = self._field(key, "a list of strings", _list_of(_is_text))
        return value

    def integer(self, key: str) -> int:
        value: int = self._field(key, "an integer", _is_integer)
        return value

    def number(self, key: str) -> float:
        return float(self._field(key, "a number", _is_number))

    def identifier(self, key: str) -> str | int | None:
        """A string or an integer; None if it is missing or null."""
        if self.fields.get(key) is None:
            return None
        value: str | int = self._field(key, "a string or an integer", lambda one: _is_text(one) or _is_integer(one))
        return value

    def others(self, known: Collection[str]) -> dict[str, Any]:
        """All fields except the known ones."""
        return _without(self.fields, known)

    def records(self, key: str) -> list[Record]:
        values = self._field(key, "a list of objects", _list_of(lambda item: isinstance(item, dict)))
        return [Record(value, self.path, self.line, self.example) for value in values]

    def pairs(self, key: str) -> list[tuple[int, int]]:
        return [(start, end) for start, end in self._field(key, "a list of [start, end]", _list_of(_is_pair))]

    def triples(self, key: str) -> list[tuple[int, int, str]]:
        values = self._field(key, "a list of [start, end, label]", _list_of(_is_triple))
        return [(start, end, label) for start, end, label in values]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return type(value) is int  # isinstance would accept True


def _is_number(value: Any) -> bool:
    return (_is_integer(value) and abs(value) < 1e300) or (isinstance(value, float) and math.isfinite(value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_integer, value))


def _is_triple(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and _is_pair(value[:2]) and _is_text(value[2])


def _list_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(accepts, value))


def _without(fields: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}


def read_records(path: Path, example: str) -> Iterator[Record]:
    """The objects of a file of JSON lines, or of one JSON array; `example` is a valid record, for error messages."""
    for line, value in read_values(path):
        if not isinstance(value, dict):
            fix = f"a record looks like {example}"
            raise DataError(f"a record must be a JSON object, got {short_repr(value)}", path=path, line=line, fix=fix)
        yield Record(value, path, line, example)


def write_records(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Write one JSON object per line, or one array if the file is named .json."""
    opening, separator, closing = ("[\n", ",\n", "\n]\n") if plain_suffix(path) == ".json" else ("", "\n", "\n")
    count = 0
    with atomic_write(path) as file:
        file.write(opening)
        for count, row in enumerate(rows, start=1):
            file.write(separator * (count > 1) + json.dumps(row, ensure_ascii=False))
        file.write(closing if count or opening else "")
    return count


def has_entities_with(fields: dict[str, Any], key: str) -> bool:
    """Whether a record has an entity with this key, which distinguishes formats."""
    entities = fields.get("entities")
    return isinstance(entities, list) and any(isinstance(entity, dict) and key in entity for entity in entities)


def json_format(
    name: str,
    extensions: tuple[str, ...],
    *,
    example: str,
    keys: Collection[str],
    recognise: Callable[[dict[str, Any]], bool],
    decode: Callable[[Record], Document],
    encode: Callable[[Document], dict[str, Any]],
) -> Format:
    """A format with one JSON object per document.

    Args:
        example: a valid record, for error messages.
        keys: the keys of the format; other keys of a record are kept in `Document.meta`.
        recognise: checks whether a record is in this format. Several records are checked, because a record without
            mentions may look the same in two formats.
        decode: from a record to a document.
        encode: from a document to a record, without `meta`.
    """

    def sniff(path: Path) -> bool:
        return any(recognise(record.fields) for record in islice(read_records(path, example), _SNIFFED_RECORDS))

    def read(path: Path) -> Iterator[Document]:
        for record in read_records(path, example):
            with located(path, record.line, f"a record looks like {example}"):
                document = decode(record)
            yield document

    def write(documents: Iterable[Document], path: Path) -> int:
        return write_records((encode(document) | _without(document.meta, keys) for document in documents), path)

    return Format(name, extensions, sniff, read, write)
