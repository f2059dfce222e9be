"""Everything that a report shows of models on corpora, computed before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onoma.decoding.overlap import Overlap
from onoma.entities import Corpus
from onoma.evaluation.bootstrap import Difference, paired_bootstrap
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.errors import MentionError, find_errors
from onoma.evaluation.history import History, read_history
from onoma.evaluation.report import Report, as_plain, evaluate_comparison
from onoma.evaluation.scored import (
    Calibration,
    ScoreDistribution,
    ThresholdCurves,
    calibration,
    score_distributions,
    score_spans,
    threshold_curves,
)
from onoma.evaluation.vectors import Projection, project_mentions
from onoma.extractor import Extractor
from onoma.labels.parsing import Threshold

MOST_ERRORS = 300
"""Examples of errors of a model on a corpus."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """One model on one corpus. What a system does not offer is None."""

    model: str
    comparison: Comparison
    report: Report
    errors: Sequence[MentionError]
    overlap: Overlap
    calibration: Calibration | None
    thresholds: ThresholdCurves | None
    distributions: Mapping[str, ScoreDistribution] | None
    projection: Projection | None

    @property
    def corpus(self) -> Corpus:
        return self.comparison.corpus

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        kept = ("model", "overlap", "errors", "calibration", "thresholds", "distributions")
        return self.report.to_dict() | {name: as_plain(getattr(self, name)) for name in kept}


def analyse(
    model: Extractor,
    corpus: Corpus,
    name: str = "model",
    *,
    training: Corpus | None = None,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    errors: int = MOST_ERRORS,
    vectors: bool = True,
    on_progress: Callable[[int], None] = lambda documents: None,
) -> Analysis:
    """Run a model on a corpus, and compute all that a report shows.

    Args:
        name: of the model, in the report.
        training: the training data of the model, for scores by whether it has seen a mention.
        threshold, overlap, batch_size: as for `evaluate`.
        errors: the number of examples of errors.
        vectors: whether to project the vectors of mentions, for which some documents are read a second time.
        on_progress: gets the number of documents done so far.

    >>> analyse(onoma.load(), onoma.data.load_corpus("data/drugs", "dev")).calibration.error  # doctest: +SKIP
    0.04
    """
    spans, predicted = score_spans(
        model, corpus, threshold=threshold, overlap=overlap, batch_size=batch_size, on_progress=on_progress
    )
    comparison = Comparison.between(corpus, predicted)
    return Analysis(
        name,
        comparison,
        evaluate_comparison(comparison, training=training),
        find_errors(comparison, predicted, errors),
        spans.overlap,
        calibration(spans),
        threshold_curves(spans),
        score_distributions(spans),
        project_mentions(model, corpus) if vectors else None,
    )


@dataclass(frozen=True, slots=True)
class Study:
    """Models on corpora: `analyses` has one row per corpus, with one analysis per model, the first of which is the
    subject of the report and the others are compared with it. `history` is that of its training run."""

    analyses: Sequence[Sequence[Analysis]]
    history: History | None = None

    @property
    def models(self) -> list[str]:
        return [one.model for one in self.analyses[0]]

    def differences(self) -> list[list[Difference | None]]:
        """The F1 of each other model minus that of the first one, for each corpus; None for an empty corpus."""
        return [
            [paired_bootstrap(one.comparison, row[0].comparison) if len(one.corpus) else None for one in row[1:]]
            for row in self.analyses
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "analyses": [[one.to_dict() for one in row] for row in self.analyses],
            "history": as_plain(self.history),
        }


def study(
    models: Mapping[str, Extractor],
    corpora: Sequence[Corpus],
    *,
    training: Corpus | None = None,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    errors: int = MOST_ERRORS,
    on_progress: Callable[[int], None] = lambda documents: None,
) -> Study:
    """Analyse models on corpora; `on_progress` gets the documents done so far, of all models and corpora together."""
    done, rows = 0, []
    for corpus in corpora:
        row = []
        for number, (name, model) in enumerate(models.items()):
            row.append(
                analyse(
                    model,
                    corpus,
                    name,
                    training=training,
                    threshold=threshold,
                    overlap=overlap,
                    batch_size=batch_size,
                    errors=errors,
                    vectors=number == 0,
                    on_progress=_shifted(on_progress, done),
                )
            )
            done += len(corpus)
        rows.append(row)
    return Study(rows, read_history(next(iter(models.values())).folder))


def _shifted(on_progress: Callable[[int], None], before: int) -> Callable[[int], None]:
    return lambda documents: on_progress(before + documents)
