"""Scored spans of a corpus: what a model considers, whether it reports it or not, and whether it is a gold mention.

They show whether scores can be trusted (`calibration`), what another threshold would do (`threshold_curves`), and how
well scores separate mentions from other spans (`score_distributions`, as figure 2 of BINDER). The model runs once, for
any system and for folders of several models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.candidates import Candidate, TextCandidates
from onoma.decoding.decode import preferred_rows
from onoma.decoding.overlap import Overlap, resolve_overlaps
from onoma.entities import Corpus, Entity, EntityType
from onoma.evaluation.candidates import middle_of_best, usual_overlap
from onoma.evaluation.columns import Booleans, Integers
from onoma.evaluation.scores import Scores, ratio
from onoma.extractor import Extractor
from onoma.labels.parsing import Threshold

FLOOR = 0.001
"""The lowest score of a span that is counted."""
KEPT_FLOOR = 0.01
"""The lowest score of a span that is kept; there are very many below, of which only the distribution is kept."""
THRESHOLDS = tuple(round(0.02 * step, 2) for step in range(1, 50))
"""The thresholds of curves."""
CALIBRATED_FROM = 0.1
"""The calibration error counts spans from this score on; almost all spans are below and are no mentions."""
CALIBRATION_BINS = 10
LOGITS = np.linspace(-7.0, 7.0, 57)
"""Edges of the bins of distributions: logits of scores, from 0.0009 to 0.9991."""
_DOCUMENTS_AT_ONCE = 128


@dataclass(frozen=True, slots=True, eq=False)
class ScoredSpans:
    """Spans with a type and a score as columns; offsets are those of all texts joined into one string.

    `correct` marks gold mentions, `known` spans whose type is annotated in their document. `gold` counts the gold
    mentions of each type. `distribution` counts spans by type, by whether they are gold mentions (0: no, 1: yes), and
    by the bin of their logit; gold mentions that were not even considered are in none.
    """

    labels: tuple[str, ...]
    start: Integers
    end: Integers
    type: Integers
    score: NDArray[np.float32]
    rank: NDArray[np.float32]
    preference: NDArray[np.float64]
    correct: Booleans
    known: Booleans
    gold: Integers
    distribution: Integers  # (labels, 2, bins)
    thresholds: Mapping[str, tuple[float, ...]]  # those used: one per model that read documents
    overlap: Overlap

    def has_scores(self) -> bool:
        """Whether scores differ; those of some generators do not."""
        return len(self.score) > 1 and float(np.ptp(self.score)) > 0.0

    def reported(self, threshold: float) -> Integers:
        """The rows that are reported if all types have this threshold, and whose type is annotated."""
        reached = np.flatnonzero(self.score >= np.float32(threshold))
        start, end, kind = self.start[reached], self.end[reached], self.type[reached]
        rows = resolve_overlaps(start, end, kind, self.rank[reached], overlap=self.overlap)
        span = np.unique(np.stack([start, end], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        chosen = reached[preferred_rows(span, kind, self.preference[reached], np.asarray(rows, np.int64))]
        return np.asarray(chosen[self.known[chosen]])

    def type_scores(self, threshold: float) -> dict[str, Scores]:
        """The strict scores of each type if all types have this threshold."""
        rows, size = self.reported(threshold), len(self.labels)
        predicted = np.bincount(self.type[rows], minlength=size)
        correct = np.bincount(self.type[rows[self.correct[rows]]], minlength=size)
        columns = zip(self.gold.tolist(), predicted.tolist(), correct.tolist(), strict=True)
        return {label: Scores.one_to_one(*counts) for label, counts in zip(self.labels, columns, strict=True)}


def score_spans(
    model: Extractor,
    corpus: Corpus,
    *,
    types: Sequence[EntityType] | None = None,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    on_progress: Callable[[int], None] = lambda documents: None,
) -> tuple[ScoredSpans, list[list[Entity]]]:
    """Run a model on a corpus: its spans with their scores, and the entities that it reports.

    `types` are those to ask for, by default all types of the corpus. Memory is bounded: of spans with scores below
    `KEPT_FLOOR`, only the distribution is kept.
    """
    model = model.with_style(corpus.name) if corpus.name in model.styles else model
    overlap = overlap or usual_overlap(corpus)
    asked = corpus.types if types is None else types
    collector, predicted = _Collector(corpus), list[list[Entity]]()
    for first in range(0, len(corpus), _DOCUMENTS_AT_ONCE):
        texts = [one.text for one in corpus.documents[first : first + _DOCUMENTS_AT_ONCE]]
        found = [TextCandidates() for _ in texts]
        if asked:
            found = model.candidates(
                texts, asked, floor=FLOOR, threshold=threshold, overlap=overlap, batch_size=batch_size
            )
        for one in found:
            collector.add(len(predicted), one.candidates, one.thresholds)
            predicted.append(one.entities)
        on_progress(len(predicted))
    return collector.spans(overlap), predicted


class _Collector:
    """Spans of documents as columns, and the distribution of their scores."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.places = corpus, {label: place for place, label in enumerate(corpus.labels)}
        self.offset, self.thresholds = 0, dict[str, set[float]]()
        self.parts = list[NDArray[np.float64]]()
        self.distribution = np.zeros((len(self.places), 2, len(LOGITS) - 1), np.int64)

    def add(self, number: int, candidates: Sequence[Candidate], thresholds: Mapping[str, float]) -> None:
        """The candidates of the next document."""
        document, rows = self.corpus.documents[number], []
        gold = {entity.key for entity in document.entities}
        for one in candidates:
            is_known = document.annotated is None or one.label in document.annotated
            place = self.offset + one.start, self.offset + one.end, self.places[one.label]
            is_gold = (one.start, one.end, one.label) in gold
            rows.append((*place, one.score, one.rank, one.preference, is_gold, is_known))
        table = np.array(rows, np.float64).reshape(-1, 8)
        self._count(table)
        self.parts.append(table[table[:, 3] >= KEPT_FLOOR])
        for label, value in thresholds.items():
            self.thresholds.setdefault(label, set()).add(round(value, 4))
        self.offset += len(document.text)

    def _count(self, table: NDArray[np.float64]) -> None:
        known = table[table[:, 7] > 0]
        score = np.clip(known[:, 3], 1e-6, 1 - 1e-6)
        logit = np.clip(np.log(score) - np.log1p(-score), LOGITS[0], LOGITS[-1])
        place = np.minimum(np.searchsorted(LOGITS, logit, side="right") - 1, len(LOGITS) - 2)
        np.add.at(self.distribution, (known[:, 2].astype(np.int64), known[:, 6].astype(np.int64), place), 1)

    def spans(self, overlap: Overlap) -> ScoredSpans:
        """What was collected."""
        start, end, kind, score, rank, preference, correct, known = np.concatenate([np.zeros((0, 8)), *self.parts]).T
        keys = (key for one in self.corpus for key in {entity.key for entity in one.entities})
        gold = [self.places[label] for _, _, label in keys]  # a repeated mention counts once
        return ScoredSpans(
            labels=tuple(self.places),
            start=start.astype(np.int64),
            end=end.astype(np.int64),
            type=kind.astype(np.int64),
            score=score.astype(np.float32),
            rank=rank.astype(np.float32),
            preference=preference,
            correct=correct > 0,
            known=known > 0,
            gold=np.bincount(np.array(gold, np.int64), minlength=len(self.places)),
            distribution=self.distribution,
            thresholds={label: tuple(sorted(values)) for label, values in self.thresholds.items()},
            overlap=overlap,
        )


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Spans with similar scores: their mean score, and the share of them that are gold mentions."""

    score: float
    share: float
    spans: int

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Wilson's interval of the share (95% by default)."""
        n, p = self.spans, self.share
        centre, spread = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return float((centre - spread) / (1 + z * z / n)), float((centre + spread) / (1 + z * z / n))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Whether scores are probabilities: bins of spans by score, and the mean distance of score and share.

    `error` is the expected calibration error, Σ n_b |score_b - share_b| / Σ n_b over the bins b from `CALIBRATED_FROM`.
    """

    bins: tuple[CalibrationBin, ...]
    error: float


def calibration(spans: ScoredSpans) -> Calibration | None:
    """The calibration of scores; None if the model gives none."""
    if not spans.has_scores():
        return None
    score, correct = spans.score[spans.known], spans.correct[spans.known]
    number = np.minimum((score * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
    bins = [
        CalibrationBin(float(score[rows].mean()), float(correct[rows].mean()), int(rows.sum()))
        for rows in (number == place for place in range(CALIBRATION_BINS))
        if rows.any()
    ]
    counted = [one for one in bins if one.score >= CALIBRATED_FROM]
    total = sum(one.spans for one in counted)
    return Calibration(tuple(bins), ratio(sum(one.spans * abs(one.score - one.share) for one in counted), total))


@dataclass(frozen=True, slots=True)
class ThresholdCurve:
    """Strict scores of a type at each of the `THRESHOLDS`, the thresholds that were used, and the best one for F1.

    A folder of several models may use several thresholds, in documents that different models read. `used` is empty for
    all types together if their thresholds differ.
    """

    scores: tuple[Scores, ...]
    used: tuple[float, ...]

    @property
    def best(self) -> float | None:
        """The best threshold, the middle one of equally good ones; None if no threshold finds a mention."""
        values = [one.f1 for one in self.scores]
        return middle_of_best(THRESHOLDS, values) if max(values) else None


@dataclass(frozen=True, slots=True)
class ThresholdCurves:
    """Strict scores by threshold, where all types have the same threshold: of all types (micro) and of each."""

    micro: ThresholdCurve
    types: Mapping[str, ThresholdCurve]


def threshold_curves(spans: ScoredSpans) -> ThresholdCurves | None:
    """Scores by threshold; None if the model gives no scores. Types without gold mentions are left out."""
    if not spans.has_scores():
        return None
    each = [spans.type_scores(value) for value in THRESHOLDS]
    used = spans.thresholds
    common = next(iter(used.values())) if len(set(used.values())) == 1 else ()
    with_gold = [label for label, count in zip(spans.labels, spans.gold.tolist(), strict=True) if count]
    return ThresholdCurves(
        ThresholdCurve(tuple(Scores.total(one.values()) for one in each), common),
        {label: ThresholdCurve(tuple(one[label] for one in each), used.get(label, ())) for label in with_gold},
    )


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """Logits of the scores of a type in the bins of `LOGITS`: of gold mentions, and of all other spans considered.

    `unseen` counts the gold mentions whose score is below `FLOOR`, or that the model cannot consider, because they are
    too long or do not start and end with words.
    """

    entity: tuple[int, ...]
    other: tuple[int, ...]
    unseen: int
    used: tuple[float, ...]  # thresholds


def score_distributions(spans: ScoredSpans) -> dict[str, ScoreDistribution] | None:
    """The distributions of types with gold mentions, the most frequent first; None if the model gives no scores."""
    if not spans.has_scores():
        return None
    found = {}
    for place in np.argsort(-spans.gold, kind="stable").tolist():
        other, entity = spans.distribution[place].tolist()
        if spans.gold[place]:
            unseen = int(spans.gold[place]) - sum(entity)
            used = spans.thresholds.get(spans.labels[place], ())
            found[spans.labels[place]] = ScoreDistribution(tuple(entity), tuple(other), unseen, used)
    return found
