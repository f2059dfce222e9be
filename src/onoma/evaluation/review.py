"""Predictions that the gold lacks: errors of the model, or mentions that annotators missed."""

from __future__ import annotations

from collections.abc import Sequence

from onoma.data.review import Candidate
from onoma.entities import Corpus, Entity
from onoma.evaluation.comparison import known_predictions


def missed_candidates(corpus: Corpus, predicted: Sequence[Sequence[Entity]]) -> list[Candidate]:
    """The predictions that are not gold mentions, the most confident first.

    >>> from onoma.entities import Document
    >>> corpus = Corpus("tiny", [Document.from_spans("Tom saw Ann.", [(0, 3, "person")])])
    >>> [one.context for one in missed_candidates(corpus, [[Entity(8, 11, "Ann", "person", 0.9)]])]
    ['Tom saw [[Ann]].']
    """
    candidates = []
    for number, (document, entities) in enumerate(zip(corpus, known_predictions(corpus, predicted), strict=True), 1):
        gold = {entity.key for entity in document.entities}
        candidates += [Candidate.of(number, document, entity) for entity in entities if entity.key not in gold]
    return sorted(candidates, key=lambda one: (-one.score, one.document, one.start, one.end, one.label))
