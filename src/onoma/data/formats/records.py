"""Records: JSON objects with checked fields, and the formats that keep one document in each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from onoma.data.files import atomic_write, plain_suffix
from onoma.data.formats.base import Format, located, shown
from onoma.data.formats.json_values import read_values
from onoma.entities import Document
from onoma.errors import DataError

_SNIFFED_RECORDS = 100


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object and where it stands; a field comes out with the type that was asked for, or as a DataError."""

    fields: dict[str, Any]
    path: Path
    line: int
    example: str

    def __contains__(self, key: str) -> bool:
        return key in self.fields

    def error(self, message: str) -> DataError:
        return DataError(message, path=self.path, line=self.line, fix=f"a record looks like {self.example}")

    def _field(self, key: str, wanted: str, accepts: Callable[[Any], bool]) -> Any:
        if key not in self.fields:
            raise self.error(f"the key {key!r} is missing")
        value = self.fields[key]
        if not accepts(value):
            raise self.error(f"{key!r} must be {wanted}, got {shown(value)}")
        return value

    def text(self, key: str) -> str:
        value: str = self._field(key, "a string", _is_text)
        return value

    def texts(self, key: str) -> list[str]:
        value: list[str] = self._field(key, "a list of strings", _list_of(_is_text))
        return value

    def integer(self, key: str) -> int:
        value: int = self._field(key, "a whole number", _is_integer)
        return value

    def number(self, key: str) -> float:
        return float(self._field(key, "a number", _is_number))

    def name(self, key: str) -> str | None:
        """A string, or a whole number taken as one; None when it is missing or null."""
        if self.fields.get(key) is None:
            return None
        return str(self._field(key, "a string or a whole number", lambda value: _is_text(value) or _is_integer(value)))

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
    return type(value) is int  # isinstance would let True pass


def _is_number(value: Any) -> bool:
    return (_is_integer(value) and abs(value) < 1e300) or (isinstance(value, float) and math.isfinite(value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_integer, value))


def _is_triple(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and _is_pair(value[:2]) and _is_text(value[2])


def _list_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(accepts, value))


def read_records(path: Path, example: str) -> Iterator[Record]:
    """The objects of a file of JSON lines or of one JSON array."""
    for line, value in read_values(path):
        if not isinstance(value, dict):
            fix = f"a record looks like {example}"
            raise DataError(f"a record must be a JSON object, got {shown(value)}", path=path, line=line, fix=fix)
        yield Record(value, path, line, example)


def write_records(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Write one JSON object a line; a file named .json becomes one array."""
    opening, between, closing = ("[\n", ",\n", "\n]\n") if plain_suffix(path) == ".json" else ("", "\n", "\n")
    count = 0
    with atomic_write(path) as file:
        file.write(opening)
        for count, row in enumerate(rows, start=1):
            file.write(between * (count > 1) + json.dumps(row, ensure_ascii=False))
        file.write(closing if count or opening else "")
    return count


def has_entities_with(fields: dict[str, Any], key: str) -> bool:
    """Whether a record lists an entity that has this key, by which formats are told apart."""
    entities = fields.get("entities")
    return isinstance(entities, list) and any(isinstance(entity, dict) and key in entity for entity in entities)


def json_format(
    name: str,
    extensions: tuple[str, ...],
    *,
    example: str,
    recognise: Callable[[dict[str, Any]], bool],
    decode: Callable[[Record], Document],
    encode: Callable[[Document], dict[str, Any]],
) -> Format:
    """A format that keeps each document in one JSON object.

    `recognise` tells the format from the keys of a record. Several records are looked at, because one without
    mentions may look the same in two formats.
    """

    def sniff(path: Path) -> bool:
        return any(recognise(record.fields) for record in islice(read_records(path, example), _SNIFFED_RECORDS))

    def read(path: Path) -> Iterator[Document]:
        for record in read_records(path, example):
            with located(path, record.line, f"a record looks like {example}"):
                document = decode(record)
            yield document

    def write(documents: Iterable[Document], path: Path) -> int:
        return write_records(map(encode, documents), path)

    return Format(name, extensions, sniff, read, write)
