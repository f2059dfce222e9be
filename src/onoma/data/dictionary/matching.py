"""Mentions of the entries of a dictionary in a text: all of them, before overlaps are resolved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onoma.data.dictionary.folding import Folded, Folding
from onoma.data.dictionary.pieces import Integers, Pieces
from onoma.data.dictionary.table import NO_RULE, NOT_LABELLED, EntryTable, Grouped
from onoma.text.boundaries import SPACE, Booleans, Kinds, are_boundaries, kinds_of


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
    kinds = kinds_of(folded.codes)
    pieces = Pieces.cut(folded.codes, kinds)
    found = table.index.find(pieces, np.searchsorted(pieces.start, folded.places(ends)))
    start, end, exact = _unfold(folded, pieces.start[found.first], pieces.end[found.last])
    if folded.source is not None:
        kinds = kinds_of(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32))
    rows = np.flatnonzero(exact & _is_used(table, found.phrase))
    rows = rows[_at_words(text, kinds, start[rows], end[rows], words)]
    start, end, phrase = start[rows], end[rows], found.phrase[rows]
    rows, entry = table.entries.expand(phrase)
    spans = Spans(start[rows], end[rows], entry, table.label[entry])
    return spans if table.rules is None else _apply_rules(spans, start, end, phrase, kinds, table, table.rules)


def _unfold(folded: Folded, start: Integers, end: Integers) -> tuple[Integers, Integers, Booleans]:
    """Positions in the original text, and whether a span consists of whole characters of it."""
    source = folded.source
    if source is None:
        return start, end, np.ones(len(start), np.bool_)
    exact = (start == 0) | (source[start - 1] < source[start])
    exact &= (end == len(source)) | (source[end - 1] < source[np.minimum(end, len(source) - 1)])
    return source[start], source[end - 1] + 1, exact


def _is_used(table: EntryTable, phrase: Integers) -> Booleans:
    used = table.entries.edges[phrase] < table.entries.edges[phrase + 1]
    if table.rules is not None:
        used |= table.rules.edges[phrase] < table.rules.edges[phrase + 1]
    return used


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
