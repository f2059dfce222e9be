"""`conll`: columns, one token per line with its tag in the last column, an empty line after each sentence.

Tags of any common scheme are read: BIO, IOB1, BIOES, BMES, BILOU (see `onoma.text.tags`). Files are written as BIO,
with tabs.

A comment `# text = "…"` (a JSON string) before a sentence gives its text if joining the tokens does not reproduce it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from onoma.data.formats.base import Format, located, short_repr, warn_if_unlabelled
from onoma.data.formats.json_values import parse
from onoma.data.formats.spans import from_tokens, to_tokens
from onoma.data.overlaps import first_overlap
from onoma.entities import Document
from onoma.errors import DataError, OnomaError
from onoma.files import atomic_write, read_lines
from onoma.text.tags import decode_tags, encode_bio, is_tag

_TEXT_COMMENT = "# text = "
_KEY_COMMENT = re.compile(r"# ?\S+ = ")
_TAB_OR_LINE_BREAK = re.compile(r"[\t\n\r]")
_DOCUMENT_START = "-DOCSTART-"
_SNIFFED_SENTENCES = 20
_FIX = "write one token per line, then a tab or a space, then O or a tag such as B-person in the last column"


@dataclass(slots=True)
class _Sentence:
    """The lines read since the last empty line."""

    line: int = 0
    text: str | None = None
    tokens: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)

    def document(self, path: Path) -> Document:
        with located(path, self.line, "remove the '# text' line, or make it match the tokens below it"):
            return from_tokens(self.tokens, decode_tags(self.tags), text=self.text)


def _columns(line: str) -> list[str]:
    """The columns of a line; only tabs and spaces separate them, because a token may contain other white space."""
    return line.split("\t") if "\t" in line else re.split(" +", line.rstrip(" "))


def _is_comment(line: str, columns: list[str]) -> bool:
    if not line.startswith("#"):
        return False
    if "\t" not in line and _KEY_COMMENT.match(line):
        return True
    return len(columns) < 2 or not is_tag(columns[-1])  # else it is a token, such as a hashtag


def _text_of(comment: str, path: Path, number: int) -> str | None:
    """The text in a `# text` comment; None for comments of other tools."""
    if not comment.startswith(_TEXT_COMMENT + '"'):
        return None
    try:
        text: str = parse(comment.removeprefix(_TEXT_COMMENT), path, number)
    except DataError:  # another tool wrote the sentence without JSON quotes, and it starts with a quotation mark
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
    if "\r" in line:  # as line ends of their own, they would hide all tokens but the first
        fix = "end lines with a line feed (LF or CR LF), as `tr '\\r' '\\n'` does"
        raise DataError("the line contains a carriage return (CR)", path=path, line=number, fix=fix)
    columns = _columns(line)
    if _is_comment(line, columns):
        text = None if sentence.tokens else _text_of(line, path, number)
        if text is not None:
            sentence.line, sentence.text = number, text
        return
    if columns[0] == _DOCUMENT_START and not sentence.tokens and sentence.text is None:
        return
    if len(columns) < 2:
        raise DataError("the line has one column, but a token and a tag are needed", path=path, line=number, fix=_FIX)
    if not is_tag(columns[-1]):
        raise DataError(f"{short_repr(columns[-1])} is not a tag", path=path, line=number, fix=_FIX)
    sentence.line = sentence.line or number
    sentence.tokens.append(columns[0] or " ")  # in a line that starts with its separator, the token is a space
    sentence.tags.append(columns[-1])


def _read(path: Path) -> Iterator[Document]:
    for sentence in _sentences(path):
        yield sentence.document(path)


def _sniff(path: Path) -> bool:
    return any(sentence.tokens for sentence in islice(_sentences(path), _SNIFFED_SENTENCES))


def _lines(document: Document) -> Iterator[str]:
    """The lines of a sentence; an OnomaError if columns cannot represent it."""
    unique = {entity.key: entity for entity in document.entities}
    if len(unique) < len(document.entities):  # the same mention twice is not an overlap
        document = replace(document, entities=tuple(unique.values()))
    overlap = first_overlap(document.entities)
    if overlap:
        first, second = (f"{short_repr(entity.text)} ({short_repr(entity.label)})" for entity in overlap)
        raise OnomaError(f"columns cannot represent mentions that overlap, such as {first} and {second}")
    tokens, spans, text = to_tokens(document)
    invalid = next(filter(_TAB_OR_LINE_BREAK.search, [*tokens, *document.labels]), None)
    if invalid is not None:
        raise OnomaError(
            f"columns cannot represent {short_repr(invalid)}, because a tab or a line break would end the column"
        )
    # without a text comment, the reader would not see these as the first token of a sentence
    if not tokens or tokens[0] == _DOCUMENT_START or tokens[0].startswith("\ufeff"):
        text = document.text
    if text is not None:
        yield f"# text = {json.dumps(text, ensure_ascii=False)}\n"
    tags = encode_bio(spans, len(tokens))
    yield from (f"{token}\t{tag}\n" for token, tag in zip(tokens, tags, strict=True))
    yield "\n"


def _write(documents: Iterable[Document], path: Path) -> int:
    number = 0
    with atomic_write(path) as file:
        for number, document in enumerate(warn_if_unlabelled(documents, path), start=1):
            try:
                file.writelines(_lines(document))
            except OnomaError as error:
                raise DataError(f"document {number}: {error}", path=path, fix="write jsonl instead") from None
    return number


EXTENSIONS = (".conll", ".bio", ".iob", ".iob2", ".bioes", ".bmes", ".bilou", ".tsv")

FORMAT = Format("conll", EXTENSIONS, _sniff, _read, _write)
