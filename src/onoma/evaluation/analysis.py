"""Everything that a report shows of models on corpora, computed before anything is drawn."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onoma.decoding.overlap import Overlap
from onoma.entities import SHOWN_TYPES, Corpus
from onoma.errors import OnomaError
from onoma.evaluation.bootstrap import Difference, paired_bootstrap
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.errors import MentionError, find_errors
from onoma.evaluation.history import History, read_history
from onoma.evaluation.report import Report, as_plain, evaluate_comparison
from onoma.evaluation.runs import AnyPath, as_extractor, open_corpus
from onoma.evaluation.scored import (
    Calibration,
    ScoreDistribution,
    ThresholdCurves,
    calibration,
    score_distributions,
    score_spans,
    threshold_curves,
)
from onoma.evaluation.sources import Source, as_sources
from onoma.evaluation.vectors import Projection, project_mentions
from onoma.extractor import Extractor
from onoma.labels.parsing import Threshold

logger = logging.getLogger("onoma")

MOST_ERRORS = 300
"""Examples of errors of a model on a corpus."""


@dataclass(frozen=True, slots=True, repr=False)
class Analysis:
    """One model on one corpus. What a system does not offer is None.

    `used` are the thresholds of each type, one for each model of a folder that read documents. `unknown` are the types
    that the model cannot be asked for; their gold mentions count as missed.
    """

    model: str
    source: Source
    comparison: Comparison
    report: Report
    errors: Sequence[MentionError]
    overlap: Overlap
    used: Mapping[str, tuple[float, ...]]
    unknown: Sequence[str]
    calibration: Calibration | None
    thresholds: ThresholdCurves | None
    distributions: Mapping[str, ScoreDistribution] | None
    projection: Projection | None

    def __repr__(self) -> str:
        f1 = 100 * self.report.strict.micro.f1
        return f"Analysis({self.model!r} on {self.source.name!r}, {len(self.corpus):,} documents, F1 {f1:.2f})"

    @property
    def corpus(self) -> Corpus:
        return self.comparison.corpus

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        kept = ("model", "overlap", "used", "unknown", "errors", "calibration", "thresholds", "distributions")
        source = {"corpus": self.source.name, "path": self.source.path, "split": self.source.split}
        return self.report.to_dict() | source | {name: as_plain(getattr(self, name)) for name in kept}


def analyse(
    model: Extractor | AnyPath,
    corpus: Source | Corpus | AnyPath,
    name: str = "model",
    *,
    training: Corpus | AnyPath | None = None,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    errors: int = MOST_ERRORS,
    vectors: bool = True,
    on_progress: Callable[[int], None] = lambda documents: None,
) -> Analysis:
    """Run a model on a corpus, and compute all that a report shows. Both may be given as paths, as for `evaluate`.

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
    (source,) = as_sources([corpus])
    model, corpus = as_extractor(model), source.corpus
    unknown = _check(model, source, threshold)
    if len(unknown) == len(corpus.types):
        raise OnomaError(f"{_describe_unknown(name, source)}. Fix: ask a model that was trained on these types.")
    types = [one for one in corpus.types if one.name not in unknown]
    if isinstance(threshold, Mapping):
        threshold = {label: value for label, value in threshold.items() if label not in unknown}
    spans, predicted = score_spans(
        model, corpus, types=types, threshold=threshold, overlap=overlap, batch_size=batch_size, on_progress=on_progress
    )
    comparison = Comparison.between(corpus, predicted)
    return Analysis(
        name,
        source,
        comparison,
        evaluate_comparison(comparison, training=_open_training(training)),
        find_errors(comparison, predicted, errors),
        spans.overlap,
        spans.thresholds,
        unknown,
        calibration(spans),
        threshold_curves(spans),
        score_distributions(spans),
        project_mentions(model, corpus) if vectors else None,
    )


def _check(model: Extractor, source: Source, threshold: Threshold | None) -> list[str]:
    """Raise an error if the model cannot be asked in this way; return the types that it cannot be asked for."""
    model.prepare(source.corpus.types, threshold=threshold)
    return model.unknown_types(source.corpus.types)


def _describe_unknown(model: str, source: Source) -> str:
    return f"the model {model} knows none of the types of {source.name} ({_listed(source.corpus.labels)})"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_TYPES
    return ", ".join(names[:SHOWN_TYPES]) + (f" and {more} more" if more > 0 else "")


