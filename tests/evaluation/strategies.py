"""Random corpora with predictions, for the tests of all measures."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st

from onoma import Corpus, Document, Entity, EntityType

LABELS = ("A", "B", "C")
Key = tuple[int, int, str]

quick = settings(max_examples=50, deadline=None)
"""For tests with whole corpora, which are slow to generate."""


def entities(text: str, spans: list[Key]) -> list[Entity]:
    return [Entity(start, end, text[start:end], label) for start, end, label in spans]


@st.composite
def spans(draw: st.DrawFn, length: int, labels: tuple[str, ...], flat: bool) -> list[Key]:
    """Any spans of a text of this length; with `flat`, none that overlap."""
    if length == 0:
        return []
    if flat:
        edges = sorted(draw(st.sets(st.integers(0, length), max_size=10)))
        pairs = [(a, b) for a, b in pairwise(edges) if draw(st.booleans())]
    else:
        places = st.tuples(st.integers(0, length - 1), st.integers(1, 7))
        pairs = [(start, min(length, start + size)) for start, size in draw(st.lists(places, max_size=6))]
    return [(a, b, draw(st.sampled_from(labels))) for a, b in pairs]


@st.composite
def scored(draw: st.DrawFn, flat: bool = False) -> tuple[Corpus, list[list[Entity]]]:
    """A corpus and predictions: some are gold mentions, some random, some with labels unknown in their document."""
    documents, predicted = [], []
    for _ in range(draw(st.integers(0, 4))):
        text = draw(st.text(alphabet="aB. é", max_size=16))
        annotated = draw(st.none() | st.sets(st.sampled_from(LABELS), min_size=1))
        gold = draw(spans(len(text), tuple(sorted(annotated or LABELS)), flat))
        documents.append(Document.from_spans(text, gold, annotated=annotated))
        guesses = draw(spans(len(text), (*LABELS, "unknown"), flat))
        if gold and draw(st.booleans()):
            kept = draw(st.lists(st.sampled_from(gold)))
            taken = {place for start, end, _ in kept for place in range(start, end)} if flat else set()
            guesses = kept + [guess for guess in guesses if taken.isdisjoint(range(*guess[:2]))]
        predicted.append(entities(text, guesses))
    return Corpus("random", documents, tuple(map(EntityType, LABELS))), predicted


def sets(corpus: Corpus, predicted: list[list[Entity]]) -> list[tuple[set[Key], set[Key]]]:
    """The gold and predicted keys of each document that count, computed in the slow and obvious way."""
    return [
        (
            {entity.key for entity in document.entities},
            {entity.key for entity in found if entity.label in corpus.annotated(document)},
        )
        for document, found in zip(corpus, predicted, strict=True)
    ]
