"""Where strict scores are lost: at the start, at the end, at both, or at the type.

`start_only`, `end_only` and `loose` are the rows of table 8 of BINDER; `spans` gives table 4 of NerCo.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onoma.evaluation.columns import Integers, distinct, encode, overlap_any
from onoma.evaluation.comparison import Comparison, Mentions
from onoma.evaluation.scores import Breakdown, Scores, ratio, tabulate


def start_only(comparison: Comparison) -> Breakdown:
    """S-F1 start: scores over sets of (document, start, label); two mentions of a type that begin together are one."""
    return _at_edge(comparison, comparison.gold.start, comparison.predicted.start)


def end_only(comparison: Comparison) -> Breakdown:
    """S-F1 end: scores over sets of (document, end, label); two mentions of a type that end together are one."""
    return _at_edge(comparison, comparison.gold.end, comparison.predicted.end)


def _at_edge(comparison: Comparison, gold_edge: Integers, predicted_edge: Integers) -> Breakdown:
    gold_label, predicted_label = comparison.gold.label, comparison.predicted.label
    gold_codes, predicted_codes = encode((gold_edge, gold_label), (predicted_edge, predicted_label))
    gold_codes, gold_rows = distinct(gold_codes)
    predicted_codes, predicted_rows = distinct(predicted_codes)
    return Breakdown.of(
        tabulate(
            comparison.corpus.labels,
            gold_label[gold_rows],
            np.isin(gold_codes, predicted_codes),
            predicted_label[predicted_rows],
            np.isin(predicted_codes, gold_codes),
        )
    )


def loose(comparison: Comparison) -> Breakdown:
    """L-F1: a mention matches if it shares at least one character with a mention of the same type on the other side.

    P = predictions that overlap a gold mention of their type / predictions,
    R = gold mentions that overlap a prediction of their type / gold mentions.
    Matches are not one to one: a prediction that covers two gold mentions finds both.
    """
    gold, predicted = comparison.gold, comparison.predicted
    gold_span, predicted_span = _apart_by_label(comparison, gold), _apart_by_label(comparison, predicted)
    return Breakdown.of(
        tabulate(
            comparison.corpus.labels,
            gold.label,
            overlap_any(*gold_span, *predicted_span),
            predicted.label,
            overlap_any(*predicted_span, *gold_span),
        )
    )


def _apart_by_label(comparison: Comparison, mentions: Mentions) -> tuple[Integers, Integers]:
    """The spans, with those of each label moved to a stretch of their own, so that only equal labels can overlap."""
    stretch = mentions.label * comparison.offsets[-1]
    return mentions.start + stretch, mentions.end + stretch


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Boundaries apart from types.

    `span` scores sets of (document, start, end), labels aside: NerCo's Span F is its F1.
    Type Acc = `fully_correct` / `span_correct`: of the predictions that have the span of a gold mention, those
    that have its label too.
    """

    span: Scores
    span_correct: int
    fully_correct: int

    @property
    def type_accuracy(self) -> float:
        return ratio(self.fully_correct, self.span_correct)


def spans(comparison: Comparison) -> SpanScores:
    """Span F and type accuracy; see `SpanScores`."""
    gold, predicted = comparison.gold, comparison.predicted
    gold_codes, predicted_codes = encode((gold.start, gold.end), (predicted.start, predicted.end))
    (gold_spans, _), (predicted_spans, _) = distinct(gold_codes), distinct(predicted_codes)
    common = int(np.isin(gold_spans, predicted_spans).sum())
    return SpanScores(
        Scores(len(gold_spans), len(predicted_spans), common, common),
        span_correct=int(np.isin(predicted_codes, gold_codes).sum()),
        fully_correct=int(comparison.correct.sum()),
    )
