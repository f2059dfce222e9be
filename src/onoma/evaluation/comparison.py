"""Gold and predicted mentions as columns: the input of every measure.

Throughout this package, gold mentions are a `Corpus`, and predictions are one sequence of entities per document, in the
same order. A prediction whose label is unknown in its document (not annotated there, or not in the inventory) is left
out; it is not a false positive. A repeated mention counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Corpus, Document, Entity
from onoma.errors import OnomaError
from onoma.evaluation.columns import Booleans, Integers, distinct, encode


@dataclass(frozen=True, slots=True, eq=False)
class Mentions:
    """Distinct mentions of all documents as columns, sorted by start, end and label.

    `start` and `end` are offsets in all texts joined into one string, so that mentions of different documents never
    have the same offsets. `label` is the index in the inventory.
    """

    document: Integers
    start: Integers
    end: Integers
    label: Integers
    text: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Integers) -> Mentions:
        return Mentions(self.document[rows], self.start[rows], self.end[rows], self.label[rows], self.text[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A corpus and the predictions of a system for it.

    `found` marks the gold mentions that were predicted with the same offsets and label, `correct` the predictions that
    are gold mentions. `left_out` counts the predictions whose label is unknown in their document.

    >>> corpus = Corpus("tiny", [Document.from_spans("Tom saw Ann.", [(0, 3, "person"), (8, 11, "person")])])
    >>> Comparison.between(corpus, [[Entity(0, 3, "Tom", "person"), Entity(0, 3, "Tom", "cat")]]).left_out
    1
    """

    corpus: Corpus
    offsets: Integers  # (documents + 1,): the start of each document, and at the end the total length
    gold: Mentions
    predicted: Mentions
    found: Booleans
    correct: Booleans
    left_out: int

    def __repr__(self) -> str:
        counts = f"gold: {len(self.gold):,}, predicted: {len(self.predicted):,}, correct: {int(self.correct.sum()):,}"
        return f"Comparison({self.corpus.name!r}, {len(self.corpus):,} documents, {counts})"

    @classmethod
    def between(cls, corpus: Corpus, predicted: Sequence[Sequence[Entity]]) -> Comparison:
        """Compare predictions, one sequence of entities per document, with the gold mentions of a corpus."""
        known = known_predictions(corpus, predicted)
        lengths = [len(document.text) for document in corpus]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(lengths, dtype=np.int64))])
        places = {label: place for place, label in enumerate(corpus.labels)}
        gold_table = _table([document.entities for document in corpus], offsets, places)
        predicted_table = _table(known, offsets, places)
        gold_codes, predicted_codes = encode(
            (gold_table.start, gold_table.end, gold_table.label),
            (predicted_table.start, predicted_table.end, predicted_table.label),
        )
        gold_codes, gold_rows = distinct(gold_codes)
        predicted_codes, predicted_rows = distinct(predicted_codes)
        return cls(
            corpus,
            offsets,
            gold_table.take(gold_rows),
            predicted_table.take(predicted_rows),
            np.isin(gold_codes, predicted_codes),
            np.isin(predicted_codes, gold_codes),
            left_out=sum(map(len, predicted)) - sum(map(len, known)),
        )


def known_predictions(corpus: Corpus, predicted: Sequence[Sequence[Entity]]) -> list[list[Entity]]:
    """The predictions whose label is annotated in their document; an error if they do not match its text."""
    if len(predicted) != len(corpus):
        raise OnomaError(
            f"corpus {corpus.name!r} has {len(corpus)} documents, but there are predictions for {len(predicted)}. "
            "Fix: give one list of entities per document, in the order of the corpus."
        )
    inventory = frozenset(corpus.labels)  # once: an inventory can have thousands of types
    known = []
    for number, (document, entities) in enumerate(zip(corpus, predicted, strict=True)):
        _check_text(number, document, entities)
        labels = inventory if document.annotated is None else document.annotated & inventory
        known.append([entity for entity in entities if entity.label in labels])
    return known


def _check_text(number: int, document: Document, entities: Sequence[Entity]) -> None:
    for entity in entities:
        if document.text[entity.start : entity.end] != entity.text:
            raise OnomaError(
                f"the prediction {entity.text!r} ({entity.start}-{entity.end}) does not match document {number}, whose "
                f"text there is {document.text[entity.start : entity.end]!r}. "
                "Fix: give predictions in the order of the corpus."
            )


def _table(entities: Sequence[Sequence[Entity]], offsets: Integers, places: dict[str, int]) -> Mentions:
    counts = np.fromiter(map(len, entities), dtype=np.int64, count=len(entities))
    flat = list(chain.from_iterable(entities))
    document = np.repeat(np.arange(len(entities)), counts)
    return Mentions(
        document,
        np.fromiter((entity.start for entity in flat), np.int64, len(flat)) + offsets[document],
        np.fromiter((entity.end for entity in flat), np.int64, len(flat)) + offsets[document],
        np.fromiter((places[entity.label] for entity in flat), np.int64, len(flat)),
        np.fromiter((entity.text for entity in flat), np.object_, len(flat)),
    )
