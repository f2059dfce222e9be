"""Documents of corpora and of plain text, read one by one, so that a file can be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from onoma.data.corpora import find_splits
from onoma.data.formats import detect, read
from onoma.entities import Document
from onoma.errors import DataError
from onoma.files import COMPRESSIONS, plain_suffix, read_lines, refuse_binary

TEXT = "text"
"""The name of plain text among the formats: every line that is not empty is a document."""


class Stream(NamedTuple):
    """Documents, and the size of the file in bytes if it is plain text."""

    documents: Iterator[Document]
    bytes: int | None = None


def stream_documents(source: str | PathLike[str], format: str | None = None) -> Stream:
    """The documents of a corpus (a file, FOLDER:SPLIT, or a folder with one split), or of one or several text files.

    In plain text, every line that is not empty is a document.

    Args:
        format: a format of `onoma.data.formats`, or "text"; detected by default.
    """
    path = Path(source)
    if path.is_dir() and not any(path.glob("*.ann")) and (texts := _text_files(path)):
        return _stream_text(texts)
    if format == TEXT:
        return _stream_text([path])
    found = find_splits(source)
    if len(found) > 1:
        fix = f"name the split: {source}:{next(iter(found))}"
        raise DataError(f"there are several splits ({', '.join(found)}), but one is needed", path=source, fix=fix)
    (file,) = found.values()
    if format is None and _is_plain(file):
        return _stream_text([file])
    return Stream(read(file, format))


def _text_files(folder: Path) -> list[Path]:
    """The files of a folder that has nothing but text files."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return files if files and all(map(_is_plain, files)) else []


def _is_plain(path: Path) -> bool:
    """Whether a file named .txt is in none of the formats."""
    if plain_suffix(path) != ".txt":
        return False
    try:
        return not detect(path)
    except DataError:
        return True


def _stream_text(paths: list[Path]) -> Stream:
    for path in paths:
        refuse_binary(path)
    compressed = any(path.suffix.lower() in COMPRESSIONS for path in paths)
    lines = (line.removesuffix("\r") for _, line in chain.from_iterable(map(read_lines, paths)))
    size = None if compressed else sum(path.stat().st_size for path in paths)
    return Stream((Document(line, annotated=frozenset()) for line in lines if line.strip()), size)
