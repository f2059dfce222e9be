"""Scores of starts, ends, overlaps and spans."""

from __future__ import annotations

import pytest
from hypothesis import given

from evaluation.strategies import entities, quick, scored, sets
from onoma import Corpus, Document, Entity
from onoma.evaluation import Comparison, Scores
from onoma.evaluation.boundaries import end_only, loose, spans, start_only


def compare(text: str, gold: list[tuple[int, int, str]], predicted: list[tuple[int, int, str]]) -> Comparison:
    return Comparison.between(Corpus("hand", [Document.from_spans(text, gold)]), [entities(text, predicted)])


def test_scores_computed_by_hand() -> None:
    #       0         1         2
    #       0123456789012345678901234567
    text = "human T cells and the GR gene"
    gold = [(0, 13, "cell"), (22, 24, "protein"), (22, 29, "dna")]
    predicted = [(6, 13, "cell"), (22, 24, "protein"), (22, 24, "dna")]
    comparison = compare(text, gold, predicted)
    # starts: cell 0 is missed; protein 22 and dna 22 are right
    assert start_only(comparison).micro == Scores(3, 3, 2, 2)
    # ends: cell 13 and protein 24 are right; dna 29 is missed, dna 24 is wrong
    assert end_only(comparison).micro == Scores(3, 3, 2, 2)
    assert end_only(comparison).types["cell"].f1 == 1.0
    assert start_only(comparison).types["cell"].f1 == 0.0
    # loose: all three overlap a mention of their type
    assert loose(comparison).micro == Scores(3, 3, 3, 3)
    result = spans(comparison)
    # gold spans {0-13, 22-24, 22-29}, predicted spans {6-13, 22-24}: one in common
    assert result.span == Scores(gold=3, predicted=2, found=1, correct=1)
    # two predictions have the span 22-24, of which "protein" is right
    assert (result.span_correct, result.fully_correct, result.type_accuracy) == (2, 1, 0.5)


def test_mentions_with_the_same_start_count_once() -> None:
    comparison = compare("New York City", [(0, 8, "place"), (0, 13, "place")], [(0, 3, "place")])
    assert start_only(comparison).micro == Scores(1, 1, 1, 1)
    assert end_only(comparison).micro == Scores(2, 1, 0, 0)


def test_a_prediction_can_overlap_several_gold_mentions() -> None:
    comparison = compare("Tom and Ann", [(0, 3, "person"), (8, 11, "person")], [(0, 11, "person")])
    assert loose(comparison).micro == Scores(gold=2, predicted=1, found=2, correct=1)


def test_adjacent_mentions_do_not_overlap() -> None:
    comparison = compare("北京大学", [(0, 2, "place")], [(2, 4, "place")])
    assert loose(comparison).micro.f1 == 0.0


def test_loose_matches_need_the_same_label() -> None:
    assert loose(compare("Tom", [(0, 3, "person")], [(0, 3, "cat")])).micro.f1 == 0.0


@quick
@given(scored())
def test_scores_equal_slow_counts(case: tuple[Corpus, list[list[Entity]]]) -> None:
    comparison = Comparison.between(*case)
    starts, ends, plain = [0, 0, 0], [0, 0, 0], [0, 0, 0]
    loosely = [0, 0, 0, 0]
    same_span = 0
    for gold, predicted in sets(*case):
        for counts, part in (
            (starts, lambda key: (key[0], key[2])),
            (ends, lambda key: (key[1], key[2])),
            (plain, lambda key: key[:2]),
        ):
            left, right = {part(key) for key in gold}, {part(key) for key in predicted}
            for place, value in enumerate((len(left), len(right), len(left & right))):
                counts[place] += value
        found = sum(any(a < d and c < b and k == m for c, d, m in predicted) for a, b, k in gold)
        correct = sum(any(a < d and c < b and k == m for c, d, m in gold) for a, b, k in predicted)
        for place, value in enumerate((len(gold), len(predicted), found, correct)):
            loosely[place] += value
        same_span += sum(any(key[:2] == other[:2] for other in gold) for key in predicted)
    assert start_only(comparison).micro == Scores(*starts, starts[2])
    assert end_only(comparison).micro == Scores(*ends, ends[2])
    assert loose(comparison).micro == Scores(*loosely)
    assert spans(comparison).span == Scores(*plain, plain[2])
    assert spans(comparison).span_correct == same_span
    assert spans(comparison).fully_correct == sum(len(gold & predicted) for gold, predicted in sets(*case))


def test_type_accuracy_without_correct_spans_is_zero() -> None:
    assert spans(compare("Tom", [(0, 3, "person")], [])).type_accuracy == pytest.approx(0.0)
