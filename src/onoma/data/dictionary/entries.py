"""Entries of dictionaries and the files that contain them.

| file | content |
|---|---|
| plain text | one entry per line; its type is given, or the name of the file |
| entry and number, with a tab between | as plain text; the number is ignored |
| entry and type, with a tab between | or type and entry: the column with fewer different values is the type |
| `.jsonl`, `.json` | `{"entry": "Paris", "type": "city", "not_before": ["Hilton"], "not_after": ["Mr."]}` |
| `.yaml`, `.yml` | `city: [Paris, Oslo]`, or `city: {entries: [Paris, Oslo], not_before: [Hilton]}` |
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from onoma.data.formats.records import Record, read_records
from onoma.errors import DataError
from onoma.files import COMPRESSIONS, plain_suffix, read_lines, refuse_binary
from onoma.structured import read_yaml

AnyPath = str | os.PathLike[str]

EXAMPLE = '{"entry": "Paris", "type": "city"}'
YAML_FIX = "write 'city: [Paris, Oslo]', or 'city:' with entries, not_before and not_after below"
_KEYS = ("entries", "not_before", "not_after")
_COLUMNS_SEEN = 1000
"""Lines that decide which of two columns is the type."""


class Entry(NamedTuple):
    """A name, its type, and the words before or after which it is not a mention."""

    text: str
    type: str
    not_before: tuple[str, ...] = ()
    not_after: tuple[str, ...] = ()


def read_entries(path: AnyPath, type: str | None = None) -> Iterator[Entry]:
    """The entries of a file, one by one.

    Args:
        type: the type of entries in a file that names none; by default the name of the file.
    """
    path = Path(path)
    suffix = plain_suffix(path)
    if suffix in (".yaml", ".yml"):
        return _read_yaml(path)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return _read_json(path, type)
    refuse_binary(path)
    return _read_text(path, type or _stem(path))


def read_phrases(path: AnyPath) -> list[str]:
    """The lines of a text file, such as a stop list, without empty ones."""
    refuse_binary(path)
    return [line.strip() for _, line in read_lines(path) if line.strip()]


def _stem(path: Path) -> str:
    name = path.name
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    return Path(name).stem


def _read_text(path: Path, type: str) -> Iterator[Entry]:
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    head = list(islice(lines, _COLUMNS_SEEN))
    if not any("\t" in line.strip() for _, line in head):
        return _plain_entries(chain(head, lines), path, type)
    pairs = [line.split("\t") for _, line in head if line.count("\t") == 1]
    first, second = ({pair[column].strip() for pair in pairs} for column in (0, 1))
    if all(map(str.isdecimal, second)):  # how often the entry was counted somewhere
        return (Entry(entry.text, type) for entry in _column_entries(chain(head, lines), path, 1))
    return _column_entries(chain(head, lines), path, 0 if len(first) < len(second) else 1)


def _plain_entries(lines: Iterable[tuple[int, str]], path: Path, type: str) -> Iterator[Entry]:
    for number, line in lines:
        entry = line.strip()
        if "\t" in entry:
            raise _column_error("the line has a tab, but the lines before have none", path, number)
        yield Entry(entry, type)


def _column_entries(lines: Iterable[tuple[int, str]], path: Path, type_column: int) -> Iterator[Entry]:
    types: dict[str, str] = {}  # one string per type
    for number, line in lines:
        first, _, second = line.partition("\t")
        first, second = first.strip(), second.strip()
        if not first or not second or "\t" in second:
            filled = sum(bool(column.strip()) for column in line.split("\t"))
            raise _column_error(f"the line must have two columns, an entry and a type, got {filled}", path, number)
        text, type = (second, first) if type_column == 0 else (first, second)
        yield Entry(text, types.setdefault(type, type))


def _column_error(message: str, path: Path, line: int) -> DataError:
    fix = "write one entry per line, or an entry and its type on every line, separated by one tab"
    return DataError(message, path=path, line=line, fix=fix)


def _read_json(path: Path, type: str | None) -> Iterator[Entry]:
    for record in read_records(path, EXAMPLE):
        unknown = sorted(record.fields.keys() - {"entry", "type", *_KEYS[1:]})
        if unknown:
            raise record.error(f"the key {unknown[0]!r} is not known")
        text, name = record.text("entry").strip(), type or record.text("type").strip()
        if not text or not name:
            raise record.error("an entry and its type must not be empty")
        yield Entry(text, name, _phrases(record, "not_before"), _phrases(record, "not_after"))


def _phrases(record: Record, key: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, record.texts(key)))) if key in record else ()


def _read_yaml(path: Path) -> Iterator[Entry]:
    content = read_yaml(path, strings=True)  # because an entry may be "no" or 1984
    if not isinstance(content, dict):
        raise DataError("a dictionary in YAML gives the entries of each type", path=path, fix=YAML_FIX)
    for type, value in content.items():
        lists = value if isinstance(value, dict) else {"entries": value}
        if not type.strip() or not lists.keys() <= set(_KEYS) or not all(map(_is_list, lists.values())):
            raise DataError(f"the entries of {type!r:.80} must be a list of texts", path=path, fix=YAML_FIX)
        entries, before, after = (tuple(map(str.strip, lists.get(key, ()))) for key in _KEYS)
        yield from (Entry(entry, type.strip(), before, after) for entry in entries if entry)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
