"""Predictions that the gold lacks."""

from __future__ import annotations

from onoma import Corpus, Document, Entity
from onoma.evaluation.review import missed_candidates

CORPUS = Corpus(
    "news",
    [
        Document.from_spans("Tom flew to New York.", [(0, 3, "person"), (12, 20, "city")]),
        Document.from_spans("Ann sings.", [], annotated=["person"]),
    ],
)


def test_candidates_are_ranked_by_score_and_leave_out_gold_and_unknown_labels() -> None:
    predicted = [
        [Entity(0, 3, "Tom", "person", 0.99), Entity(16, 20, "York", "city", 0.4), Entity(0, 3, "Tom", "city", 0.6)],
        [Entity(0, 3, "Ann", "person", 0.9), Entity(0, 3, "Ann", "city", 0.95), Entity(4, 9, "sings", "event", 0.97)],
    ]
    rows = missed_candidates(CORPUS, predicted)
    assert [(one.document, one.text, one.label, one.score) for one in rows] == [
        (2, "Ann", "person", 0.9),
        (1, "Tom", "city", 0.6),
        (1, "York", "city", 0.4),
    ]
    assert [one.overlaps for one in rows] == ["", "Tom (person)", "New York (city)"]
    assert {one.accept for one in rows} == {""}
