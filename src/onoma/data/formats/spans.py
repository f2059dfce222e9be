"""Conversion between mentions in tokens and mentions in characters, shared by all token formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from onoma.data.formats.base import short_repr
from onoma.entities import Document
from onoma.errors import OnomaError
from onoma.text.alignment import align
from onoma.text.tags import Span
from onoma.text.words import join


class Tokenised(NamedTuple):
    """A document as tokens, with spans counted in tokens; `text` is None if joining the tokens reproduces it."""

    tokens: list[str]
    spans: list[Span]
    text: str | None


def from_tokens(
    tokens: Sequence[str],
    spans: Iterable[Span],
    *,
    text: str | None = None,
    annotated: Iterable[str] | None = None,
    id: str | int | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Document:
    """The document made of tokens, which are joined, or located in `text` if it is given.

    >>> from_tokens(["Marie", "Curie", "smiled"], [(0, 2, "person")]).entities[0].text
    'Marie Curie'
    """
    if "" in tokens:
        raise OnomaError(f"token {list(tokens).index('')} (counted from 0) is empty")
    text, words = join(tokens) if text is None else (text, locate(tokens, text))
    characters = []
    for first, end, label in spans:
        if not 0 <= first < end <= len(words):
            raise OnomaError(
                f"the mention {first}-{end} ({short_repr(label)}) is empty or outside the {len(words)} tokens"
            )
        characters.append((words[first][0], words[end - 1][1], label))
    return Document.from_spans(text, characters, annotated=annotated, words=words, id=id, meta=meta)


def to_tokens(document: Document) -> Tokenised:
    """The document as tokens, split wherever a mention starts or ends, so that `from_tokens` restores it exactly."""
    words, spans = words_and_spans(document)
    tokens = [document.text[start:end] for start, end in words]
    if join(tokens) == (document.text, words):
        return Tokenised(tokens, spans, None)
    if locate(tokens, document.text) == words:
        return Tokenised(tokens, spans, document.text)
    # a token also occurs in the gap before it, where `locate` would find it first, so gaps become tokens as well
    pieces, index = tile(words, len(document.text))
    spans = [(index[first], index[end - 1] + 1, label) for first, end, label in spans]
    return Tokenised([document.text[start:end] for start, end in pieces], spans, document.text)


def words_and_spans(document: Document) -> tuple[list[tuple[int, int]], list[Span]]:
    """The words of a document as character offsets, and its mentions as spans of words."""
    alignment = align(document, exact=True)
    words = [(start, end) for start, end in alignment.words.tolist()]
    mentions = zip(alignment.mentions.tolist(), document.entities, strict=True)
    return words, [(first, last + 1, entity.label) for (first, last), entity in mentions]


def locate(tokens: Sequence[str], text: str) -> list[tuple[int, int]]:
    """The character offsets of tokens in a text, each at its first occurrence after the previous token.

    >>> locate(["a", "b", "a"], "a  ba")
    [(0, 1), (3, 4), (4, 5)]
    """
    offsets, position = [], 0
    for token in tokens:
        start = text.find(token, position)
        if start < 0:
            raise OnomaError(f"the token {short_repr(token)} does not occur in the text after character {position}")
        position = start + len(token)
        offsets.append((start, position))
    return offsets


def tile(words: Sequence[tuple[int, int]], length: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Words and the gaps between them, which together cover a text, and the index of each word in that list.

    >>> tile([(1, 3), (4, 6)], 6)
    ([(0, 1), (1, 3), (3, 4), (4, 6)], [1, 3])
    """
    pieces: list[tuple[int, int]] = []
    index = []
    position = 0
    for start, end in words:
        if start > position:
            pieces.append((position, start))
        index.append(len(pieces))
        pieces.append((start, end))
        position = end
    if length > position:
        pieces.append((position, length))
    return pieces, index
