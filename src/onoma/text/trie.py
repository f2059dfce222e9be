"""A trie of words, which finds all of their occurrences in a text with array operations.

The children of all nodes of a level are in one table of keys: parent × alphabet + character. All characters of a text
that a word starts with are continued by one character and looked up in the first table; those that are found are
continued and looked up in the next one, and so on. A key is looked up by its hash, but the hash function is a bijection
of 64-bit numbers, so that equal hashes mean equal keys: nothing has to be verified.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onoma.text.hashes import Hashes, Integers, SortedHashes

MAX_LENGTH = 64
"""Characters of a word at most."""

_HALF, _MIX = np.uint64(32), np.uint64(0xD6E8FEB86659FD93)  # odd, so that it has an inverse modulo 2^64
_START, _LENGTH = 40, 32  # bits of an occurrence as one number: its start from bit 40 on, its length, its word
_BYTE, _INT32 = (1 << 8) - 1, (1 << 32) - 1


class Occurrences(NamedTuple):
    """Places where words were found, sorted by start and end."""

    start: Integers
    end: Integers
    word: Integers


class _Level:
    """The nodes of a level. A node is the place of the hash of its key among the sorted hashes."""

    def __init__(self, keys: Integers) -> None:
        self._keys = SortedHashes(np.sort(_hash(keys)))
        self.word = np.full(len(keys), -1, np.int32)  # that ends at each node
        self.is_prefix = np.zeros(len(keys), np.bool_)  # whether a longer word goes on

    def find(self, keys: Integers) -> tuple[Integers, Integers]:
        """Which of the keys are here, and their nodes."""
        is_here, places = self._keys.find(_hash(keys))
        rows = np.flatnonzero(is_here)
        return rows, places[rows]


class WordTrie:
    """Finds words in texts. Words and texts are numbers of characters; 0 is a character that no word contains."""

    def __init__(self, characters: Integers, starts: Integers, lengths: Integers) -> None:
        """Index words.

        Args:
            characters: all words, one after another.
            starts, lengths: of each word in `characters`; it has from 2 to `MAX_LENGTH` characters.
        """
        self._alphabet = int(characters.max(initial=0)) + 1
        self._starts = np.zeros(self._alphabet, np.bool_)  # whether a word starts with a character
        self._starts[characters[starts]] = True
        self._levels: list[_Level] = []
        rows, nodes, depth = np.arange(len(starts)), characters[starts], 1
        while len(rows):
            keys, number = np.unique(nodes * self._alphabet + characters[starts[rows] + depth], return_inverse=True)
            level, depth = _Level(keys), depth + 1
            nodes = level.find(keys)[1][number]
            is_end = lengths[rows] == depth
            level.word[nodes[is_end]] = rows[is_end]
            rows, nodes = rows[~is_end], nodes[~is_end]
            level.is_prefix[nodes] = True
            self._levels.append(level)

    def count(self) -> int:
        """The number of different words."""
        return sum(int((level.word >= 0).sum()) for level in self._levels)

    def find(self, text: Integers) -> Occurrences:
        """All words in a text, overlapping ones too."""
        text = np.append(text, 0)
        start = np.flatnonzero(self._starts.take(text))
        nodes, packed = text[start], [np.empty(0, np.int64)]
        for length, level in enumerate(self._levels, 2):
            rows, nodes = level.find(nodes * self._alphabet + text[start + length - 1])
            start, word = start[rows], level.word.take(nodes)
            ends = np.flatnonzero(word >= 0)
            packed.append(start[ends] << _START | length << _LENGTH | word[ends])
            rows = np.flatnonzero(level.is_prefix.take(nodes))
            start, nodes = start[rows], nodes[rows]
            if not len(rows):
                break
        found = np.sort(np.concatenate(packed))
        start = found >> _START
        return Occurrences(start, start + (found >> _LENGTH & _BYTE), found & _INT32)


def _hash(keys: Integers) -> Hashes:
    """A different number for each key, with differences in all bits."""
    hashes = keys.view(np.uint64)
    hashes = (hashes ^ (hashes >> _HALF)) * _MIX
    return hashes ^ (hashes >> _HALF)
