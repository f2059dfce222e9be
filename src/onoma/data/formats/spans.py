"""Mentions in tokens and in characters: the bridge that all token formats share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from onoma.data.formats.base import shown
from onoma.entities import Document, Entity
from onoma.errors import OnomaError
from onoma.text.alignment import align
from onoma.text.words import join

Span = tuple[int, int, str]  # first, end (exclusive), label


class Tokenised(NamedTuple):
    """A document as tokens: `spans` count tokens; `text` is None when the tokens alone rebuild it."""

    tokens: list[str]
    spans: list[Span]
    text: str | None


def from_tokens(
    tokens: Sequence[str], spans: Iterable[Span], *, text: str | None = None, annotated: Iterable[str] | None = None
) -> Document:
    """The document that tokens make, by themselves or as parts of the text given.

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
                f"the mention {first}-{end} ({shown(label)}) is empty or outside of the {len(words)} tokens"
            )
        characters.append((words[first][0], words[end - 1][1], label))
    return Document.from_spans(text, characters, annotated=annotated, words=words)


def to_tokens(document: Document) -> Tokenised:
    """The document as tokens, which split wherever a mention begins or ends, so that `from_tokens` loses nothing."""
    words, spans = aligned(document)
    tokens = [document.text[start:end] for start, end in words]
    if join(tokens) == (document.text, words):
        return Tokenised(tokens, spans, None)
    if locate(tokens, document.text) == words:
        return Tokenised(tokens, spans, document.text)
    # a token also occurs in the gap before it, where it would be found first: the gaps become tokens, too
    pieces, index = tile(words, len(document.text))
    spans = [(index[first], index[end - 1] + 1, label) for first, end, label in spans]
    return Tokenised([document.text[start:end] for start, end in pieces], spans, document.text)


def aligned(document: Document) -> tuple[list[tuple[int, int]], list[Span]]:
    """The words of a document, and its mentions in them."""
    alignment = align(document, exact=True)
    words = [(start, end) for start, end in alignment.words.tolist()]
    mentions = zip(alignment.mentions.tolist(), document.entities, strict=True)
    return words, [(first, last + 1, entity.label) for (first, last), entity in mentions]


def locate(tokens: Sequence[str], text: str) -> list[tuple[int, int]]:
    """The offsets of tokens in a text, each at the first place after the one before it.

    >>> locate(["a", "b", "a"], "a  ba")
    [(0, 1), (3, 4), (4, 5)]
    """
    offsets, position = [], 0
    for token in tokens:
        start = text.find(token, position)
        if start < 0:
            raise OnomaError(f"the token {shown(token)} does not stand in the text after character {position}")
        position = start + len(token)
        offsets.append((start, position))
    return offsets


def tile(words: Sequence[tuple[int, int]], length: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Words and the gaps between them, which together cover a text, and where in that list each word stands.

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


def first_overlap(entities: Iterable[Entity]) -> tuple[Entity, Entity] | None:
    """The first two mentions (in the order of a document) that share a character, if any do."""
    previous: Entity | None = None
    for entity in entities:
        if previous is not None and entity.start < previous.end:
            return previous, entity
        previous = entity  # no overlap so far, so this one also ends last
    return None
