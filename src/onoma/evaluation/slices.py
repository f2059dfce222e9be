"""Strict scores on parts of the data: by length, by frequency, by nesting, and by occurrence in the training data.

If a slice depends only on the text, label and document of a mention, it contains gold and predicted mentions, and a
correct prediction is in the same slice as its gold mention, so precision, recall and F1 are defined. Nesting depends
on other gold mentions, so only recall is defined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.entities import Corpus
from onoma.evaluation.columns import Booleans, Integers
from onoma.evaluation.comparison import Comparison, Mentions
from onoma.evaluation.scores import Recall, Scores, tabulate
from onoma.evaluation.units import Units

MENTION_LENGTHS = (1, 2, 3, 4, 6)
"""The last length of each slice by the words of a mention: 1, 2, 3, 4, 5-6, 7+."""

SENTENCE_LENGTHS = (10, 20, 40, 60, 80, 100)
"""The last length of each slice by the words of a sentence: 1-10, 11-20, ..., 101+."""

TYPE_FREQUENCIES = (10, 30, 100, 300, 1000)
"""The last number of each slice by the gold mentions of a type: 0-10, 11-30, ..., 1001+."""

TRAINING_FREQUENCIES = (0, 1, 4, 19)
"""The last number of each slice by how often the training data have a mention: 0, 1, 2-4, 5-19, 20+."""

_NEVER = "0"  # the slice of mentions that the training data do not have


@dataclass(frozen=True, slots=True)
class Slices:
    """Strict scores by name of the slice; `seen` and `frequency` are None if no training corpus was given."""

    mention_length: Mapping[str, Scores]
    sentence_length: Mapping[str, Scores]
    type_frequency: Mapping[str, Scores]
    nesting: Mapping[str, Recall]
    seen: Mapping[str, Scores] | None
    frequency: Mapping[str, Scores] | None


def slices(comparison: Comparison, training: Corpus | None = None) -> Slices:
    """All slices of this file."""
    units = Units.of(comparison)
    frequency = None if training is None else by_frequency(comparison, training)
    return Slices(
        by_mention_length(comparison, units),
        by_sentence_length(comparison, units),
        by_type_frequency(comparison),
        by_nesting(comparison),
        None if frequency is None else _seen(frequency),
        frequency,
    )


def by_mention_length(comparison: Comparison, units: Units) -> dict[str, Scores]:
    """Scores by the number of words that a mention overlaps."""
    lengths = units.mention_words(comparison.gold), units.mention_words(comparison.predicted)
    return _by_number(comparison, MENTION_LENGTHS, *lengths)


def by_sentence_length(comparison: Comparison, units: Units) -> dict[str, Scores]:
    """Scores by the number of words in the sentence in which a mention starts."""
    lengths = units.sentence_lengths(comparison.gold), units.sentence_lengths(comparison.predicted)
    return _by_number(comparison, SENTENCE_LENGTHS, *lengths)


def by_type_frequency(comparison: Comparison) -> dict[str, Scores]:
    """Scores by the number of gold mentions that the type has in the corpus."""
    numbers = np.bincount(comparison.gold.label, minlength=len(comparison.corpus.labels))
    own, other = numbers[comparison.gold.label], numbers[comparison.predicted.label]
    return _by_number(comparison, TYPE_FREQUENCIES, own, other, first=0)


def _by_number(
    comparison: Comparison, last: Sequence[int], gold: Integers, predicted: Integers, first: int = 1
) -> dict[str, Scores]:
    """Scores by a number of each mention, in slices that end with the numbers `last`."""
    firsts = [first, *(number + 1 for number in last)]
    names = [str(a) if a == b else f"{a}-{b}" for a, b in zip(firsts, last, strict=False)] + [f"{firsts[-1]}+"]
    return tabulate(
        names, np.searchsorted(last, gold), comparison.found, np.searchsorted(last, predicted), comparison.correct
    )


def by_nesting(comparison: Comparison) -> dict[str, Recall]:
    """Recall of gold mentions that contain another one, are inside another one, or neither (flat).

    A mention between an outer and an inner one counts under "contains" and under "inside". Mentions with the same span
    and mentions that only cross are not nested.
    """
    contains, inside = _nesting(comparison.gold)
    parts = {"flat": ~(contains | inside), "contains": contains, "inside": inside}
    return {name: Recall(int(part.sum()), int((part & comparison.found).sum())) for name, part in parts.items()}


def _nesting(mentions: Mentions) -> tuple[Booleans, Booleans]:
    spans, span_of = np.unique(np.stack([mentions.start, -mentions.end], axis=1), axis=0, return_inverse=True)
    # sorted by start, longer spans first: the spans that contain a span come before it, those inside it come after it
    end = -spans[:, 1]
    contains, inside = np.zeros(len(end), bool), np.zeros(len(end), bool)
    inside[1:] = np.maximum.accumulate(end)[:-1] >= end[1:]
    contains[:-1] = np.minimum.accumulate(end[::-1])[::-1][1:] <= end[:-1]
    return contains[span_of], inside[span_of]


def by_seen(comparison: Comparison, training: Corpus) -> dict[str, Scores]:
    """Scores of mentions whose string occurs with the same label in `training` (seen), and of all others (unseen).

    Letter case is ignored.
    """
    return _seen(by_frequency(comparison, training))


def _seen(frequency: Mapping[str, Scores]) -> dict[str, Scores]:
    seen = Scores.total(scores for name, scores in frequency.items() if name != _NEVER)
    return {"seen": seen, "unseen": frequency[_NEVER]}


def by_frequency(comparison: Comparison, training: Corpus) -> dict[str, Scores]:
    """Scores by how often the string of a mention occurs with the same label in `training`, ignoring letter case."""
    known = Counter((entity.text.casefold(), entity.label) for document in training for entity in document.entities)
    labels = comparison.corpus.labels

    def occurrences(mentions: Mentions) -> Integers:
        strings = zip(mentions.text.tolist(), mentions.label.tolist(), strict=True)
        return np.array([known[string.casefold(), labels[label]] for string, label in strings], dtype=np.int64)

    numbers = occurrences(comparison.gold), occurrences(comparison.predicted)
    return _by_number(comparison, TRAINING_FREQUENCIES, *numbers, first=0)
