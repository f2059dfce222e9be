"""Strict scores."""

from __future__ import annotations

import pytest
from hypothesis import given

from evaluation.strategies import LABELS, quick, scored, sets
from onoma import Corpus, Document, Entity
from onoma.evaluation import Averages, Comparison, Scores
from onoma.evaluation.strict import strict


def test_scores_computed_by_hand() -> None:
    #       0123456789012345678901
    text = "Tom and Ann saw Paris."
    corpus = Corpus("hand", [Document.from_spans(text, [(0, 3, "person"), (8, 11, "person"), (16, 21, "city")])])
    predicted = [
        Entity(0, 3, "Tom", "person"),  # right
        Entity(8, 15, "Ann saw", "person"),  # wrong end
        Entity(16, 21, "Paris", "person"),  # wrong label
        Entity(16, 21, "Paris", "city"),  # right
    ]
    result = strict(Comparison.between(corpus, [predicted]))
    # 3 gold, 4 predicted, 2 right: P = 2/4, R = 2/3, F1 = 2*2/(3+4)
    assert result.micro == Scores(gold=3, predicted=4, found=2, correct=2)
    assert result.micro.precision == 0.5
    assert result.micro.recall == pytest.approx(2 / 3)
    assert result.micro.f1 == pytest.approx(4 / 7)
    # person: P = 1/3, R = 1/2, F1 = 2/5; city: all 1
    assert result.types == {"city": Scores(1, 1, 1, 1), "person": Scores(2, 3, 1, 1)}
    assert result.macro.precision == pytest.approx((1 / 3 + 1) / 2)
    assert result.macro.recall == pytest.approx((1 / 2 + 1) / 2)
    assert result.macro.f1 == pytest.approx((2 / 5 + 1) / 2)


def test_macro_is_the_mean_over_types_with_gold_or_predicted_mentions() -> None:
    corpus = Corpus(
        "macro",
        [Document.from_spans("Tom Paris", [(0, 3, "person")], annotated=["person", "city", "drug"])],
    )
    result = strict(Comparison.between(corpus, [[Entity(0, 3, "Tom", "person"), Entity(4, 9, "Paris", "city")]]))
    assert set(result.types) == {"person", "city"}  # "drug" has no mentions
    assert result.macro == Averages(0.5, 0.5, 0.5, types=2)


def test_an_empty_corpus_scores_zero() -> None:
    result = strict(Comparison.between(Corpus("empty", []), []))
    assert (result.micro.precision, result.micro.recall, result.micro.f1) == (0.0, 0.0, 0.0)
    assert result.macro == Averages(0.0, 0.0, 0.0, 0)


@quick
@given(scored())
def test_scores_equal_those_of_sets_per_document(case: tuple[Corpus, list[list[Entity]]]) -> None:
    result = strict(Comparison.between(*case))
    total = [0, 0, 0]
    for label in LABELS:
        gold = {(n, key) for n, (keys, _) in enumerate(sets(*case)) for key in keys if key[2] == label}
        predicted = {(n, key) for n, (_, keys) in enumerate(sets(*case)) for key in keys if key[2] == label}
        right = len(gold & predicted)
        expected = Scores(len(gold), len(predicted), right, right)
        assert result.types.get(label, Scores(0, 0, 0, 0)) == expected
        assert (label in result.types) == bool(gold or predicted)
        total = [total[0] + len(gold), total[1] + len(predicted), total[2] + right]
    assert result.micro == Scores(total[0], total[1], total[2], total[2])
