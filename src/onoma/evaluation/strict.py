"""Strict scores: a prediction is correct if its character offsets and its label are those of a gold mention."""

from __future__ import annotations

from onoma.evaluation.comparison import Comparison
from onoma.evaluation.scores import Breakdown, tabulate


def strict(comparison: Comparison) -> Breakdown:
    """Precision, recall and F1 over sets of (document, start, end, label).

    For gold mentions G and predictions S: P = |G ∩ S| / |S|, R = |G ∩ S| / |G|.
    Macro is the mean over the types with a gold or a predicted mention.
    """
    gold, predicted = comparison.gold, comparison.predicted
    return Breakdown.of(
        tabulate(comparison.corpus.labels, gold.label, comparison.found, predicted.label, comparison.correct)
    )
