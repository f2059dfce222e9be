"""Gold and predicted mentions as columns."""

from __future__ import annotations

import pytest

from onoma import Corpus, Document, Entity, EntityType, OnomaError
from onoma.evaluation import Comparison


def test_predictions_of_labels_unknown_in_a_document_are_left_out() -> None:
    corpus = Corpus(
        "partial",
        [
            Document.from_spans("Tom saw Paris", [(0, 3, "person")], annotated=["person"]),
            Document.from_spans("Tom saw Paris", [(8, 13, "city")]),
        ],
        (EntityType("person"), EntityType("city")),
    )
    city, animal = Entity(8, 13, "Paris", "city"), Entity(0, 3, "Tom", "animal")
    comparison = Comparison.between(corpus, [[city], [city, animal]])
    # "city" is not annotated in the first document; "animal" is not in the inventory
    assert comparison.left_out == 2
    assert comparison.predicted.document.tolist() == [1]
    assert comparison.correct.tolist() == [True]
    assert comparison.found.tolist() == [False, True]


def test_an_annotated_label_outside_the_inventory_does_not_count() -> None:
    document = Document.from_spans("Tom", [], annotated=["person", "cat"])
    comparison = Comparison.between(Corpus("c", [document], (EntityType("person"),)), [[Entity(0, 3, "Tom", "cat")]])
    assert comparison.left_out == 1


def test_a_repeated_mention_counts_once() -> None:
    corpus = Corpus("twice", [Document.from_spans("Tom", [(0, 3, "person"), (0, 3, "person")])])
    comparison = Comparison.between(corpus, [[Entity(0, 3, "Tom", "person", 0.9), Entity(0, 3, "Tom", "person", 0.8)]])
    assert (len(comparison.gold), len(comparison.predicted)) == (1, 1)


def test_equal_offsets_in_different_documents_do_not_match() -> None:
    corpus = Corpus("two", [Document.from_spans("Tom", [(0, 3, "person")]), Document("Ann")])
    comparison = Comparison.between(corpus, [[], [Entity(0, 3, "Ann", "person")]])
    assert not comparison.found.any()
    assert not comparison.correct.any()


def test_mentions_are_sorted_and_keep_their_strings() -> None:
    corpus = Corpus("two", [Document("no"), Document.from_spans("Tom saw Ann", [(8, 11, "p"), (0, 3, "p")])])
    predicted = [Entity(8, 11, "Ann", "p"), Entity(4, 7, "saw", "p"), Entity(8, 11, "Ann", "p")]
    comparison = Comparison.between(corpus, [[], predicted])
    assert comparison.gold.text.tolist() == ["Tom", "Ann"]
    assert comparison.predicted.text.tolist() == ["saw", "Ann"]
    assert comparison.predicted.start.tolist() == [2 + 4, 2 + 8]  # offsets continue from one document to the next


def test_missing_predictions_are_an_error() -> None:
    corpus = Corpus("two", [Document("Tom"), Document("Ann")])
    with pytest.raises(OnomaError, match=r"2 documents, but there are predictions for 1\. Fix: "):
        Comparison.between(corpus, [[]])


def test_predictions_that_do_not_match_the_text_are_an_error() -> None:
    corpus = Corpus("two", [Document("Tom"), Document("Ann")])
    with pytest.raises(OnomaError, match=r"'Tom'.*document 1.*'Ann'.*order"):
        Comparison.between(corpus, [[], [Entity(0, 3, "Tom", "person")]])
