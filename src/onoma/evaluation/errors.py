"""Examples of errors in their context: what the gold has, what was predicted instead, and the text around both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from onoma.entities import Entity
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.pairs import ERROR_KINDS, NONE, pair_mentions

CONTEXT = 80
"""Characters of context on each side of an error."""
_LONGEST_WORD = 20  # characters by which a context may be shorter


class Segment(NamedTuple):
    """A part of a text that belongs to the gold mention, to the prediction, to both, to another mention, or to none."""

    text: str
    in_gold: bool
    in_predicted: bool
    in_other: bool


@dataclass(frozen=True, slots=True)
class MentionError:
    """An error of one of the `ERROR_KINDS`; documents are counted from 1.

    `context` starts at the offset `start` of the document, and is cut short at its end if `is_cut`. `others` are the
    other gold mentions and predictions in it, and `id` is the identifier of the document, if it has one.
    """

    kind: str
    document: int
    start: int
    context: str
    is_cut: bool
    gold: Entity | None
    predicted: Entity | None
    others: tuple[Entity, ...] = ()
    id: str | int | None = None

    @property
    def label(self) -> str:
        """The type that it counts for, which is that of the gold mention if there is one."""
        mention = self.gold or self.predicted
        return mention.label if mention else ""

    @property
    def position(self) -> int:
        """Where it is in its document."""
        mention = self.gold or self.predicted
        return mention.start if mention else 0

    def segments(self) -> Iterator[Segment]:
        """The context in parts, to highlight both mentions."""
        spans = [(one.start, one.end) if one else (0, 0) for one in (self.gold, self.predicted)]
        others = [(one.start, one.end) for one in self.others]
        end = self.start + len(self.context)
        inner = (edge for span in (*spans, *others) for edge in span if self.start < edge < end)
        for first, last in pairwise(sorted({self.start, end, *inner})):
            in_gold, in_predicted = (low <= first and last <= high for low, high in spans)
            in_other = any(low <= first and last <= high for low, high in others)
            yield Segment(self.context[first - self.start : last - self.start], in_gold, in_predicted, in_other)


def find_errors(
    comparison: Comparison, predicted: Sequence[Sequence[Entity]], limit: int | None = None, *, seed: int = 0
) -> list[MentionError]:
    """Errors in the order of the corpus; `predicted` are the predictions that were compared.

    With `limit`, so many of them are chosen at random: all kinds and types take turns, the most frequent ones first.
    """
    pairs = pair_mentions(comparison)
    kinds, (gold_label, predicted_label) = pairs.kinds(), pairs.labels()
    rows = np.flatnonzero(kinds != len(ERROR_KINDS))
    if limit is not None and limit < len(rows):
        label = np.where(gold_label == NONE, predicted_label, gold_label)
        groups = kinds[rows] * (len(comparison.corpus.labels) + 1) + label[rows]
        rows = rows[_take_turns(groups, limit, seed)]
    names = list(ERROR_KINDS)
    found = [
        _describe(comparison, predicted, names[kinds[row]], int(pairs.gold[row]), int(pairs.predicted[row]))
        for row in rows.tolist()
    ]
    return sorted(found, key=lambda one: (one.document, one.position, one.kind))


def _take_turns(groups: np.ndarray[tuple[int], np.dtype[np.int64]], limit: int, seed: int) -> list[int]:
    """Some rows of all groups: one of each group, the largest group first, then a second one, and so on."""
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    shuffled = np.random.default_rng(seed).permutation(len(groups))
    order = shuffled[np.argsort(group[shuffled], kind="stable")]
    turn = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen = np.lexsort((group[order], -sizes[group[order]], turn))[:limit]
    return [int(row) for row in order[chosen]]


def _describe(
    comparison: Comparison, predicted: Sequence[Sequence[Entity]], kind: str, gold_row: int, predicted_row: int
) -> MentionError:
    sides = (comparison.gold, gold_row), (comparison.predicted, predicted_row)
    number = next(int(mentions.document[row]) for mentions, row in sides if row != NONE)
    document, shift = comparison.corpus.documents[number], int(comparison.offsets[number])
    given: list[Entity | None] = []
    for (mentions, row), entities in zip(sides, (document.entities, predicted[number]), strict=True):
        if row == NONE:
            given.append(None)
            continue
        label = comparison.corpus.labels[mentions.label[row]]
        key = int(mentions.start[row]) - shift, int(mentions.end[row]) - shift, label
        given.append(next(one for one in entities if one.key == key))
    shown = [one for one in given if one is not None]
    low, high = _context_of(document.text, min(one.start for one in shown), max(one.end for one in shown))
    is_cut = high < len(document.text)
    keys = {one.key for one in shown}
    near = {
        one.key: one
        for one in (*document.entities, *predicted[number])
        if one.start < high and one.end > low and one.key not in keys
    }
    others = tuple(sorted(near.values()))
    return MentionError(kind, number + 1, low, document.text[low:high], is_cut, given[0], given[1], others, document.id)


def _context_of(text: str, start: int, end: int) -> tuple[int, int]:
    """The span with its context, which is cut between words if they are short."""
    low, high = max(0, start - CONTEXT), min(len(text), end + CONTEXT)
    if low:
        space = text.find(" ", low, min(low + _LONGEST_WORD, start))
        low = space + 1 if space >= 0 else low
    if high < len(text):
        space = text.rfind(" ", max(high - _LONGEST_WORD, end), high)
        high = space if space >= 0 else high
    return low, high
