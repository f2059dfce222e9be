"""Confidence intervals and significance tests by bootstrapping documents.

A replicate draws as many documents as the corpus has, with replacement, and computes their strict micro scores.
Documents with the same counts are interchangeable, so a replicate is drawn as the frequency of each distinct row of
counts (a multinomial): the distribution is the same, and the cost depends only on the number of distinct rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.data.joining import SEPARATOR
from onoma.entities import Corpus
from onoma.errors import OnomaError
from onoma.evaluation.columns import Integers
from onoma.evaluation.comparison import Comparison, Mentions
from onoma.evaluation.strict import strict

_NOT_THE_SAME = "the two systems were not scored on the same documents and gold mentions. Fix: use one corpus for both."
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
        raise OnomaError(_NOT_THE_SAME)
    own, other = (document_counts(one)[:, None] for one in (first, second))
    return paired_bootstrap_of_runs(own, other, samples=samples, level=level, seed=seed)


def paired_bootstrap_of_runs(
    first: Integers, second: Integers, *, samples: int = 1000, level: float = 0.95, seed: int = 0
) -> Difference:
    """Compare the mean F1 of the runs of two systems, which differ in their seeds, on the same documents.

    `first` and `second` hold the counts of `document_counts` for each run: (documents, runs, 3).
    """
    return paired_bootstrap_of_corpora([(first, second)], samples=samples, level=level, seed=seed)


def paired_bootstrap_of_corpora(
    pairs: Sequence[tuple[Integers, Integers]], *, samples: int = 1000, level: float = 0.95, seed: int = 0
) -> Difference:
    """The same for the mean over several corpora, each resampled by itself; `pairs` are the counts of both systems."""
    _check(samples, level)
    columns = [_differences(*pair, samples, (seed, number)) for number, pair in enumerate(pairs)]
    value, differences = (np.mean(column, axis=0) for column in zip(*columns, strict=True))
    smaller_side = min((differences <= 0).sum(), (differences >= 0).sum())
    p_value = min(1.0, 2 * (int(smaller_side) + 1) / (samples + 1))
    return Difference(_interval(float(value), differences, level), p_value, level, samples)


def _differences(
    first: Integers, second: Integers, samples: int, seed: int | Sequence[int]
) -> tuple[float, NDArray[np.float64]]:
    """The difference of mean F1 on all documents of a corpus, and on each replicate."""
    if first.shape[0] != second.shape[0] or not np.array_equal(first[:, 0, 0], second[:, 0, 0]):
        raise OnomaError(_NOT_THE_SAME)
    columns = first.shape[1] * 3
    counts = np.concatenate([first.reshape(len(first), -1), second.reshape(len(second), -1)], axis=1)
    totals = np.concatenate([counts.sum(0, keepdims=True), _resample(counts, samples, seed)])
    found = _mean_f1(totals[:, :columns]) - _mean_f1(totals[:, columns:])
    return float(found[0]), found[1:]


def mention_counts(comparison: Comparison, corpus: Corpus) -> Integers:
    """The counts of `document_counts` for the documents of a corpus, of a comparison in which they were joined.

    A prediction that crosses the edge of documents counts for the one in which it starts.
    """
    width = len(SEPARATOR)
    starts = np.cumsum([0, *(len(document.text) + width for document in corpus)])

    def count(mentions: Mentions) -> Integers:
        places = mentions.start + width * mentions.document  # `start` does not count separators
        return np.bincount(np.searchsorted(starts, places, side="right") - 1, minlength=len(corpus))

    correct = comparison.predicted.take(np.flatnonzero(comparison.correct))
    return np.stack([count(one) for one in (comparison.gold, comparison.predicted, correct)], axis=1)


def document_counts(comparison: Comparison) -> Integers:
    """The numbers of gold, predicted and correct mentions of each document: (documents, 3)."""
    gold, predicted = comparison.gold.document, comparison.predicted.document
    columns = (gold, predicted, predicted[comparison.correct])
    return np.stack([np.bincount(column, minlength=len(comparison.corpus)) for column in columns], axis=1)


def _check(samples: int, level: float) -> None:
    if samples < 1 or not 0 < level < 1:
        raise OnomaError(f"bootstrap needs samples >= 1 and 0 < level < 1, got samples={samples}, level={level}")


def _resample(counts: Integers, samples: int, seed: int | Sequence[int]) -> Integers:
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


def _mean_f1(counts: Integers) -> NDArray[np.float64]:
    """The mean F1 of runs, for each row of their (gold, predicted, correct): (rows, runs · 3)."""
    runs = counts.reshape(-1, 3)
    return np.asarray(_scores(runs)[2].reshape(len(counts), -1).mean(1))


def _interval(value: float, replicates: NDArray[np.float64], level: float) -> Interval:
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))
