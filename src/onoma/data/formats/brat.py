"""`brat`: a folder of texts (.txt), each with its standoff annotation (.ann), as the annotation tool brat stores them.

Only mentions ("T" rows) are read. A discontinuous mention is read as one span, from the start of its first part to the
end of its last part. Characters that brat does not allow in a type are written as %XX and decoded on reading.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from onoma.data.formats.base import OFFSETS_FIX, Format, check_mention_text, located, make_entity, short_repr
from onoma.entities import Document, Entity
from onoma.errors import DataError, OnomaError
from onoma.files import atomic_folder, read_bytes, read_lines

logger = logging.getLogger("onoma")

_MENTION = re.compile(r"T[^\t]*\t(\S+) ([0-9]{1,18} [0-9]{1,18}(?:;[0-9]{1,18} [0-9]{1,18})*)(?:\t(.*))?", re.DOTALL)
_OTHER_ROW = re.compile(r"[REAMN#*]")
_ROW_FIX = "write a mention as T1, tab, type, space, start, space, end, tab, text: T1\tperson 0 3\tTom"
_TAB_OR_LINE_BREAK = re.compile(r"[\t\n\r]")
_LINE = re.compile(r"[^\n]+")


def _natural_order(path: Path) -> list[str | int]:
    """A sort key that compares numbers in file names by value, so that doc10 follows doc2."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", path.name)]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        message = f"the folder cannot be read ({error.strerror})"
        raise DataError(message, path=folder, fix="check its permissions") from None


def _text_files(path: Path) -> list[Path]:
    """The .txt files of a folder in order; for a single file, the .txt file of the pair."""
    if not path.is_dir():
        return [path.with_suffix(".txt")]
    names = [entry for entry in _entries(path) if not entry.name.startswith(".")]
    texts = {entry for entry in names if entry.suffix == ".txt"}
    missing = sorted(entry for entry in names if entry.suffix == ".ann" and entry.with_suffix(".txt") not in texts)
    if missing:
        raise DataError("the .txt file of this annotation is missing", path=missing[0], fix="add it")
    if not texts:
        raise DataError("the folder has no .txt files", path=path, fix="give the folder with the .txt and .ann files")
    return sorted(texts, key=_natural_order)


def _read(path: Path) -> Iterator[Document]:
    discontinuous = 0
    for text_file in _text_files(path):
        document, count = _read_pair(text_file)
        discontinuous += count
        yield document
    if discontinuous:
        logger.warning(
            "%s: %d discontinuous mentions were read as one span each, from their first to their last part",
            path,
            discontinuous,
        )


def _read_pair(text_file: Path) -> tuple[Document, int]:
    """A document and the number of its discontinuous mentions."""
    try:
        text = read_bytes(text_file).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 (byte {error.start + 1}: {error.reason})"
        raise DataError(message, path=text_file, fix="save the file as UTF-8") from None
    annotation = text_file.with_suffix(".ann")
    if not annotation.exists():  # an unlabelled text
        return Document(text, annotated=frozenset(), id=text_file.stem), 0
    entities, discontinuous = [], 0
    for number, row in read_lines(annotation):
        row = row.removesuffix("\r")
        if not row.strip() or _OTHER_ROW.match(row):
            continue
        with located(annotation, number, OFFSETS_FIX):
            entity, is_discontinuous = _parse_mention(row, text, annotation, number)
        entities.append(entity)
        discontinuous += is_discontinuous
    return Document(text, tuple(entities), id=text_file.stem), discontinuous


def _parse_mention(row: str, text: str, path: Path, line: int) -> tuple[Entity, bool]:
    """The mention of a row, and whether there is text between its parts that does not belong to it."""
    match = _MENTION.fullmatch(row)
    if not match:
        raise DataError("the row is not a valid annotation", path=path, line=line, fix=_ROW_FIX)
    label, extent, written = match.groups()
    parts = [(int(start), int(end)) for start, end in (part.split(" ") for part in extent.split(";"))]
    offsets = [offset for part in parts for offset in part]
    if offsets != sorted(offsets):
        raise OnomaError(f"the offsets {short_repr(extent)} are out of order")
    entity = make_entity(text, offsets[0], offsets[-1], _unescape(label))
    if written is not None:
        check_mention_text(" ".join(text[start:end] for start, end in parts), written)
    gaps = (text[end:start] for (_, end), (start, _) in pairwise(parts))
    return entity, any(gap.strip() for gap in gaps)


def _unescape(label: str) -> str:
    try:
        return unquote(label, errors="strict")
    except UnicodeDecodeError:
        raise OnomaError(f"the type {short_repr(label)} has %XX escapes that are not UTF-8") from None


def _escape(label: str) -> str:
    def escaped(character: str) -> str:
        allowed = character.isalnum() or character in "_-"
        return character if allowed else "".join(f"%{byte:02X}" for byte in character.encode("utf-8"))

    return "".join(map(escaped, label))


def _row(number: int, entity: Entity) -> str:
    """The row of a mention; brat requires a mention over several lines to have one part per line."""
    lines = [match.span() for match in _LINE.finditer(entity.text)]
    if not lines or lines[0][0] > 0 or lines[-1][1] < len(entity.text):  # a line break at an edge is kept
        lines = [(0, len(entity.text))]
    extent = ";".join(f"{entity.start + start} {entity.start + end}" for start, end in lines)
    return f"T{number}\t{_escape(entity.label)} {extent}\t{_TAB_OR_LINE_BREAK.sub(' ', entity.text)}\n"


def _write(documents: Iterable[Document], path: Path) -> int:
    count = 0
    with atomic_folder(path) as folder:
        for count, document in enumerate(documents, start=1):
            rows = (_row(number, entity) for number, entity in enumerate(document.entities, start=1))
            contents = {".txt": document.text, ".ann": "".join(rows)}
            if document.annotated == frozenset():  # an unlabelled text
                del contents[".ann"]
            for suffix, content in contents.items():
                (folder / f"{count:06d}{suffix}").write_bytes(content.encode("utf-8"))
    return count


def _sniff(path: Path) -> bool:
    if path.is_dir():
        return any(entry.suffix == ".ann" for entry in _entries(path))
    return path.suffix == ".ann" or (path.suffix == ".txt" and path.with_suffix(".ann").exists())


FORMAT = Format("brat", (".ann",), _sniff, _read, _write)
