"""An index of phrases, which finds all of their occurrences in a text with array operations.

Level n of the index knows the sequences of n pieces (see `pieces`) that are a phrase, and those that a longer phrase
starts with. All pieces of a text are looked up on level 1; those that a phrase starts with are continued by one piece
and looked up on level 2, and so on. Most are gone after two levels. (An Aho-Corasick automaton for a million phrases
has tens of millions of states, and almost every character of a text leads to one that is not in the processor's cache:
see benchmarks/weak_label.py.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from onoma.data.dictionary.folding import Folding
from onoma.data.dictionary.pieces import Hashes, Integers, Pieces
from onoma.text.hashes import SortedHashes, highest_bits

BATCH_CHARACTERS = 1 << 16
"""Characters of phrases that are hashed together."""
_STARTS, _IS_PHRASE = 1, 2
_SLOTS_PER_HASH = 8  # in the table that is looked up first: 1 of 8 hashes of other sequences passes it


class Occurrences(NamedTuple):
    """Places in a text where a phrase was found: first and last piece, and the number of the phrase."""

    first: Integers
    last: Integers
    phrase: Integers


def _distinct(hashes: Hashes) -> Hashes:
    """Sorted, each once. `np.unique` gives the same, but takes several times as long for a million hashes."""
    hashes = np.sort(hashes)
    is_first = np.ones(len(hashes), np.bool_)
    is_first[1:] = hashes[1:] != hashes[:-1]
    return hashes[is_first]


class _Level:
    """The phrases of n pieces, and what longer ones start with."""

    def __init__(self, phrases: Hashes, starts: Hashes, first_phrase: int) -> None:
        bits = max(10, (_SLOTS_PER_HASH * max(len(phrases), len(starts))).bit_length())
        self.shift = np.uint64(64 - bits)
        self.flags = np.zeros(1 << bits, np.uint8)  # by the highest bits of a hash
        self.flags[starts >> self.shift] |= np.uint8(_STARTS)
        self.flags[phrases >> self.shift] |= np.uint8(_IS_PHRASE)
        self.phrases, self.first_phrase = SortedHashes(phrases), first_phrase

    def look_up(self, hashes: Hashes) -> tuple[Integers, Integers, Integers]:
        """The rows that a longer phrase may start with, the rows that are phrases, and these phrases."""
        flags = self.flags.take(highest_bits(hashes, self.shift))
        rows = np.flatnonzero(flags >= _IS_PHRASE)
        is_phrase, places = self.phrases.find(hashes[rows])
        return np.flatnonzero((flags & _STARTS) > 0), rows[is_phrase], self.first_phrase + places[is_phrase]


class PhraseIndex:
    """Finds phrases in texts. Phrases that are equal after folding have the same number.

    `numbers` has the number of each phrase, -1 for those that are only white space; `size` is the number of different
    ones, and the first `single` of them have one piece.
    """

    def __init__(self, phrases: Iterable[str], folding: Folding) -> None:
        whole: list[list[Hashes]] = []
        starts: list[list[Hashes]] = []
        places: list[list[Integers]] = []  # which of the phrases have 1, 2, ... pieces
        count = 0
        for batch in _batches(phrases):
            for level, (rows, final, started) in enumerate(_hash_phrases(batch, folding)):
                if level == len(whole):
                    whole.append([])
                    starts.append([])
                    places.append([])
                places[level].append(count + rows)
                whole[level].append(final)
                starts[level].append(started)
            count += len(batch)
        self.numbers = np.full(count, -1, np.int64)
        self.size = 0
        self._levels: list[_Level] = []
        for level, parts in enumerate(whole):
            hashes = np.concatenate(parts)
            table = _Level(_distinct(hashes), _distinct(np.concatenate(starts[level])), self.size)
            self.numbers[np.concatenate(places[level])] = self.size + table.phrases.find(hashes)[1]
            self._levels.append(table)
            self.size += len(table.phrases)
        self.single = len(self._levels[0].phrases) if self._levels else 0

    def find(self, pieces: Pieces) -> Occurrences:
        """All phrases in a text, overlapping ones too."""
        first, hashes = np.arange(len(pieces.hash)), pieces.hash
        found = [Occurrences(first[:0], first[:0], first[:0])]
        for level, table in enumerate(self._levels):
            rows, phrase_rows, phrases = table.look_up(hashes)
            starts = first[phrase_rows]
            found.append(Occurrences(starts, starts + level, phrases))
            if not len(rows):
                break
            first = first[rows]
            hashes = pieces.extend(hashes[rows], first + (level + 1))
        return Occurrences(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _batches(phrases: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for phrase in phrases:
        batch.append(phrase)
        characters += len(phrase) + 1
        if characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _hash_phrases(phrases: Sequence[str], folding: Folding) -> Iterator[tuple[Integers, Hashes, Hashes]]:
    """For n = 1, 2, ...: the phrases of n pieces, their hashes, and the hashes of what longer ones start with."""
    ends = np.cumsum([len(phrase) + 1 for phrase in phrases]) - 1
    pieces = Pieces.cut(folding.fold("\n".join(phrases)), ends)
    first, rows, lengths = pieces.edges, np.arange(len(phrases)), np.diff(pieces.edges)
    rows = rows[lengths > 0]
    hashes, level = pieces.hash[first[rows]], 1
    while len(rows):
        is_whole = lengths[rows] == level
        yield rows[is_whole], hashes[is_whole], hashes[~is_whole]
        rows, hashes = rows[~is_whole], hashes[~is_whole]
        hashes = pieces.extend(hashes, first[rows] + level)
        level += 1
