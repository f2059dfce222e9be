"""What a data format is: a name, file extensions, a content check, a reader and a writer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from reprlib import Repr

from onoma.entities import Document, Entity
from onoma.errors import DataError, OnomaError

logger = logging.getLogger("onoma")

OFFSETS_FIX = "count offsets in characters of the text exactly as it is in the file, from 0, end exclusive"

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80


@dataclass(frozen=True, slots=True)
class Format:
    """A file format for annotated documents.

    Args:
        extensions: file extensions that select this format for writing, and for reading if no content check succeeds.
        sniff: checks whether the content of a file is in this format.
        read: yields documents one by one.
        write: writes documents one by one and returns their number.
    """

    name: str
    extensions: tuple[str, ...]
    sniff: Callable[[Path], bool]
    read: Callable[[Path], Iterator[Document]]
    write: Callable[[Iterable[Document], Path], int]


def short_repr(value: object) -> str:
    """The repr of a value for error messages: on one line and shortened."""
    return _SHORT.repr(value)


@contextmanager
def located(path: Path, line: int | None = None, fix: str = "") -> Iterator[None]:
    """Turn an OnomaError of the block into a DataError that names the file and the line."""
    try:
        yield
    except DataError:
        raise
    except OnomaError as error:
        raise DataError(str(error), path=path, line=line, fix=fix) from None


def warn_if_unlabelled(documents: Iterable[Document], path: Path) -> Iterator[Document]:
    """Pass documents on, and log one warning at the end if any of them is unlabelled.

    For formats that cannot tell an unlabelled document from a labelled one without mentions.
    """
    unlabelled = 0
    for document in documents:
        unlabelled += document.annotated == frozenset()
        yield document
    if unlabelled:
        logger.warning(
            "%s: %d unlabelled documents were written as documents without mentions, because the format cannot mark "
            "them as unlabelled",
            path,
            unlabelled,
        )


def make_entity(text: str, start: int, end: int, label: str) -> Entity:
    """One entity of a text; checked here rather than with its document, so that errors can name its line."""
    return Document.from_spans(text, [(start, end, label)]).entities[0]


def check_mention_text(found: str, written: str) -> None:
    """Check that the text at the offsets of a mention is the text that the file gives for it; white space may differ.

    A difference means that the offsets count other units (bytes, other line ends) or that the text was edited.
    """
    if "".join(found.split()) != "".join(written.split()):
        raise OnomaError(
            f"the mention is given as {short_repr(written)}, but the text at its offsets is {short_repr(found)}"
        )
