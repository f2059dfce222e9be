"""Which part of a mention is wrong: its start, its end, both, or its type.

`start_only`, `end_only` and `loose` are the rows of table 8 of BINDER; `spans` is table 4 of NerCo.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onoma.evaluation.columns import Integers, distinct, encode, overlap_any
from onoma.evaluation.comparison import Comparison, Mentions
from onoma.evaluation.scores import Breakdown, Scores, ratio, tabulate


def start_only(comparison: Comparison) -> Breakdown:
    """S-F1 start: scores over sets of (document, start, label); mentions of a type with the same start count once."""
    return _edge_scores(comparison, comparison.gold.start, comparison.predicted.start)


def end_only(comparison: Comparison) -> Breakdown:
    """S-F1 end: scores over sets of (document, end, label); mentions of a type with the same end count once."""
    return _edge_scores(comparison, comparison.gold.end, comparison.predicted.end)


def _edge_scores(comparison: Comparison, gold_edge: Integers, predicted_edge: Integers) -> Breakdown:
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
    """L-F1: a prediction and a gold mention match if they have the same type and share at least one character.

    P = predictions that overlap a gold mention of their type / predictions,
    R = gold mentions that overlap a prediction of their type / gold mentions.
    Matches are not one to one: a prediction that covers two gold mentions finds both.
    """
    gold, predicted = comparison.gold, comparison.predicted
    gold_span, predicted_span = _shift_by_label(comparison, gold), _shift_by_label(comparison, predicted)
    return Breakdown.of(
        tabulate(
            comparison.corpus.labels,
            gold.label,
            overlap_any(*gold_span, *predicted_span),
            predicted.label,
            overlap_any(*predicted_span, *gold_span),
        )
    )


def _shift_by_label(comparison: Comparison, mentions: Mentions) -> tuple[Integers, Integers]:
    """The spans, moved to a separate range of offsets for each label, so that only spans of one label can overlap."""
    shift = mentions.label * comparison.offsets[-1]
    return mentions.start + shift, mentions.end + shift


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Scores of boundaries and of types, separately.

    `span` has scores over sets of (document, start, end), ignoring labels: its F1 is NerCo's Span F.
    Type Acc = `fully_correct` / `span_correct`: the share of predictions with a correct label among those with the
    span of a gold mention.
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
        Scores.one_to_one(len(gold_spans), len(predicted_spans), common),
        span_correct=int(np.isin(predicted_codes, gold_codes).sum()),
        fully_correct=int(comparison.correct.sum()),
    )
