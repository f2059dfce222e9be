"""Scores that compare the strings of mentions and ignore their positions, in the two variants that papers report.

Report them in addition to the strict scores, never instead of them, and name the measure in every table.
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
    """The text in lower case, without ASCII punctuation, English articles and repeated white space.

    >>> normalise("The  U.S. Army")
    'us army'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def normalised_strings(comparison: Comparison) -> Breakdown:
    """As in UniNER: scores over sets of (document, label, normalised string); a string counts once per document."""
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
    """As in PUnifiedNER: lower-case strings within a document and label, averaged over the whole inventory.

    A prediction is correct (TP) if a gold mention of its document and label has its string, else wrong (FP); a gold
    mention is missed (FN) if no prediction of its document and label has its string. P = TP / (TP + FP),
    R = TP / (TP + FN). A string that is found once counts as found everywhere, so `gold` is TP + FN here. The paper
    reports `macro.f1`, the mean over all types of the inventory, including those without any mention (F1 = 0).
    """
    gold, predicted = _encode_strings(comparison, str.lower)
    labels = comparison.corpus.labels
    correct = np.isin(predicted, gold)
    counts = tabulate(labels, comparison.gold.label, np.isin(gold, predicted), comparison.predicted.label, correct)
    types = {
        label: Scores.one_to_one(score.correct + score.gold - score.found, score.predicted, score.correct)
        for label, score in counts.items()
    }
    return Breakdown(Scores.total(types.values()), Averages.over(types.values()), types)


def _encode_strings(comparison: Comparison, normalise: Callable[[str], str]) -> tuple[Integers, Integers]:
    """One code per mention, equal for mentions with the same document, label and normalised string."""
    codes: dict[str, int] = {}  # of normalised strings
    code_of: dict[str, int] = {}  # of original strings, so that each of them is normalised only once

    def columns(mentions: Mentions) -> tuple[Integers, ...]:
        strings = mentions.text.tolist()
        for text in set(strings).difference(code_of):
            code_of[text] = codes.setdefault(normalise(text), len(codes))
        return mentions.document, mentions.label, np.array([code_of[text] for text in strings], dtype=np.int64)

    return encode(columns(comparison.gold), columns(comparison.predicted))
