"""All formats by name, and functions to detect, read, write and convert files of any format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from os import PathLike
from pathlib import Path

from onoma.data.formats import brat, conll, docbin, doccano, gliner, jsonl, pubtator, tokens
from onoma.data.formats.base import Format
from onoma.entities import Document
from onoma.errors import DataError, OnomaError, TooLargeError
from onoma.files import plain_suffix, require_storage

FORMATS: dict[str, Format] = {
    module.FORMAT.name: module.FORMAT for module in (jsonl, tokens, conll, brat, doccano, gliner, docbin, pubtator)
}
"""All formats that Onoma reads and writes."""

_NAME_FORMAT = f"name the format: {', '.join(FORMATS)}"


def detect(path: str | PathLike[str], *, writing: bool = False) -> str:
    """The name of the format of a file or folder.

    For reading, the content decides, or the extension if no format recognises the content. For writing, the extension
    decides; a path without one is a folder of brat files.

    >>> detect("train.conll.xz", writing=True)
    'conll'
    """
    if not writing:
        require_storage(path)
    path = Path(path)
    by_extension = [name for name, form in FORMATS.items() if plain_suffix(path) in form.extensions]
    if writing:
        by_content: Iterable[str] = ()
        by_extension += ["brat"] if os.path.isdir(path) or not path.suffix else []
    else:
        if not os.path.exists(path):
            raise DataError("there is no such file or folder", path=path, fix="check the path")
        by_content = (name for name in [*by_extension, *FORMATS] if _sniffs(FORMATS[name], path))
    for name in chain(by_content, by_extension):
        return name
    raise _unknown_format(path, writing)


def _unknown_format(path: Path, writing: bool) -> DataError:
    if writing:
        known = " ".join(suffix for form in FORMATS.values() for suffix in form.extensions)
        fix = f"use a known extension ({known}; none for a folder of brat files), or --to: {_NAME_FORMAT}"
        return DataError(f"no format has the extension {path.suffix!r}", path=path, fix=fix)
    if path.is_dir():
        files = sorted(entry.name for entry in path.iterdir() if entry.is_file() and _has_known_extension(entry))
        fix = f"give its files one by one: {', '.join(files)}" if files else "give the file that contains the documents"
        return DataError("this is a folder, but not one of brat files (.txt and .ann)", path=path, fix=fix)
    return DataError("the format cannot be detected from the name or the content", path=path, fix=_NAME_FORMAT)


def _has_known_extension(path: Path) -> bool:
    return any(plain_suffix(path) in form.extensions for form in FORMATS.values())


def _sniffs(form: Format, path: Path) -> bool:
    try:
        return form.sniff(path)
    except TooLargeError:
        raise
    except DataError:  # damaged or in another format; if the extension selects this format, its reader will report it
        return False


def read(path: str | PathLike[str], format: str | None = None) -> Iterator[Document]:
    """The documents of a file or folder, one by one; the format is detected (see `detect`) if it is not given.

    >>> for document in read("train.jsonl.xz"):  # doctest: +SKIP
    ...     print(document.text)
    """
    form = _named(format or detect(path))
    return form.read(Path(path))


def write(documents: Iterable[Document], path: str | PathLike[str], format: str | None = None) -> int:
    """Write documents one by one and return their number; the extension selects the format if it is not given."""
    form = _named(format or detect(path, writing=True))
    return form.write(documents, Path(path))


def convert(
    source: str | PathLike[str],
    target: str | PathLike[str],
    source_format: str | None = None,
    target_format: str | None = None,
    on_progress: Callable[[int], None] = lambda documents: None,
    change: Callable[[Iterator[Document]], Iterator[Document]] | None = None,
) -> int:
    """Read documents from `source` and write them to `target`; return their number.

    Args:
        on_progress: gets the number of documents read so far.
        change: gets the documents that were read, and returns those to write.
    """

    def counted() -> Iterator[Document]:
        for number, document in enumerate(read(source, source_format), start=1):
            yield document
            on_progress(number)

    return write(change(counted()) if change else counted(), target, target_format)


def _named(name: str) -> Format:
    if name not in FORMATS:
        raise OnomaError(f"there is no format {name!r}. Fix: {_NAME_FORMAT}.")
    return FORMATS[name]
