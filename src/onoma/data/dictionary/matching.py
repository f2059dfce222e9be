"""Mentions of the entries of a dictionary in a text: all of them, before overlaps are resolved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onoma.data.dictionary.folding import Folding
from onoma.data.dictionary.pieces import Integers, Pieces
from onoma.data.dictionary.table import NO_RULE, NOT_LABELLED, EntryTable, Grouped
from onoma.decoding.overlap import resolve_overlaps
from onoma.text.boundaries import SPACE, Booleans, Kinds, are_boundaries

ROUNDS = 8


class Spans(NamedTuple):
    """Mentions as positions in a text; the label is `NOT_LABELLED` if they only hide others."""

    start: Integers
    end: Integers
    entry: Integers
    label: Integers

    def take(self, rows: Integers | Booleans) -> Spans:
        return Spans(*(column[rows] for column in self))


class SourceWords(NamedTuple):
    """The word boundaries that documents bring along: at which positions they are known, and where they are."""

    known: Booleans
    edges: Booleans


def find_spans(
    text: str, ends: Integers, table: EntryTable, folding: Folding, words: SourceWords | None = None
) -> Spans:
    """All mentions in a text, which is made of documents that end at `ends`, each followed by a line break."""
    folded = folding.fold(text)
    pieces, kinds = Pieces.cut(folded, ends), folded.original_kinds
    found = table.index.find(pieces)
    start, starts_exactly = folded.originals(pieces.start[found.first])
    end, ends_exactly = folded.originals(pieces.end[found.last])
    rows = np.flatnonzero(starts_exactly & ends_exactly & table.used[found.phrase])
    rows = rows[_at_words(text, kinds, start[rows], end[rows], words)]
    start, end, phrase = start[rows], end[rows], found.phrase[rows]
    rows, entry = table.entries.expand(phrase)
    spans = Spans(start[rows], end[rows], entry, table.label[entry])
    return spans if table.rules is None else _apply_rules(spans, start, end, phrase, kinds, table, table.rules)


def _at_words(text: str, kinds: Kinds, start: Integers, end: Integers, words: SourceWords | None) -> Booleans:
    """Whether spans start and end where words do."""
    positions = np.concatenate([start, end])
    right = are_boundaries(text, kinds, positions)
    if words is not None:
        right = np.where(words.known[positions], words.edges[positions], right)
    return np.asarray(right[: len(start)] & right[len(start) :])


def _apply_rules(
    spans: Spans, start: Integers, end: Integers, phrase: Integers, kinds: Kinds, table: EntryTable, rules: Grouped
) -> Spans:
    """Mark entries as not labelled if one of their contexts directly precedes or follows."""
    solid = np.flatnonzero((kinds & SPACE) == 0)
    rows, rule = rules.expand(phrase)
    count = int(rules.values.max(initial=0)) + 1
    behind = np.searchsorted(solid, spans.end)  # places in `solid` instead of positions: white space has no influence
    ahead = np.searchsorted(solid, spans.start)
    followed = _among(behind, table.not_before[spans.entry], np.searchsorted(solid, start[rows]), rule, count)
    preceded = _among(ahead, table.not_after[spans.entry], np.searchsorted(solid, end[rows]), rule, count)
    return spans._replace(label=np.where(followed | preceded, NOT_LABELLED, spans.label))


def _among(place: Integers, rule: Integers, context_place: Integers, context_rule: Integers, rules: int) -> Booleans:
    """Whether there is a context of its rule at each place."""
    return np.asarray((rule != NO_RULE) & np.isin(place * rules + rule, context_place * rules + context_rule))


def longest_first(spans: Spans) -> Spans:
    """The spans that stay, sorted: longer ones before shorter ones, and of equally long ones the first.

    Spans that touch each other, directly or through others, form a group. Most spans are alone in theirs and stay. The
    best one of each other group stays, with all of its labels, and those that overlap it are removed; what is left
    forms new groups. Most groups are small, so that few rounds are enough; what is left then is resolved one by one.
    """
    spans = spans.take(_sorted_rows(spans))
    is_first = _first_of_groups(spans.start, spans.end)
    alone = is_first & np.append(is_first[1:], True)
    rows, kept = np.flatnonzero(~alone), [np.flatnonzero(alone)]
    for _ in range(ROUNDS):
        if not len(rows):
            break
        start, end = spans.start[rows], spans.end[rows]
        is_first = _first_of_groups(start, end)
        group = np.cumsum(is_first) - 1
        best = np.lexsort((start, start - end, group))[is_first][group]
        kept.append(rows[(start == start[best]) & (end == end[best])])
        rows = rows[(end <= start[best]) | (start >= end[best])]
    if len(rows):
        start, end = spans.start[rows], spans.end[rows]
        kept.append(rows[resolve_overlaps(start, end, spans.label[rows] + 1, end - start, several_labels=True)])
    return spans.take(np.sort(np.concatenate(kept)))


def _sorted_rows(spans: Spans) -> Integers:
    """The rows by start, end and label: one sort by a number made of all three, if it is not too large."""
    start, end, label = spans.start, spans.end, spans.label
    widths, labels = int((end - start).max(initial=0)) + 1, int(label.max(initial=0)) + 2  # the label may be -1
    if (int(start.max(initial=0)) + 1) * widths * labels >= 1 << 62:
        return np.lexsort((label, end, start))
    return np.argsort((start * widths + (end - start)) * labels + label + 1, kind="stable")


def _first_of_groups(start: Integers, end: Integers) -> Booleans:
    """Whether each span is the first one of its group; spans are sorted by their start."""
    is_first = np.ones(len(start), np.bool_)
    is_first[1:] = start[1:] >= np.maximum.accumulate(end)[:-1]
    return is_first
