"""Which gold mention and which prediction belong together, what is wrong with the pair, and which types are confused.

Each prediction is paired with at most one gold mention, and each gold mention with at most one prediction: first those
with the same offsets and label, then those with the same offsets, then those that share a character, of the same label
first, and the nearest boundaries first. A gold mention without a pair was missed, a prediction without one is invented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.evaluation.columns import Integers, overlap_pairs, pair_in_order
from onoma.evaluation.comparison import Comparison

NONE = -1
"""Instead of a row, for mentions without a pair."""
ERROR_KINDS = {
    "start": "wrong start",
    "end": "wrong end",
    "both": "wrong start and end",
    "type": "wrong type",
    "type_and_span": "wrong type and boundaries",
    "missed": "missed",
    "invented": "invented",
}
"""The kinds of errors, and how they are called in tables."""
_CORRECT = len(ERROR_KINDS)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows of `comparison.gold` and `comparison.predicted`, side by side; `NONE` if there is nothing to pair with."""

    comparison: Comparison
    gold: Integers
    predicted: Integers

    def labels(self) -> tuple[Integers, Integers]:
        """The labels of both sides, as indices into the inventory; `NONE` where there is no mention."""
        sides = (self.comparison.gold, self.gold), (self.comparison.predicted, self.predicted)
        gold, predicted = (np.append(mentions.label, NONE)[rows] for mentions, rows in sides)
        return gold, predicted

    def kinds(self) -> Integers:
        """The kind of error of each pair, as an index into `ERROR_KINDS`; their number if there is no error."""
        gold, predicted = self.comparison.gold, self.comparison.predicted
        same_start, same_end = (
            np.append(own, NONE)[self.gold] == np.append(other, NONE)[self.predicted]
            for own, other in ((gold.start, predicted.start), (gold.end, predicted.end))
        )
        gold_label, predicted_label = self.labels()
        same_label = gold_label == predicted_label
        conditions = {
            "missed": self.predicted == NONE,
            "invented": self.gold == NONE,
            "type": same_start & same_end & ~same_label,
            "type_and_span": ~same_label,
            "start": same_end & ~same_start,
            "end": same_start & ~same_end,
            "both": ~same_start & ~same_end,
        }
        numbers = {kind: number for number, kind in enumerate(ERROR_KINDS)}
        return np.select(list(conditions.values()), [numbers[kind] for kind in conditions], _CORRECT).astype(np.int64)


def pair_mentions(comparison: Comparison) -> Pairs:
    """Pair the mentions of a comparison; the rules are at the top of this file."""
    gold_rows, predicted_rows = np.flatnonzero(~comparison.found), np.flatnonzero(~comparison.correct)
    gold, predicted = comparison.gold.take(gold_rows), comparison.predicted.take(predicted_rows)
    predicted_row, gold_row = overlap_pairs(predicted.start, predicted.end, gold.start, gold.end)
    a, b = gold.take(gold_row), predicted.take(predicted_row)
    distance = np.abs(a.start - b.start) + np.abs(a.end - b.end)
    order = np.lexsort((predicted_row, gold_row, distance, a.label != b.label, distance > 0))
    kept = pair_in_order(predicted_row, gold_row, order)
    paired_gold, paired_predicted = gold_rows[gold_row[kept]], predicted_rows[predicted_row[kept]]
    missed, invented = np.setdiff1d(gold_rows, paired_gold), np.setdiff1d(predicted_rows, paired_predicted)
    # correct mentions are in the same order on both sides
    columns = (
        (np.flatnonzero(comparison.found), np.flatnonzero(comparison.correct)),
        (paired_gold, paired_predicted),
        (missed, np.full(len(missed), NONE)),
        (np.full(len(invented), NONE), invented),
    )
    return Pairs(comparison, *(np.concatenate(side).astype(np.int64) for side in zip(*columns, strict=True)))


@dataclass(frozen=True, slots=True)
class ConfusedTypes:
    """How often mentions of the type `gold` were predicted as `predicted`; None stands for nothing."""

    gold: str | None
    predicted: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Confusion:
    """Pairs of mentions by their types, the most frequent first. Boundaries may be wrong, which `ErrorKinds` counts."""

    cells: tuple[ConfusedTypes, ...]

    @property
    def confused(self) -> tuple[ConfusedTypes, ...]:
        """The cells of two different types."""
        return tuple(one for one in self.cells if one.gold and one.predicted and one.gold != one.predicted)

    def table(self, labels: Sequence[str]) -> Integers:
        """Counts of some types and of nothing, which is last: gold types by predicted types."""
        places: dict[str | None, int] = {label: place for place, label in enumerate(labels)} | {None: len(labels)}
        counts = np.zeros((len(places), len(places)), np.int64)
        for one in self.cells:
            if one.gold in places and one.predicted in places:
                counts[places[one.gold], places[one.predicted]] = one.count
        return counts


def confusion(pairs: Pairs) -> Confusion:
    """Count the pairs of each gold type and predicted type."""
    labels: list[str | None] = [*pairs.comparison.corpus.labels, None]  # NONE, which is -1, takes the last one
    rows, counts = np.unique(np.stack(pairs.labels(), axis=1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return Confusion(
        tuple(
            ConfusedTypes(labels[gold], labels[predicted], count)
            for (gold, predicted), count in zip(rows[order].tolist(), counts[order].tolist(), strict=True)
        )
    )


@dataclass(frozen=True, slots=True)
class ErrorKinds:
    """How many errors there are of each kind, as in table 9 of BINDER; `types` has the same per type.

    An error counts for the type of the gold mention, an invented mention for its own type. `too_long` and `too_short`
    count the predictions of the right type that contain their gold mention (a modifier was added), or are inside it (a
    modifier is missing).
    """

    correct: int
    kinds: Mapping[str, int]
    types: Mapping[str, Mapping[str, int]]
    too_long: int
    too_short: int

    @property
    def errors(self) -> int:
        return sum(self.kinds.values())


def error_kinds(pairs: Pairs) -> ErrorKinds:
    """Count the errors of each kind."""
    kinds, (gold_label, predicted_label) = pairs.kinds(), pairs.labels()
    labels = pairs.comparison.corpus.labels
    wrong = kinds != _CORRECT
    label = np.where(gold_label == NONE, predicted_label, gold_label)[wrong]
    table = np.zeros((len(labels), len(ERROR_KINDS)), np.int64)
    np.add.at(table, (label, kinds[wrong]), 1)
    same_type = wrong & (gold_label == predicted_label)
    gold = pairs.comparison.gold.take(pairs.gold[same_type])
    predicted = pairs.comparison.predicted.take(pairs.predicted[same_type])
    return ErrorKinds(
        int((~wrong).sum()),
        dict(zip(ERROR_KINDS, table.sum(0).tolist(), strict=True)),
        {
            labels[place]: dict(zip(ERROR_KINDS, table[place].tolist(), strict=True))
            for place in np.flatnonzero(table.any(1)).tolist()
        },
        int(((predicted.start <= gold.start) & (predicted.end >= gold.end)).sum()),
        int(((predicted.start >= gold.start) & (predicted.end <= gold.end)).sum()),
    )