def _open_training(training: Corpus | AnyPath | None) -> Corpus | None:
    return training if training is None or isinstance(training, Corpus) else open_corpus(training, usual=("train",))


@dataclass(frozen=True, slots=True, repr=False)
class Study:
    """Models on corpora: `analyses` has one row per corpus, with one analysis per model, the first of which is the
    subject of the report and the others are compared with it.

    `history` is that of its training run. `left_out` says which models were not run on which corpora, and which types
    they were not asked for. `date` is the day on which the models ran, `command` the command line, if there was one.
    """

    analyses: Sequence[Sequence[Analysis]]
    history: History | None = None
    left_out: Sequence[str] = ()
    date: str = field(default_factory=lambda: datetime.date.today().isoformat())
    command: str = ""

    def __repr__(self) -> str:
        corpora = ", ".join(row[0].source.name for row in self.analyses)
        return f"Study(models: {', '.join(self.models)}; corpora: {corpora})"

    @property
    def models(self) -> list[str]:
        """The names of the models, as in the longest row."""
        longest = max(self.analyses, key=len, default=())
        return list(dict.fromkeys(one.model for row in (longest, *self.analyses) for one in row))

    def differences(self) -> list[list[Difference | None]]:
        """The F1 of each model of a row minus that of the first model of the study.

        None for this model itself, in rows without it, and for a corpus of one document, which cannot be resampled.
        """
        return [[_difference(one, row[0], self.models[0]) for one in row] for row in self.analyses]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "analyses": [[one.to_dict() for one in row] for row in self.analyses],
            "history": as_plain(self.history),
            "left_out": list(self.left_out),
            "date": self.date,
        }


def _difference(one: Analysis, first: Analysis, baseline: str) -> Difference | None:
    if one is first or first.model != baseline or len(one.corpus) < 2:
        return None
    return paired_bootstrap(one.comparison, first.comparison)


def study(
    models: Mapping[str, Extractor | AnyPath],
    corpora: Sequence[Source | Corpus | AnyPath],
    *,
    training: Corpus | AnyPath | None = None,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    errors: int = MOST_ERRORS,
    on_progress: Callable[[int], None] = lambda documents: None,
    command: str = "",
) -> Study:
    """Analyse models, by name, on corpora; `on_progress` gets the documents done so far, of all of them together.

    All models are checked before the first one runs. A model that knows a closed set of types is asked for those of a
    corpus that it knows, and is not run on a corpus of which it knows none.
    """
    if not isinstance(models, Mapping) or not models:
        raise OnomaError('no model is given. Fix: give models by name, such as {"mine": onoma.load("runs/mine")}.')
    loaded = {name: as_extractor(model) for name, model in models.items()}
    sources, training = as_sources(corpora), _open_training(training)
    chosen, left_out = _choose_models(loaded, sources, threshold)
    done, rows = 0, []
    for source, names in zip(sources, chosen, strict=True):
        row = []
        for number, name in enumerate(names):
            row.append(
                analyse(
                    loaded[name],
                    source,
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
            done += len(source.corpus)
        if row:
            rows.append(row)
    found = Study(rows, None, left_out, command=command)
    return replace(found, history=read_history(loaded[found.models[0]].folder))


def _choose_models(
    models: Mapping[str, Extractor], sources: Sequence[Source], threshold: Threshold | None
) -> tuple[list[list[str]], list[str]]:
    """The models that can be run on each corpus, and notes on what is left out, which are warnings as well."""
    chosen: list[list[str]] = []
    notes = []
    for source in sources:
        chosen.append([])
        for name, model in models.items():
            unknown = _check(model, source, threshold)
            if len(unknown) == len(source.corpus.types):
                notes.append(f"{_describe_unknown(name, source)}; it was not run on this corpus")
                continue
            chosen[-1].append(name)
            if unknown:
                notes.append(
                    f"the model {name} does not know these types of {source.name}, whose mentions count as missed: "
                    f"{_listed(unknown)}"
                )
    if not any(chosen):
        raise OnomaError(f"{'; '.join(notes)}. Fix: choose models that know the types, or corpora with these types.")
    for note in notes:
        logger.warning("%s", note)
    return chosen, notes


def _shifted(on_progress: Callable[[int], None], before: int) -> Callable[[int], None]:
    return lambda documents: on_progress(before + documents)
