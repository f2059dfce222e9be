"""Counts of mentions, and the precision, recall and F1 computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.evaluation.columns import Booleans, Integers


def ratio(part: float, whole: float) -> float:
    """part / whole, or 0 if whole is 0, as in conlleval."""
    return part / whole if whole else 0.0


def harmonic_mean(precision: float, recall: float) -> float:
    """F1 = 2PR / (P + R)."""
    return ratio(2 * precision * recall, precision + recall)


@dataclass(frozen=True, slots=True)
class Scores:
    """The numbers of gold and predicted mentions, and how many of them match.

    P = correct / predicted, R = found / gold, F1 = 2PR / (P + R).
    `correct` counts predicted mentions and `found` counts gold ones. They are equal if matches are one to one, and may
    differ if not (one prediction that overlaps two gold mentions).
    """

    gold: int
    predicted: int
    found: int
    correct: int

    @classmethod
    def one_to_one(cls, gold: int, predicted: int, correct: int) -> Scores:
        """Scores for matches that are one to one, so that as many gold as predicted mentions match."""
        return cls(gold, predicted, correct, correct)

    @classmethod
    def total(cls, scores: Iterable[Scores]) -> Scores:
        """The sum of the counts (micro scores)."""
        return sum(scores, cls(0, 0, 0, 0))

    @property
    def precision(self) -> float:
        return ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        return ratio(self.found, self.gold)

    @property
    def f1(self) -> float:
        return harmonic_mean(self.precision, self.recall)

    def f_beta(self, beta: float) -> float:
        """F_β = (1 + β²)PR / (β²P + R), which counts recall more than precision if β > 1."""
        weight = beta**2
        return ratio((1 + weight) * self.precision * self.recall, weight * self.precision + self.recall)

    def __add__(self, other: Scores) -> Scores:
        return Scores(
            self.gold + other.gold,
            self.predicted + other.predicted,
            self.found + other.found,
            self.correct + other.correct,
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """The number of gold mentions and how many were found, if precision is not defined: R = found / gold."""

    gold: int
    found: int

    @property
    def recall(self) -> float:
        return ratio(self.found, self.gold)


@dataclass(frozen=True, slots=True)
class Averages:
    """The means over types of precision, recall and F1 (F1 is averaged, not computed from the other means)."""

    precision: float
    recall: float
    f1: float
    types: int

    @classmethod
    def over(cls, scores: Iterable[Scores]) -> Averages:
        rows = list(scores)
        precision = ratio(sum(row.precision for row in rows), len(rows))
        recall = ratio(sum(row.recall for row in rows), len(rows))
        return cls(precision, recall, ratio(sum(row.f1 for row in rows), len(rows)), len(rows))


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One measure: over all mentions (micro), averaged over types (macro), and per type.

    `types` has the types with a gold or a predicted mention, in the order of the inventory; `macro` is the mean over
    these.
    """

    micro: Scores
    macro: Averages
    types: Mapping[str, Scores]

    @classmethod
    def of(cls, scores: Mapping[str, Scores]) -> Breakdown:
        active = {name: score for name, score in scores.items() if score.gold or score.predicted}
        return cls(Scores.total(active.values()), Averages.over(active.values()), active)


def tabulate(
    names: Sequence[str], gold_group: Integers, found: Booleans, predicted_group: Integers, correct: Booleans
) -> dict[str, Scores]:
    """Scores per group of mentions; groups are given as indices into `names`."""
    size = len(names)
    counts = (
        np.bincount(gold_group, minlength=size),
        np.bincount(predicted_group, minlength=size),
        np.bincount(gold_group[found], minlength=size),
        np.bincount(predicted_group[correct], minlength=size),
    )
    return {name: Scores(*(int(count[place]) for count in counts)) for place, name in enumerate(names)}
