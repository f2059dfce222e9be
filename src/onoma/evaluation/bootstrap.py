"""Confidence intervals and significance tests by bootstrapping documents.

A replicate draws as many documents as the corpus has, with replacement, and computes their strict micro scores.
Documents with the same counts are interchangeable, so a replicate is drawn as the frequency of each distinct row of
counts (a multinomial): the distribution is the same, and the cost depends only on the number of distinct rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.errors import OnomaError
from onoma.evaluation.columns import Integers
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.strict import strict

_CELLS_AT_ONCE = 4_000_000  # numbers drawn at the same time, which limits memory to some tens of megabytes


@dataclass(frozen=True, slots=True)
class Interval:
    """A score on the whole corpus, and the bounds of its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """Confidence intervals of the strict micro scores; each contains the share `level` of the replicates."""

    precision: Interval
    recall: Interval
    f1: Interval
    level: float
    samples: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The strict micro F1 of the first system minus that of the second.

    `p_value` is two-sided: p = min(1, 2 min(#{d <= 0} + 1, #{d >= 0} + 1) / (samples + 1)) over the differences d of
    the replicates. Because of the + 1 it is never 0, which no finite number of replicates could justify.
    """

    f1: Interval
    p_value: float
    level: float
    samples: int


def bootstrap(comparison: Comparison, *, samples: int = 1000, level: float = 0.95, seed: int = 0) -> Intervals:
    """Percentile intervals of strict micro precision, recall and F1."""
    _check(samples, level)
    replicates = _resample(document_counts(comparison), samples, seed)
    whole = strict(comparison).micro
    precision, recall, f1 = _scores(replicates)
    return Intervals(
        _interval(whole.precision, precision, level),
        _interval(whole.recall, recall, level),
        _interval(whole.f1, f1, level),
        level,
        samples,
    )


def paired_bootstrap(
    first: Comparison, second: Comparison, *, samples: int = 1000, level: float = 0.95, seed: int = 0
) -> Difference:
    """Compare two systems on the same documents; each replicate draws the same documents for both."""
    _check(samples, level)
    columns = ((table.offsets, table.gold.start, table.gold.end, table.gold.label) for table in (first, second))
    if not all(map(np.array_equal, *columns)):
        raise OnomaError(
            "the two systems were not scored on the same documents and gold mentions. Fix: use one corpus for both."
        )
    counts = np.concatenate([document_counts(first), document_counts(second)], axis=1)
    replicates = _resample(counts, samples, seed)
    differences = _scores(replicates[:, :3])[2] - _scores(replicates[:, 3:])[2]
    smaller_side = min((differences <= 0).sum(), (differences >= 0).sum())
    return Difference(
        _interval(strict(first).micro.f1 - strict(second).micro.f1, differences, level),
        min(1.0, 2 * (int(smaller_side) + 1) / (samples + 1)),
        level,
        samples,
    )


def document_counts(comparison: Comparison) -> Integers:
    """The numbers of gold, predicted and correct mentions of each document: (documents, 3)."""
    gold, predicted = comparison.gold.document, comparison.predicted.document
    columns = (gold, predicted, predicted[comparison.correct])
    return np.stack([np.bincount(column, minlength=len(comparison.corpus)) for column in columns], axis=1)


def _check(samples: int, level: float) -> None:
    if samples < 1 or not 0 < level < 1:
        raise OnomaError(f"bootstrap needs samples >= 1 and 0 < level < 1, got samples={samples}, level={level}")


def _resample(counts: Integers, samples: int, seed: int) -> Integers:
    """The total counts of each replicate: (samples, columns)."""
    if not len(counts):
        raise OnomaError("a corpus without documents cannot be resampled")
    rows, repeats = np.unique(counts, axis=0, return_counts=True)
    generator = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // len(rows))
    sizes = [min(step, samples - done) for done in range(0, samples, step)]
    probabilities = repeats / len(counts)
    return np.concatenate([generator.multinomial(len(counts), probabilities, size) @ rows for size in sizes])


def _scores(counts: Integers) -> tuple[NDArray[np.float64], ...]:
    """Precision, recall and F1 of each row of (gold, predicted, correct), as `Scores` defines them."""
    gold, predicted, correct = counts.T.astype(np.float64)
    fractions = ((correct, predicted), (correct, gold), (2 * correct, gold + predicted))
    return tuple(np.divide(a, b, out=np.zeros_like(a), where=b > 0) for a, b in fractions)


def _interval(value: float, replicates: NDArray[np.float64], level: float) -> Interval:
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))
