"""Texts as sequences of hashed pieces: the smallest units at whose edges a match may start or end.

A piece is a run of letters and digits, or another single character that is not white space. Pieces have 64-bit hashes;
so do sequences of pieces, which also depend on whether there is white space between two pieces, but not on how much,
and on whether a document ends there: no phrase is found across two documents.
A gigabyte of text has about 10^9 spans that could be one of a million entries; the probability that the hash of any of
them is that of an entry with another text is about 10^15 / 2^64, or 1 in 20,000.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from onoma.data.dictionary.folding import Folded
from onoma.text.boundaries import SPACE, Codes, possible_boundaries

Hashes = NDArray[np.uint64]
Integers = NDArray[np.int64]

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse modulo 2^64
_INVERSE = np.uint64(pow(int(_BASE), -1, 1 << 64))
_MIX = np.uint64(0xD6E8FEB86659FD93)
_GAP, _BREAK = np.uint64(0xA24BAED4963EE407), np.uint64(0x9FB21C651E98DF25)
_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The pieces of a folded text: their positions in it, and their hashes at the start of and within a sequence."""

    start: Integers
    end: Integers
    hash: Hashes
    next_hash: Hashes  # depends on what precedes the piece; one more, for the end of the text
    edges: Integers  # the pieces of document d are edges[d] to edges[d + 1]

    @classmethod
    def cut(cls, folded: Folded, ends: Integers) -> Pieces:
        """Cut a folded text into pieces; its documents end at `ends` of the original text, the last one with it."""
        cut, solid = possible_boundaries(folded.kinds), (folded.kinds & SPACE) == 0
        start = np.flatnonzero(cut[:-1] & solid)
        end = np.flatnonzero(cut[1:] & solid) + 1
        edges = np.concatenate([[0], np.searchsorted(start, folded.places(ends))])
        hashes = _hash_pieces(folded.codes, start, end)
        next_hash = np.append(hashes, np.uint64(0))
        next_hash[1:-1] += (start[1:] > end[:-1]) * _GAP
        next_hash[edges] += _BREAK
        return cls(start, end, hashes, next_hash, edges)

    def extend(self, hashes: Hashes, following: Integers) -> Hashes:
        """The hashes of sequences that are continued by one piece each."""
        return _mix(hashes * _BASE + self.next_hash.take(following, mode="clip"))


def _hash_pieces(codes: Codes, start: Integers, end: Integers) -> Hashes:
    """The sum of code × base^place over the characters of each piece, the place counted from its start."""
    powers, inverses = _powers(1 << len(codes).bit_length())
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.multiply(codes, powers[: len(codes)], out=sums[1:])
    np.cumsum(sums, out=sums)
    return _mix((sums.take(end) - sums.take(start)) * inverses.take(start))


@lru_cache(maxsize=8)
def _powers(size: int) -> tuple[Hashes, Hashes]:
    """The powers of the base, from 0 on, and their inverses."""
    both = []
    for base in (_BASE, _INVERSE):
        factors = np.full(size, base, np.uint64)
        factors[0] = 1
        both.append(np.cumprod(factors, dtype=np.uint64))
    return both[0], both[1]


def _mix(hashes: Hashes) -> Hashes:
    """Spread the differences between hashes over all bits."""
    hashes = (hashes ^ (hashes >> _HALF)) * _MIX
    return hashes ^ (hashes >> _HALF)
