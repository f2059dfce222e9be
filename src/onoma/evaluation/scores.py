"""Counts, and the precision, recall and F1 that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.evaluation.columns import Booleans, Integers


def ratio(part: float, whole: float) -> float:
    """part / whole, and 0 where there is nothing to divide by, as conlleval has it."""
    return part / whole if whole else 0.0


def harmonic_mean(precision: float, recall: float) -> float:
    """F1 = 2PR / (P + R)."""
    return ratio(2 * precision * recall, precision + recall)


@dataclass(frozen=True, slots=True)
class Scores:
    """How many mentions there are and how many of them match.

    P = correct / predicted, R = found / gold, F1 = 2PR / (P + R).
    `correct` counts predicted mentions and `found` counts gold ones. Where a match is one to one they are
    equal; where it is not (one prediction that overlaps two gold mentions) they may differ.
    """

    gold: int
    predicted: int
    found: int
    correct: int

    @property
    def precision(self) -> float:
        return ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        return ratio(self.found, self.gold)

    @property
    def f1(self) -> float:
        return harmonic_mean(self.precision, self.recall)

    def __add__(self, other: Scores) -> Scores:
        return Scores(
            self.gold + other.gold,
            self.predicted + other.predicted,
            self.found + other.found,
            self.correct + other.correct,
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """Gold mentions and how many of them were found, where no precision can be told: R = found / gold."""

    gold: int
    found: int

    @property
    def recall(self) -> float:
        return ratio(self.found, self.gold)


@dataclass(frozen=True, slots=True)
class Averages:
    """The mean over types of precision, of recall and of F1 (F1 is averaged, not computed from the means)."""

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
    """One measure: over all mentions (micro), averaged over types (macro), and for each type.

    `types` holds the types that have a gold or a predicted mention, in the order of the inventory,
    and `macro` is the mean over exactly these.
    """

    micro: Scores
    macro: Averages
    types: Mapping[str, Scores]

    @classmethod
    def of(cls, scores: Mapping[str, Scores]) -> Breakdown:
        active = {name: score for name, score in scores.items() if score.gold or score.predicted}
        return cls(sum(active.values(), Scores(0, 0, 0, 0)), Averages.over(active.values()), active)


def tabulate(
    names: Sequence[str], gold_group: Integers, found: Booleans, predicted_group: Integers, correct: Booleans
) -> dict[str, Scores]:
    """Scores for each group of mentions; a mention's group is given as its place in `names`."""
    size = len(names)
    counts = (
        np.bincount(gold_group, minlength=size),
        np.bincount(predicted_group, minlength=size),
        np.bincount(gold_group[found], minlength=size),
        np.bincount(predicted_group[correct], minlength=size),
    )
    return {name: Scores(*(int(count[place]) for count in counts)) for place, name in enumerate(names)}
