"""Texts to extract from: a string, files, or standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from onoma.entities import Document
from onoma.errors import DataError
from onoma.files import (
    bounded_lines,
    describe_binary,
    max_bytes,
    open_text,
    plain_suffix,
    read_lines,
    reading_errors,
    refuse_binary,
    too_large,
)

STANDARD_INPUT = "-"
RECORDS = (".jsonl", ".ndjson", ".json")
"""Files with these extensions contain documents in one of the JSON formats; other files contain plain text."""


class Texts(NamedTuple):
    """Documents, and the total number of their characters if it is known before reading."""

    documents: Iterator[Document]
    characters: int | None = None


class Located(NamedTuple):
    """A document, and where it comes from."""

    file: str  # empty for a text that is not a file
    number: int  # among the documents of the file, from 1
    document: Document
    is_whole: bool = False  # whether the file is one document of plain text

    @property
    def name(self) -> str:
        """The file, with the number of the document if it may have several.

        >>> Located("news.jsonl", 3, Document("It rained.")).name
        'news.jsonl:3'
        """
        return self.file if self.is_whole else f"{self.file}:{self.number}"


class Sources(NamedTuple):
    """Documents of one or several sources, and the total number of their characters if it is known before reading."""

    documents: Iterator[Located]
    characters: int | None = None


def read_sources(sources: Sequence[str], *, by_line: bool = False) -> Sources:
    """The documents of one source, as in `read_texts`, or of several files, which are opened one after another.

    The name of the file is added to the other fields of documents of several files, as `file`.
    """
    if len(sources) == 1:
        (source,) = sources
        texts = read_texts(source, by_line=by_line)
        file = "" if source != STANDARD_INPUT and _as_file(source) is None else source
        documents = (Located(file, number, document) for number, document in enumerate(texts.documents, 1))
        return Sources(documents, texts.characters)
    for source in sources:
        if _as_file(source) is None:
            fix = "check the path; a text (in quotes) or - must be the only source"
            raise DataError("there is no such file", path=source if source.strip() else repr(source), fix=fix)
        if plain_suffix(source) not in RECORDS:
            refuse_binary(source)
    return Sources(_of_files(sources, by_line))


def _of_files(files: Sequence[str], by_line: bool) -> Iterator[Located]:
    for file in files:
        is_whole = not by_line and plain_suffix(file) not in RECORDS
        for number, document in enumerate(read_texts(file, by_line=by_line).documents, 1):
            named = replace(document, meta={"file": file} | dict(document.meta))
            yield Located(file, number, named, is_whole)


def read_texts(source: str, *, by_line: bool = False) -> Texts:
    """The documents of a file or of standard input ("-"); a source that is not a file is itself the text.

    Plain text is one document, or one document per line with `by_line`.

    >>> [document.text for document in read_texts("Tom flew to Paris.").documents]
    ['Tom flew to Paris.']
    """
    if source == STANDARD_INPUT:
        return Texts(map(Document, _standard_input())) if by_line else _whole("\n".join(_bounded_input()))
    path = _as_file(source)
    if path is None:
        return _whole(source)
    if plain_suffix(path) in RECORDS:
        from onoma.data.formats import read  # needed for records only

        return Texts(read(path))
    refuse_binary(path)
    if by_line:
        return Texts(Document(line) for _, line in read_lines(path))
    with open_text(path) as file:
        return _whole(file.read())


def _as_file(source: str) -> Path | None:
    """The path if the source is a file, None if it is a text; the name of a missing file is an error."""
    path = Path(source)
    if os.path.isfile(source):  # unlike Path.is_file, it accepts a text of any length
        return path
    if os.path.isdir(source):
        raise DataError("this is a folder, but a file or a text is needed", path=path, fix="give a file in it")
    if os.path.exists(source):
        fix = "give - for standard input, or save its content to a file"
        raise DataError("this is not a file but a pipe or a device", path=path, fix=fix)
    if plain_suffix(path) in (*RECORDS, ".txt") and not any(map(str.isspace, source)):
        raise DataError("there is no such file", path=path, fix="check the path")
    return None


def _whole(text: str) -> Texts:
    return Texts(iter([Document(text)]), len(text))


def _bounded_input() -> Iterator[str]:
    """The lines of standard input, which become one text; an error if it does not end."""
    size, limit = 0, max_bytes()
    for line in _standard_input():
        size += len(line) + 1
        if size > limit:
            raise too_large(f"the text has more than {limit:,} characters", "standard input")
        yield line


def _standard_input() -> Iterator[str]:
    if sys.stdin is None:  # closed by the caller
        raise DataError("standard input is closed", fix="give a text or a file, or send text to standard input")
    fix, name = "convert it to UTF-8 text", Path("standard input")
    with reading_errors(name):
        for number, line in bounded_lines(sys.stdin.buffer, name):
            kind = describe_binary(line) if number == 1 else None
            if kind is not None:
                raise DataError(f"this is {kind}, not UTF-8 text", path=name, fix=fix)
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                message = f"the line is not UTF-8 ({error.reason})"
                raise DataError(message, path=name, line=number, fix=fix) from None
            yield text.removesuffix("\n")
