"""What the phrases of a dictionary stand for: entries with labels and rules, and contexts of rules."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onoma.data.dictionary.entries import Entry
from onoma.data.dictionary.folding import Folding
from onoma.data.dictionary.index import PhraseIndex
from onoma.data.dictionary.pieces import Integers
from onoma.data.formats.base import short_repr
from onoma.errors import OnomaError

Ambiguous = Literal["skip", "first", "all"]

NOT_LABELLED = -1
"""The label of entries that only hide shorter ones inside them."""
NO_RULE = -1
MAX_CHARACTERS = 1000
"""Of an entry: longer ones are texts that were taken for dictionaries."""


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Numbers in groups: those of group g are `values[edges[g]:edges[g + 1]]`."""

    edges: Integers
    values: Integers

    @classmethod
    def by(cls, group: Integers, values: Integers, groups: int) -> Grouped:
        """Values by the groups that they belong to."""
        counts = np.bincount(group, minlength=groups)
        return cls(np.concatenate([[0], np.cumsum(counts)]), values[np.argsort(group, kind="stable")])

    def is_filled(self) -> NDArray[np.bool_]:
        """Whether each group has a value."""
        return self.edges[:-1] < self.edges[1:]

    def expand(self, groups: Integers) -> tuple[Integers, Integers]:
        """All values of some groups, and the row of the group of each."""
        first = self.edges[groups]
        counts = self.edges[groups + 1] - first
        rows = np.repeat(np.arange(len(groups)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, self.values[first[rows] + within]


class _Columns:
    """The columns of entries, collected while their texts are read."""

    def __init__(self, not_before: Sequence[str], not_after: Sequence[str]) -> None:
        self.general = tuple(not_before), tuple(not_after)
        self.types: dict[str, int] = {}
        self.rules: dict[tuple[str, ...], int] = {}
        self.label, self.not_before, self.not_after = array("q"), array("q"), array("q")
        self.longest = 0

    def read(self, entries: Iterable[Entry]) -> Iterator[str]:
        before, after = self.general
        types = self.types
        general_before, general_after = self._rule(before), self._rule(after)  # those of most entries
        for text, type, not_before, not_after in entries:
            self.label.append(types.setdefault(type, len(types)))
            self.not_before.append(self._rule(not_before + before) if not_before else general_before)
            self.not_after.append(self._rule(not_after + after) if not_after else general_after)
            if len(text) > self.longest:
                self.longest = len(text)
                if self.longest > MAX_CHARACTERS:
                    raise OnomaError(
                        f"an entry has more than {MAX_CHARACTERS:,} characters: {short_repr(text)}. "
                        "Fix: give names, one per line"
                    )
            yield text

    def _rule(self, contexts: tuple[str, ...]) -> int:
        return self.rules.setdefault(contexts, len(self.rules)) if contexts else NO_RULE

    def contexts(self) -> Iterator[str]:
        """The words of all rules; to be read after the entries."""
        for contexts in self.rules:
            yield from contexts

    def rule_of_context(self) -> Integers:
        return np.repeat(np.arange(len(self.rules)), list(map(len, self.rules)))


@dataclass(frozen=True, slots=True, eq=False)
class EntryTable:
    """An index of phrases, and the entries and rules that each of them belongs to.

    Columns have one row per entry: the `size` entries that are labelled, then those that only hide others.
    """

    index: PhraseIndex
    types: tuple[str, ...]
    size: int
    ambiguous: int  # phrases that are skipped because they have several types
    longest: int  # characters
    entries: Grouped  # of each phrase
    label: Integers
    not_before: Integers  # the rule of each entry
    not_after: Integers
    rules: Grouped | None  # of each phrase that is a context; None if there are no rules
    used: NDArray[np.bool_]  # whether each phrase has entries or rules

    @classmethod
    def build(
        cls,
        entries: Iterable[Entry],
        folding: Folding,
        *,
        ambiguous: Ambiguous = "skip",
        stop: Iterable[str] = (),
        not_before: Sequence[str] = (),
        not_after: Sequence[str] = (),
    ) -> EntryTable:
        """Index entries, stop phrases and contexts; see `Dictionary`."""
        columns, stop = _Columns(not_before, not_after), list(stop)
        index = PhraseIndex(chain(columns.read(entries), stop, columns.contexts()), folding)
        count = len(columns.label)
        phrase, stopped, contexts = np.split(index.numbers, [count, count + len(stop)])
        rows = np.flatnonzero(phrase >= 0)
        label = np.array(columns.label, np.int64)
        chosen, unclear = _choose(phrase[rows], label[rows], ambiguous)
        rows = rows[chosen]
        rows = rows[~np.isin(phrase[rows], stopped)]
        hiding = np.union1d(unclear, stopped)
        hiding = hiding[hiding >= index.single]  # nothing is inside a single word
        every = np.concatenate([phrase[rows], hiding])
        nothing, known = np.full(len(hiding), NO_RULE), contexts >= 0
        of_phrase = Grouped.by(every, np.arange(len(every)), index.size)
        rules = Grouped.by(contexts[known], columns.rule_of_context()[known], index.size) if known.any() else None
        return cls(
            index,
            tuple(columns.types),
            len(rows),
            len(unclear),
            columns.longest,
            of_phrase,
            np.concatenate([label[rows], np.full(len(hiding), NOT_LABELLED)]),
            np.concatenate([np.array(columns.not_before, np.int64)[rows], nothing]),
            np.concatenate([np.array(columns.not_after, np.int64)[rows], nothing]),
            rules,
            of_phrase.is_filled() if rules is None else of_phrase.is_filled() | rules.is_filled(),
        )


def _choose(phrase: Integers, label: Integers, ambiguous: Ambiguous) -> tuple[Integers, Integers]:
    """The entries that count if several have the same phrase, and the phrases whose type stays open.

    An entry that is repeated with the same type counts once.
    """
    if ambiguous == "first":
        return np.unique(phrase, return_index=True)[1], phrase[:0]
    _, rows = np.unique(phrase * (int(label.max(initial=0)) + 1) + label, return_index=True)
    if ambiguous == "all":
        return rows, phrase[:0]
    phrases, counts = np.unique(phrase[rows], return_counts=True)
    unclear = phrases[counts > 1]
    return rows[~np.isin(phrase[rows], unclear)], unclear
