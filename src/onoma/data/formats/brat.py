"""`brat`: a folder of texts (.txt), each with its standoff annotation (.ann), as the tool brat keeps them.

Only mentions ("T" rows) are read. A mention of several parts is taken in its full extent, from the first to the last.
A character that brat does not allow in a type is written as %XX, and read back.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from onoma.data.files import atomic_folder, read_bytes, read_lines
from onoma.data.formats.base import OFFSETS_FIX, Format, check_mention, located, mention, shown
from onoma.entities import Document, Entity
from onoma.errors import DataError, OnomaError

logger = logging.getLogger("onoma")

_MENTION = re.compile(r"T[^\t]*\t(\S+) ([0-9]{1,18} [0-9]{1,18}(?:;[0-9]{1,18} [0-9]{1,18})*)(?:\t(.*))?", re.DOTALL)
_OTHER_ROW = re.compile(r"[REAMN#*]")
_ROW_FIX = "write a mention as T1, tab, type, space, start, space, end, tab, text: T1\tperson 0 3\tTom"
_BREAK = re.compile(r"[\t\n\r]")
_LINE_RUN = re.compile(r"[^\n]+")


def _natural_order(path: Path) -> list[str | int]:
    """Numbers in names are sorted by value: doc10 follows doc2, and a million documents keep their order."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", path.name)]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        message = f"the folder cannot be read ({error.strerror})"
        raise DataError(message, path=folder, fix="check its permissions") from None


def _text_files(path: Path) -> list[Path]:
    """The .txt files of a folder in order, or that which belongs to one file."""
    if not path.is_dir():
        return [path.with_suffix(".txt")]
    names = [entry for entry in _entries(path) if not entry.name.startswith(".")]
    texts = {entry for entry in names if entry.suffix == ".txt"}
    alone = sorted(entry for entry in names if entry.suffix == ".ann" and entry.with_suffix(".txt") not in texts)
    if alone:
        raise DataError("the .txt file that belongs to this annotation is missing", path=alone[0], fix="add it")
    if not texts:
        raise DataError("the folder has no .txt files", path=path, fix="name the folder of the .txt and .ann files")
    return sorted(texts, key=_natural_order)


def _read(path: Path) -> Iterator[Document]:
    discontinuous = 0
    for text_file in _text_files(path):
        document, parted = _read_pair(text_file)
        discontinuous += parted
        yield document
    if discontinuous:
        logger.warning("%s: %d mentions of several parts were read in their full extent", path, discontinuous)


def _read_pair(text_file: Path) -> tuple[Document, int]:
    """A document and how many of its mentions leave something out between their parts."""
    try:
        text = read_bytes(text_file).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 (byte {error.start + 1}: {error.reason})"
        raise DataError(message, path=text_file, fix="save the file as UTF-8") from None
    annotation = text_file.with_suffix(".ann")
    if not annotation.exists():  # nobody has labelled this text
        return Document(text, annotated=frozenset(), id=text_file.stem), 0
    entities, discontinuous = [], 0
    for number, row in read_lines(annotation):
        row = row.removesuffix("\r")
        if not row.strip() or _OTHER_ROW.match(row):
            continue
        with located(annotation, number, OFFSETS_FIX):
            entity, parted = _parse_mention(row, text, annotation, number)
        entities.append(entity)
        discontinuous += parted
    return Document(text, tuple(entities), id=text_file.stem), discontinuous


def _parse_mention(row: str, text: str, path: Path, line: int) -> tuple[Entity, bool]:
    """The mention of a row, and whether it leaves something out between its parts."""
    match = _MENTION.fullmatch(row)
    if not match:
        raise DataError("the row is not a mention of standoff annotation", path=path, line=line, fix=_ROW_FIX)
    label, extent, written = match.groups()
    parts = [(int(start), int(end)) for start, end in (part.split(" ") for part in extent.split(";"))]
    offsets = [offset for part in parts for offset in part]
    if offsets != sorted(offsets):
        raise OnomaError(f"the offsets {shown(extent)} are out of order")
    entity = mention(text, offsets[0], offsets[-1], _unescape(label))
    if written is not None:
        check_mention(" ".join(text[begin:stop] for begin, stop in parts), written)
    gaps = (text[stop:begin] for (_, stop), (begin, _) in pairwise(parts))
    return entity, any(gap.strip() for gap in gaps)


def _unescape(label: str) -> str:
    try:
        return unquote(label, errors="strict")
    except UnicodeDecodeError:
        raise OnomaError(f"the type {shown(label)} has %XX escapes that are not UTF-8") from None


def _escape(label: str) -> str:
    def escaped(character: str) -> str:
        allowed = character.isalnum() or character in "_-"
        return character if allowed else "".join(f"%{byte:02X}" for byte in character.encode("utf-8"))

    return "".join(map(escaped, label))


def _row(number: int, entity: Entity) -> str:
    """A mention; brat wants one that runs over several lines in one part for each of them."""
    runs = [match.span() for match in _LINE_RUN.finditer(entity.text)]
    if not runs or runs[0][0] > 0 or runs[-1][1] < len(entity.text):  # white space at the edges must stay in it
        runs = [(0, len(entity.text))]
    extent = ";".join(f"{entity.start + start} {entity.start + end}" for start, end in runs)
    return f"T{number}\t{_escape(entity.label)} {extent}\t{_BREAK.sub(' ', entity.text)}\n"


def _write(documents: Iterable[Document], path: Path) -> int:
    count = 0
    with atomic_folder(path) as folder:
        for count, document in enumerate(documents, start=1):
            rows = (_row(number, entity) for number, entity in enumerate(document.entities, start=1))
            contents = {".txt": document.text, ".ann": "".join(rows)}
            if document.annotated == frozenset():  # nobody has labelled this text
                del contents[".ann"]
            for suffix, content in contents.items():
                (folder / f"{count:06d}{suffix}").write_bytes(content.encode("utf-8"))
    return count


def _sniff(path: Path) -> bool:
    if path.is_dir():
        return any(entry.suffix == ".ann" for entry in _entries(path))
    return path.suffix == ".ann" or (path.suffix == ".txt" and path.with_suffix(".ann").exists())


FORMAT = Format("brat", (".ann",), _sniff, _read, _write)
