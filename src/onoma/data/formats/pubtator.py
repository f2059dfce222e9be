"""`pubtator`: a title line and an abstract line, then one tab-separated row per mention, then an empty line.

The text is the title, a space and the abstract, or only the title if the abstract is empty. Files are written with the
whole text as title, so that it is read back unchanged. Rows of relations are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from onoma.data.formats.base import (
    OFFSETS_FIX,
    Format,
    check_mention_text,
    located,
    make_entity,
    short_repr,
    warn_if_unlabelled,
)
from onoma.entities import Document
from onoma.errors import DataError
from onoma.files import atomic_write, read_lines
from onoma.text.tags import Span

_TEXT_LINE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,18}")
_RELATION = re.compile(r"[^\W\d][\w-]*")
_SAFE_ID = re.compile(r"[\w.:-]+")
_FIX = "start a document with 123|t|title and 123|a|abstract, then one row per mention with tabs: 123 0 5 text type"


@dataclass(slots=True)
class _Entry:
    """The lines of one document that were read so far."""

    id: str
    title: str
    abstract: str | None = None
    mentions: list[tuple[int, Span, str]] = field(default_factory=list)  # line, offsets and label, text

    def document(self, path: Path) -> Document:
        text = f"{self.title} {self.abstract}" if self.abstract else self.title
        entities = []
        for line, span, written in self.mentions:
            with located(path, line, OFFSETS_FIX):
                entities.append(make_entity(text, *span))
                check_mention_text(entities[-1].text, written)
        return Document(text, tuple(entities), id=self.id)


def _read(path: Path) -> Iterator[Document]:
    entry: _Entry | None = None
    for number, line in read_lines(path):
        line = line.removesuffix("\r")
        text_line = _TEXT_LINE.fullmatch(line)
        if text_line and text_line[2] == "t":
            if entry:
                yield entry.document(path)
            entry = _Entry(text_line[1], text_line[3])
        elif line.strip():
            _add_line(entry, line, path, number)
    if entry:
        yield entry.document(path)


def _add_line(entry: _Entry | None, line: str, path: Path, number: int) -> None:
    text_line = _TEXT_LINE.fullmatch(line)
    columns = line.split("\t")
    name = text_line[1] if text_line else columns[0]
    if entry is None or name != entry.id:
        message = f"the line belongs to document {short_repr(name)}, but no title line of it precedes"
        raise DataError(message, path=path, line=number, fix=_FIX)
    if text_line:
        if entry.abstract is not None:
            raise DataError("the document has a second abstract", path=path, line=number, fix=_FIX)
        entry.abstract = text_line[3]
    elif len(columns) >= 5 and _NUMBER.fullmatch(columns[1]) and _NUMBER.fullmatch(columns[2]):
        span = int(columns[1]), int(columns[2]), columns[4]
        entry.mentions.append((number, span, columns[3]))
    elif len(columns) < 3 or not _RELATION.fullmatch(columns[1]):
        raise DataError("the row is neither a mention nor a relation", path=path, line=number, fix=_FIX)


def _sniff(path: Path) -> bool:
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    match = _TEXT_LINE.fullmatch(first)
    return match is not None and match[2] == "t"


def _lines(document: Document, number: int, path: Path) -> Iterator[str]:
    if re.search(r"[\n\r]", document.text):
        message = f"document {number} has a line break in its text, which PubTator cannot represent"
        raise DataError(message, path=path, fix="write jsonl instead, or replace line breaks by spaces")
    if any(re.search(r"[\t\n\r]", label) for label in document.labels):
        message = f"document {number} has a label with a tab or a line break, which PubTator cannot represent"
        raise DataError(message, path=path, fix="rename the label, or write jsonl instead")
    name = str(document.id) if document.id is not None and _SAFE_ID.fullmatch(str(document.id)) else str(number)
    yield f"{name}|t|{document.text}\n{name}|a|\n"
    for start, end, label in (entity.key for entity in document.entities):
        written = document.text[start:end].replace("\t", " ")
        yield f"{name}\t{start}\t{end}\t{written}\t{label}\n"
    yield "\n"


def _write(documents: Iterable[Document], path: Path) -> int:
    number = 0
    with atomic_write(path) as file:
        for number, document in enumerate(warn_if_unlabelled(documents, path), start=1):
            file.writelines(_lines(document, number, path))
    return number


FORMAT = Format("pubtator", (".pubtator",), _sniff, _read, _write)
