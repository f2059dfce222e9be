"""Word boundaries at some positions of a text, without segmenting all of it.

The words are those of `segment`. Two facts make it fast: pairs of neighbouring characters usually decide, and words
never contain white space, so that only the run of other characters around a doubtful position has to be segmented.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from onoma.text.width import fold_width
from onoma.text.words import is_unspaced, segment

Codes = NDArray[np.unsignedinteger]  # code points of a text
Kinds = NDArray[np.uint8]
Booleans = NDArray[np.bool_]
Positions = NDArray[np.int64]

SPACE, INSIDE, DIGIT, MARK, UNSPACED = 1, 2, 4, 8, 16
"""Kinds of characters, as bits: white space; what continues a word of a spaced script; decimal digits; combining marks,
which continue any word; characters of scripts without spaces."""

_CODE_POINTS = 0x110000
_CLASSIFIED = ((0, 0x20000), (0xE0000, 0xE0200))
_IDEOGRAPHS = slice(0x20000, 0x40000)
_ADDRESS_CLUES = ("@", "://", "www.", "WWW.")


@lru_cache(maxsize=1)
def character_kinds() -> Kinds:
    """The kinds of all code points. Whether a character continues a word is found out by segmenting it behind one."""
    kinds = np.zeros(_CODE_POINTS, np.uint8)
    for low, high in _CLASSIFIED:
        characters = [chr(code) for code in range(low, high)]
        columns = {
            SPACE: [one.isspace() for one in characters],
            INSIDE: _continues("a", characters),
            DIGIT: [one.isdecimal() for one in characters],
            MARK: _continues("-", characters),
            UNSPACED: [is_unspaced(one) for one in characters],
        }
        for kind, column in columns.items():
            kinds[low:high][np.array(column)] |= kind
    kinds[_IDEOGRAPHS] = UNSPACED
    return kinds


def _continues(first: str, characters: list[str]) -> Booleans:
    """Whether each character belongs to the same word as the character before it."""
    words = segment("".join(f" {first}{one}" for one in characters))
    starts = np.zeros(3 * len(characters) + 1, np.bool_)
    starts[words[:, 0]] = True
    spaces = np.array([one.isspace() for one in characters])
    return np.asarray(~starts[2:-1:3] & ~spaces)


def kinds_of(codes: Codes) -> Kinds:
    """The kind of each character."""
    return character_kinds()[codes]


def possible_boundaries(kinds: Kinds) -> Booleans:
    """Whether a word may start or end before each character and at the end, judged by neighbouring characters.

    Nothing starts or ends before a combining mark, or inside a run of letters and digits, except behind a digit, as
    in "5mg".
    """
    inside, digit, mark = (kinds & INSIDE) > 0, (kinds & DIGIT) > 0, (kinds & MARK) > 0
    within = (inside & ~mark)[:-1] & inside[1:]  # a mark may belong to a word of any script
    within &= ~digit[:-1] | digit[1:]
    possible = np.ones(len(kinds) + 1, np.bool_)
    possible[1:-1] = ~within & (~mark[1:] | ((kinds & SPACE) > 0)[:-1])
    return possible


def are_boundaries(text: str, kinds: Kinds, positions: Positions) -> Booleans:
    """Whether a word starts or ends at each of some positions of a text, at which one is possible."""
    edge = (positions == 0) | (positions == len(text))
    before, after = kinds[positions - 1], kinds[np.minimum(positions, len(text) - 1)]
    certain: Booleans = edge | ((before | after) & SPACE > 0)
    if certain.all():
        return certain
    spaces = np.flatnonzero((kinds & SPACE) > 0)
    beside_unspaced = (after & UNSPACED > 0) | ((before & UNSPACED > 0) & (after & MARK == 0))
    beside_unspaced &= ~certain
    if beside_unspaced.any():
        addresses = np.searchsorted(spaces, list(_address_clues(fold_width(text))))
        certain |= beside_unspaced & ~np.isin(np.searchsorted(spaces, positions), addresses)
    doubtful = np.flatnonzero(~certain)
    if len(doubtful):
        certain[doubtful] = _by_segmenting(text, spaces, positions[doubtful])
    return certain


def _address_clues(text: str) -> Iterator[int]:
    """Where there may be a URL or an e-mail address, which may contain characters of any script."""
    for clue in _ADDRESS_CLUES:
        place = text.find(clue)
        while place >= 0:
            yield place
            place = text.find(clue, place + 1)


def _by_segmenting(text: str, spaces: Positions, positions: Positions) -> Booleans:
    """Segment the runs without white space that contain the positions."""
    runs, run_of = np.unique(np.searchsorted(spaces, positions), return_inverse=True)
    edges = np.concatenate([[-1], spaces, [len(text)]])
    starts, ends = edges[runs] + 1, edges[runs + 1]
    joined = "\n".join([text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
    lengths = ends - starts + 1
    place = positions - starts[run_of] + (np.cumsum(lengths) - lengths)[run_of]
    is_edge = np.zeros(len(joined) + 1, np.bool_)
    is_edge[segment(joined).ravel()] = True
    return np.asarray(is_edge[place])
