"""Texts to extract from: given as such, in a file, or on standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from onoma.data.files import open_text, plain_suffix, read_lines
from onoma.data.formats import read
from onoma.entities import Document
from onoma.errors import DataError

STANDARD_INPUT = "-"
RECORDS = (".jsonl", ".ndjson", ".json")
"""Files of these extensions hold documents in one of the JSON formats; others hold plain text."""


def read_texts(source: str, *, by_line: bool = False) -> Iterator[Document]:
    """The documents of a file, of standard input ("-"), or the text itself if there is no file of that name.

    Plain text is one document, or one a line with `by_line`.

    >>> [document.text for document in read_texts("Tom flew to Paris.")]
    ['Tom flew to Paris.']
    """
    if source == STANDARD_INPUT:
        return _plain(_standard_input(), by_line)
    path = _as_file(source)
    if path is None:
        return _plain([source], by_line=False)
    if plain_suffix(path) in RECORDS:
        return read(path)
    return _plain((line for _, line in read_lines(path)), by_line) if by_line else _whole(path)


def _as_file(source: str) -> Path | None:
    """The file that a name stands for; None for a text. What only looks like the name of a file is an error."""
    path = Path(source)
    if os.path.isfile(source):  # unlike Path.is_file, it takes a text of any length
        return path
    if os.path.isdir(source):
        raise DataError("this is a folder, a file or a text is needed here", path=path, fix="name a file in it")
    if os.path.exists(source):
        fix = "give - for standard input, or save it to a file first"
        raise DataError("this is not a file but a pipe or a device", path=path, fix=fix)
    if plain_suffix(path) in (*RECORDS, ".txt") and not any(map(str.isspace, source)):
        raise DataError("there is no such file", path=path, fix="check the path")
    return None


def _plain(lines: Iterable[str], by_line: bool) -> Iterator[Document]:
    return map(Document, lines) if by_line else iter([Document("\n".join(lines))])


def _whole(path: Path) -> Iterator[Document]:
    with open_text(path) as file:
        yield Document(file.read())


def _standard_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            message = f"the line is not UTF-8 ({error.reason})"
            raise DataError(message, path="standard input", line=number, fix="convert it to UTF-8") from None
