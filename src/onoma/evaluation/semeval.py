"""The four measures of SemEval 2013 task 9.1: strict, exact, partial and type.

Each prediction is paired with at most one gold mention, and each gold mention with at most one prediction:

1. First, predictions with the offsets and the label of a gold mention are paired with it; then, for exact and partial,
   predictions with the offsets of a gold mention.
2. Then each remaining prediction, in order of its offsets, is paired with an unpaired gold mention that it overlaps:
   the first one; for type, the one of its own label with the nearest boundaries, else the first one.

| measure | correct                   | otherwise |
|---------|---------------------------|-----------|
| strict  | same offsets, same label  | incorrect |
| exact   | same offsets              | incorrect |
| partial | same offsets              | partial   |
| type    | overlap, same label       | incorrect |

A prediction without a pair is spurious, a gold mention without one is missed.
Possible = correct + incorrect + partial + missed, actual = correct + incorrect + partial + spurious,
P = (correct + partial / 2) / actual, R = (correct + partial / 2) / possible.

For flat mentions the counts equal those of the package nervaluate. There are two intended differences: step 1 is
completed for all mentions before step 2, so that with nested mentions a wrong prediction is never paired with the gold
mention of a correct one; and one shared character is an overlap, regardless of the length of the mention.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onoma.evaluation.columns import Booleans, Integers, encode, overlap_pairs, pair_in_order
from onoma.evaluation.comparison import Comparison, Mentions
from onoma.evaluation.scores import harmonic_mean, ratio


@dataclass(frozen=True, slots=True)
class SemEvalScores:
    """The counts of one measure, and the scores computed from them."""

    correct: int
    incorrect: int
    partial: int
    missed: int
    spurious: int

    @property
    def possible(self) -> int:
        return self.correct + self.incorrect + self.partial + self.missed

    @property
    def actual(self) -> int:
        return self.correct + self.incorrect + self.partial + self.spurious

    @property
    def precision(self) -> float:
        return ratio(self.correct + self.partial / 2, self.actual)

    @property
    def recall(self) -> float:
        return ratio(self.correct + self.partial / 2, self.possible)

    @property
    def f1(self) -> float:
        return harmonic_mean(self.precision, self.recall)


@dataclass(frozen=True, slots=True)
class SemEval:
    """The four measures."""

    strict: SemEvalScores
    exact: SemEvalScores
    partial: SemEvalScores
    type: SemEvalScores


def semeval(comparison: Comparison) -> SemEval:
    """Compute the four measures; the rules are at the top of this file."""
    gold_rows, predicted_rows = np.flatnonzero(~comparison.found), np.flatnonzero(~comparison.correct)
    gold, predicted = comparison.gold.take(gold_rows), comparison.predicted.take(predicted_rows)
    fully_correct = len(comparison.gold) - len(gold)
    same_gold, same_predicted = _pair_by_offsets(gold, predicted)
    same_offsets = int(same_gold.sum())
    predicted_row, gold_row = overlap_pairs(predicted.start, predicted.end, gold.start, gold.end)

    in_order = np.lexsort((gold_row, predicted_row))
    overlapping = pair_in_order(predicted_row, gold_row, in_order)
    free = ~(same_gold[gold_row] | same_predicted[predicted_row])
    inexact = pair_in_order(predicted_row, gold_row, in_order[free[in_order]])

    other_label = gold.label[gold_row] != predicted.label[predicted_row]
    distance = _distance(gold.take(gold_row), predicted.take(predicted_row))
    distance[other_label] = 0  # the distance matters only for gold mentions with the label of the prediction
    typed = pair_in_order(predicted_row, gold_row, np.lexsort((gold_row, distance, other_label, predicted_row)))
    same_label = len(typed) - int(other_label[typed].sum())

    def scores(correct: int, incorrect: int = 0, partial: int = 0) -> SemEvalScores:
        paired = correct + incorrect + partial
        missed, spurious = len(comparison.gold) - paired, len(comparison.predicted) - paired
        return SemEvalScores(correct, incorrect, partial, missed, spurious)

    return SemEval(
        strict=scores(fully_correct, incorrect=len(overlapping)),
        exact=scores(fully_correct + same_offsets, incorrect=len(inexact)),
        partial=scores(fully_correct + same_offsets, partial=len(inexact)),
        type=scores(fully_correct + same_label, incorrect=len(typed) - same_label),
    )


def _distance(gold: Mentions, predicted: Mentions) -> Integers:
    """The distance in characters between the boundaries of each pair, start and end added up."""
    distance: Integers = np.abs(gold.start - predicted.start) + np.abs(gold.end - predicted.end)
    return distance


def _pair_by_offsets(gold: Mentions, predicted: Mentions) -> tuple[Booleans, Booleans]:
    """Which mentions have a partner with the same offsets; mentions with equal offsets are paired in their order."""
    codes = encode((gold.start, gold.end), (predicted.start, predicted.end))
    ranks = tuple(_rank_among_equals(side) for side in codes)
    gold_codes, predicted_codes = encode((codes[0], ranks[0]), (codes[1], ranks[1]))
    return np.isin(gold_codes, predicted_codes), np.isin(predicted_codes, gold_codes)


def _rank_among_equals(codes: Integers) -> Integers:
    """For sorted codes, the number of equal codes before each of them."""
    return np.arange(len(codes)) - np.searchsorted(codes, codes, side="left")
