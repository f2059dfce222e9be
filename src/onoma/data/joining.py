"""Joining consecutive short documents into longer ones, so that windows can span several sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from onoma.entities import Corpus, Document, Entity

SEPARATOR = "\n"


def join_documents(corpus: Corpus, max_characters: int = 10_000) -> Corpus:
    """Join consecutive documents (such as the sentences of a text), with their mentions, into longer documents.

    A new document is started if the next one has other annotated labels or would exceed `max_characters`.

    >>> one = Document.from_spans("Tom sang.", [(0, 3, "person")])
    >>> [entity.start for entity in join_documents(Corpus("c", [one, one])).documents[0].entities]
    [0, 10]
    """
    return replace(corpus, documents=tuple(_join(group) for group in _groups(corpus, max_characters)))


def _groups(corpus: Corpus, max_characters: int) -> Iterator[list[Document]]:
    """Consecutive documents that are joined into one."""
    group: list[Document] = []
    size = 0
    for document in corpus:
        if group and (size + len(document.text) > max_characters or document.annotated != group[0].annotated):
            yield group
            group, size = [], 0
        group.append(document)
        size += len(document.text) + len(SEPARATOR)
    if group:
        yield group


def _join(documents: Sequence[Document]) -> Document:
    entities: list[Entity] = []
    offset = 0
    for document in documents:
        entities += [replace(one, start=one.start + offset, end=one.end + offset) for one in document.entities]
        offset += len(document.text) + len(SEPARATOR)
    return Document(SEPARATOR.join(one.text for one in documents), tuple(entities), documents[0].annotated)
