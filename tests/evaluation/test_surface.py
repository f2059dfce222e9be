"""Scores that compare strings."""

from __future__ import annotations

import pytest
from hypothesis import given

from evaluation.strategies import LABELS, entities, quick, scored, sets
from onoma import Corpus, Document, Entity, EntityType
from onoma.evaluation import Comparison, Scores
from onoma.evaluation.surface import normalise, normalised_strings, plain_strings

Case = tuple[Corpus, list[list[Entity]]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("The Who", "who"), ("  U.S.  Army ", "us army"), ("an Apple", "apple"), ("Theory", "theory"), ("!", "")],
)
def test_case_punctuation_articles_and_white_space_are_normalised(text: str, expected: str) -> None:
    assert normalise(text) == expected


TEXT = "The Who met the who. WHO? Tom met Tom"
#       0123456789012345678901234567890123456


def test_normalised_strings_count_once_per_document() -> None:
    gold = [(0, 7, "band"), (16, 19, "band"), (21, 24, "band"), (26, 29, "person"), (34, 37, "person")]
    predicted = [(16, 20, "band"), (34, 37, "person"), (30, 33, "person")]
    corpus = Corpus("c", [Document.from_spans(TEXT, gold)] * 2)
    result = normalised_strings(Comparison.between(corpus, [entities(TEXT, predicted), []]))
    # first document: gold {who, tom}, predicted {who, tom, met}; second: gold {who, tom}, nothing predicted
    assert result.types == {"band": Scores(2, 1, 1, 1), "person": Scores(2, 2, 1, 1)}
    assert result.micro == Scores(4, 3, 2, 2)


def test_plain_strings_computed_by_hand() -> None:
    gold = [(16, 19, "band"), (21, 24, "band"), (26, 29, "person"), (34, 37, "person")]
    predicted = [(26, 29, "person"), (30, 33, "person"), (4, 7, "band")]
    corpus = Corpus("c", [Document.from_spans(TEXT, gold)], tuple(map(EntityType, ("band", "person", "drug"))))
    result = plain_strings(Comparison.between(corpus, [entities(TEXT, predicted)]))
    # band: "who" found once is found everywhere, F1 = 1; person: "tom" right, "met" wrong, P = 1/2, R = 1, F1 = 2/3
    assert result.types["band"] == Scores(1, 1, 1, 1)
    assert result.types["person"] == Scores(1, 2, 1, 1)
    # the mean over the whole inventory: "drug" adds 0
    assert result.macro.f1 == pytest.approx((1 + 2 / 3 + 0) / 3)


@quick
@given(scored())
def test_plain_strings_equal_slow_counts(case: Case) -> None:
    corpus, _ = case
    result = plain_strings(Comparison.between(*case))
    means = []
    for label in LABELS:
        right = wrong = missed = 0
        for document, sides in zip(corpus, sets(*case), strict=True):
            gold, predicted = (
                [document.text[start:end].lower() for start, end, kind in side if kind == label] for side in sides
            )
            right += sum(text in gold for text in predicted)
            wrong += sum(text not in gold for text in predicted)
            missed += sum(text not in predicted for text in gold)
        precision = right / (right + wrong) if right else 0
        recall = right / (right + missed) if right else 0
        means.append(2 * precision * recall / (precision + recall) if right else 0)
        assert result.types[label].f1 == pytest.approx(means[-1])
    assert result.macro.f1 == pytest.approx(sum(means) / len(LABELS))


@quick
@given(scored())
def test_normalised_strings_equal_those_of_sets(case: Case) -> None:
    corpus, _ = case
    counts = [0, 0, 0]
    for document, sides in zip(corpus, sets(*case), strict=True):
        gold, predicted = ({(normalise(document.text[a:b]), label) for a, b, label in side} for side in sides)
        for place, value in enumerate((len(gold), len(predicted), len(gold & predicted))):
            counts[place] += value
    assert normalised_strings(Comparison.between(*case)).micro == Scores(*counts, counts[2])
