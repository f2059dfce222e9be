"""`conll`: columns, one token a line with its tag in the last column, an empty line after each sentence.

Read with the tags of any common scheme: BIO, IOB1, BIOES, BMES, BILOU. None of them gives a letter another meaning,
so one reading serves them all: B begins a mention; I and M go on with it; E and L end it; S and U are one alone.
I, M, E and L begin a mention where none of their label is open, as IOB1 wants it. Written as BIO, with tabs.

A comment `# text = "…"` (a JSON string) in front of a sentence gives its text where the tokens cannot rebuild it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from onoma.data.files import atomic_write, read_lines
from onoma.data.formats.base import Format, located, shown, warning_of_unlabelled
from onoma.data.formats.json_values import parse
from onoma.data.formats.spans import Span, first_overlap, from_tokens, to_tokens
from onoma.entities import Document
from onoma.errors import DataError, OnomaError

_TAG = re.compile(r"O|[BIEMSLU]-.+", re.DOTALL)
_TEXT_COMMENT = "# text = "
_KEY_COMMENT = re.compile(r"# ?\S+ = ")
_BREAK = re.compile(r"[\t\n\r]")
_DOCUMENT_START = "-DOCSTART-"
_SNIFFED_SENTENCES = 20
_FIX = "write one token a line, then a tab or a space, then O or a tag such as B-person in the last column"


def decode_tags(tags: Sequence[str]) -> list[Span]:
    """The mentions that tags of any scheme spell.

    >>> decode_tags(["B-person", "I-person", "O", "S-city"])
    [(0, 2, 'person'), (3, 4, 'city')]
    """
    spans: list[Span] = []
    open_label: str | None = None
    for position, tag in enumerate(tags):
        letter, label = tag[0], tag[2:]
        if letter == "O":
            open_label = None
            continue
        if letter not in "BSU" and label == open_label:
            spans[-1] = (spans[-1][0], position + 1, label)
        else:
            spans.append((position, position + 1, label))
        open_label = None if letter in "ESLU" else label
    return spans


@dataclass(slots=True)
class _Sentence:
    """What has been read since the last empty line."""

    line: int = 0
    text: str | None = None
    tokens: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)

    def document(self, path: Path) -> Document:
        with located(path, self.line, "remove the '# text' line, or make it agree with the tokens below it"):
            return from_tokens(self.tokens, decode_tags(self.tags), text=self.text)


def _columns(line: str) -> list[str]:
    """The columns of a line; only tabs and spaces part them, for a token may hold other white space."""
    return line.split("\t") if "\t" in line else re.split(" +", line.rstrip(" "))


def _is_comment(line: str, columns: list[str]) -> bool:
    if not line.startswith("#"):
        return False
    if "\t" not in line and _KEY_COMMENT.match(line):
        return True
    return len(columns) < 2 or not _TAG.fullmatch(columns[-1])  # else it is a token, such as a hashtag


def _text_of(comment: str, path: Path, number: int) -> str | None:
    """The text that a comment gives; None for the comments of other tools."""
    if not comment.startswith(_TEXT_COMMENT + '"'):
        return None
    try:
        text: str = parse(comment.removeprefix(_TEXT_COMMENT), path, number)
    except DataError:  # an unquoted sentence that begins with a quotation mark
        return None
    return text


def _sentences(path: Path) -> Iterator[_Sentence]:
    sentence = _Sentence()
    for number, line in read_lines(path):
        line = line.removesuffix("\r")
        if not line.strip(" \t"):
            if sentence.tokens or sentence.text is not None:
                yield sentence
            sentence = _Sentence()
            continue
        _add_line(sentence, line, path, number)
    if sentence.tokens or sentence.text is not None:
        yield sentence


def _add_line(sentence: _Sentence, line: str, path: Path, number: int) -> None:
    columns = _columns(line)
    if _is_comment(line, columns):
        text = None if sentence.tokens else _text_of(line, path, number)
        if text is not None:
            sentence.line, sentence.text = number, text
        return
    if columns[0] == _DOCUMENT_START and not sentence.tokens and sentence.text is None:
        return
    if len(columns) < 2:
        raise DataError("the line has one column, a token and a tag are needed", path=path, line=number, fix=_FIX)
    if not _TAG.fullmatch(columns[-1]):
        raise DataError(f"{shown(columns[-1])} is not a tag", path=path, line=number, fix=_FIX)
    sentence.line = sentence.line or number
    sentence.tokens.append(columns[0] or " ")  # a line that begins with its separator has a space for a token
    sentence.tags.append(columns[-1])


def _read(path: Path) -> Iterator[Document]:
    for sentence in _sentences(path):
        yield sentence.document(path)


def _sniff(path: Path) -> bool:
    return any(sentence.tokens for sentence in islice(_sentences(path), _SNIFFED_SENTENCES))


def _lines(document: Document) -> Iterator[str]:
    """The lines of a sentence; an OnomaError where columns cannot hold it."""
    unique = {entity.key: entity for entity in document.entities}
    if len(unique) < len(document.entities):  # a mention given twice is no overlap
        document = replace(document, entities=tuple(unique.values()))
    overlap = first_overlap(document.entities)
    if overlap:
        first, second = (f"{shown(entity.text)} ({shown(entity.label)})" for entity in overlap)
        raise OnomaError(f"columns cannot hold mentions that overlap, such as {first} and {second}")
    tokens, spans, text = to_tokens(document)
    broken = next(filter(_BREAK.search, [*tokens, *document.labels]), None)
    if broken is not None:
        raise OnomaError(f"columns cannot hold {shown(broken)}, for a tab or a line break would end the column")
    # without a text in front, the reader would take these at the head of a sentence for something else
    if not tokens or tokens[0] == _DOCUMENT_START or tokens[0].startswith("\ufeff"):
        text = document.text
    if text is not None:
        yield f"# text = {json.dumps(text, ensure_ascii=False)}\n"
    tags = ["O"] * len(tokens)
    for begin, end, label in spans:
        tags[begin:end] = [f"B-{label}"] + [f"I-{label}"] * (end - begin - 1)
    yield from (f"{token}\t{tag}\n" for token, tag in zip(tokens, tags, strict=True))
    yield "\n"


def _write(documents: Iterable[Document], path: Path) -> int:
    number = 0
    with atomic_write(path) as file:
        for number, document in enumerate(warning_of_unlabelled(documents, path), start=1):
            try:
                file.writelines(_lines(document))
            except OnomaError as error:
                raise DataError(f"document {number}: {error}", path=path, fix="write jsonl instead") from None
    return number


EXTENSIONS = (".conll", ".bio", ".iob", ".iob2", ".bioes", ".bmes", ".bilou", ".tsv")

FORMAT = Format("conll", EXTENSIONS, _sniff, _read, _write)
