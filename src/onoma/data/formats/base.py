"""What a format is: a name, extensions, a look at the content, a reader and a writer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from reprlib import Repr

from onoma.entities import Document, Entity
from onoma.errors import DataError, OnomaError


@dataclass(frozen=True, slots=True)
class Format:
    """One way to keep documents in files.

    `extensions` name this format when a file is written and, where the content says nothing, when it is read.
    `sniff` tells from the content of a file whether it is of this format. `read` yields documents one by one;
    `write` takes them one by one and returns their number.
    """

    name: str
    extensions: tuple[str, ...]
    sniff: Callable[[Path], bool]
    read: Callable[[Path], Iterator[Document]]
    write: Callable[[Iterable[Document], Path], int]


logger = logging.getLogger("onoma")

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: object) -> str:
    """A value as an error message shows it, on one line and cut short."""
    return _SHORT.repr(value)


@contextmanager
def located(path: Path, line: int | None = None, fix: str = "") -> Iterator[None]:
    """Say in which file and line an error of the block arose."""
    try:
        yield
    except DataError:
        raise
    except OnomaError as error:
        raise DataError(str(error), path=path, line=line, fix=fix) from None


def warning_of_unlabelled(documents: Iterable[Document], path: Path) -> Iterator[Document]:
    """The documents as they come, for formats that cannot say "nobody has labelled this"; at the end, one warning."""
    unlabelled = 0
    for document in documents:
        unlabelled += document.annotated == frozenset()
        yield document
    if unlabelled:
        logger.warning(
            "%s: %d documents that nobody has labelled are written as documents without any mention", path, unlabelled
        )


def mention(text: str, start: int, end: int, label: str) -> Entity:
    """One mention, checked by itself, so that an error can name the line of a file that holds it."""
    return Document.from_spans(text, [(start, end, label)]).entities[0]


def check_mention(found: str, written: str) -> None:
    """Compare what stands at the offsets of a mention with what the file says of it; white space may differ.

    A difference means that the offsets count something else (bytes, other line ends), or that the text was edited.
    """
    if "".join(found.split()) != "".join(written.split()):
        raise OnomaError(f"the mention is given as {shown(written)}, but the text reads {shown(found)} at its offsets")


OFFSETS_FIX = "count offsets in characters of the text as it stands in the file, from 0, end exclusive"
