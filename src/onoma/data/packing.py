"""Packing: consecutive short documents as one longer document, so that windows can reach across sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from onoma.entities import Corpus, Document, Entity

BETWEEN = "\n"


def pack(corpus: Corpus, characters: int = 10_000) -> Corpus:
    """Join neighbouring documents (sentences of one text, say) up to a length; mentions stay what they are.

    Documents with another set of annotated labels, or longer than the limit, begin a new one.

    >>> one = Document.from_spans("Tom sang.", [(0, 3, "person")])
    >>> [entity.start for entity in pack(Corpus("c", [one, one])).documents[0].entities]
    [0, 10]
    """
    return replace(corpus, documents=tuple(_join(part) for part in _parts(corpus, characters)))


def _parts(corpus: Corpus, characters: int) -> Iterator[list[Document]]:
    part: list[Document] = []
    size = 0
    for document in corpus:
        if part and (size + len(document.text) > characters or document.annotated != part[0].annotated):
            yield part
            part, size = [], 0
        part.append(document)
        size += len(document.text) + len(BETWEEN)
    if part:
        yield part


def _join(documents: Sequence[Document]) -> Document:
    entities: list[Entity] = []
    offset = 0
    for document in documents:
        entities += [replace(one, start=one.start + offset, end=one.end + offset) for one in document.entities]
        offset += len(document.text) + len(BETWEEN)
    return Document(BETWEEN.join(one.text for one in documents), tuple(entities), documents[0].annotated)
