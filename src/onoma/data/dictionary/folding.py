"""Folding of texts: case and width, character by character, so that offsets can be mapped back exactly."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.text.boundaries import character_kinds

_CODE_POINTS = 0x110000
_FOLDED = 0x1F000
"""Characters from here on have neither case nor width."""
_VOICED = ("\u3099", "\u309a")


class Folded(NamedTuple):
    """The code points of a folded text; `source` is the original position of each, None if they are the same."""

    codes: NDArray[np.unsignedinteger]
    source: NDArray[np.int64] | None

    def places(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where positions of the original text are in the folded one."""
        return positions if self.source is None else np.searchsorted(self.source, positions)


class _Tables(NamedTuple):
    first: NDArray[np.uint32]  # what each character becomes, or the first of the characters that it becomes
    length: NDArray[np.uint8]
    rest: dict[int, NDArray[np.uint32]]  # the further characters of those that become several


class Folding:
    """Folds case ("ß" is "ss"), width (full-width "Ａ" is "A", half-width "ｶﾞ" is "ガ"), both or nothing."""

    def __init__(self, *, case: bool = True, width: bool = True) -> None:
        self._tables = _tables(case, width)

    def fold(self, text: str) -> Folded:
        """Fold a text.

        >>> folded = Folding().fold("Größe")
        >>> "".join(map(chr, folded.codes)), folded.source.tolist()
        ('grösse', [0, 1, 2, 3, 3, 4])
        """
        first, length, rest = self._tables
        if text.isascii():
            return Folded(first[np.frombuffer(text.encode("ascii"), np.uint8)], None)
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        lengths = length[codes]
        if int(lengths.max()) == 1:
            return Folded(first[codes], None)
        source = np.repeat(np.arange(len(codes)), lengths)
        folded = first[codes[source]]
        ends = np.cumsum(lengths, dtype=np.int64)
        for place in range(1, int(lengths.max())):
            rows = np.flatnonzero(lengths > place)
            folded[ends[rows] - lengths[rows] + place] = rest[place][codes[rows]]
        return Folded(folded, source)


@lru_cache(maxsize=4)
def _tables(case: bool, width: bool) -> _Tables:
    first, length = np.arange(_CODE_POINTS, dtype=np.uint32), np.ones(_CODE_POINTS, np.uint8)
    rest: dict[int, NDArray[np.uint32]] = {}
    kinds = character_kinds()
    for code in range(_FOLDED):
        one = chr(code)
        folded = _fold_character(one, case, width)
        if folded == one:
            continue
        if len(folded) > 1 or kinds[code] == kinds[ord(folded)] or folded in _VOICED:
            first[code], length[code] = ord(folded[0]), len(folded)  # other foldings would move the edges of words
        for place, extra in enumerate(folded[1:], start=1):
            rest.setdefault(place, np.zeros(_FOLDED, np.uint32))[code] = ord(extra)
    return _Tables(first, length, rest)


def _fold_character(one: str, case: bool, width: bool) -> str:
    if width and unicodedata.decomposition(one).startswith(("<wide>", "<narrow>")):
        one = unicodedata.normalize("NFKC", one)
    if width and "\u3041" <= one <= "\u30ff":
        parts = unicodedata.normalize("NFD", one)
        one = parts if parts.endswith(_VOICED) else one
    return one.casefold() if case else one
