"""Scores that compare strings, as two groups of papers report them. Neither looks at where a mention stands.

Give these beside the strict scores, never instead of them, and say which one a table shows.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onoma.evaluation.columns import Integers, distinct, encode
from onoma.evaluation.comparison import Comparison, Mentions
from onoma.evaluation.scores import Averages, Breakdown, Scores, tabulate

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True, slots=True)
class Surface:
    """Both measures of this file."""

    normalised: Breakdown
    strings: Breakdown


def surface(comparison: Comparison) -> Surface:
    """Both measures of this file."""
    return Surface(normalised_strings(comparison), plain_strings(comparison))


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation, English articles and superfluous white space.

    >>> normalise("The  U.S. Army")
    'us army'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def normalised_strings(comparison: Comparison) -> Breakdown:
    """As UniNER scores: sets of (document, label, normalised string), so each string counts once a document."""
    gold, predicted = _encode_strings(comparison, normalise)
    gold, gold_rows = distinct(gold)
    predicted, predicted_rows = distinct(predicted)
    return Breakdown.of(
        tabulate(
            comparison.corpus.labels,
            comparison.gold.label[gold_rows],
            np.isin(gold, predicted),
            comparison.predicted.label[predicted_rows],
            np.isin(predicted, gold),
        )
    )


def plain_strings(comparison: Comparison) -> Breakdown:
    """As PUnifiedNER scores: lower-case strings within a document and label, averaged over the whole inventory.

    A prediction is right (TP) if a gold mention of its label and document has its string, else wrong (FP); a
    gold mention is missed (FN) if no prediction has its string. P = TP / (TP + FP), R = TP / (TP + FN), and
    a string found once counts as found everywhere. So `gold` is TP + FN here. The figure that their tables
    show is `macro.f1`, the mean over all types of the inventory, also those that nobody used (F1 = 0).
    """
    gold, predicted = _encode_strings(comparison, str.lower)
    labels = comparison.corpus.labels
    right = np.isin(predicted, gold)
    counts = tabulate(labels, comparison.gold.label, np.isin(gold, predicted), comparison.predicted.label, right)
    types = {
        label: Scores(score.correct + score.gold - score.found, score.predicted, score.correct, score.correct)
        for label, score in counts.items()
    }
    return Breakdown(sum(types.values(), Scores(0, 0, 0, 0)), Averages.over(types.values()), types)


def _encode_strings(comparison: Comparison, change: Callable[[str], str]) -> tuple[Integers, Integers]:
    """One number for each mention, the same for those of one document, label and changed string."""
    numbers: dict[str, int] = {}  # of changed strings
    number_of: dict[str, int] = {}  # of strings as they stand, so that each is changed only once

    def columns(mentions: Mentions) -> tuple[Integers, ...]:
        strings = mentions.text.tolist()
        for text in set(strings).difference(number_of):
            number_of[text] = numbers.setdefault(change(text), len(numbers))
        return mentions.document, mentions.label, np.array([number_of[text] for text in strings], dtype=np.int64)

    return encode(columns(comparison.gold), columns(comparison.predicted))
