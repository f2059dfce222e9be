"""Folding of texts: case and width, character by character, so that offsets can be mapped back exactly."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.text.boundaries import Booleans, Codes, Kinds, Positions, character_kinds, kinds_of

_CODE_POINTS = 0x110000
_FOLDED = 0x1F000
"""Characters from here on have neither case nor width."""
_VOICED = ("\u3099", "\u309a")
_EXPANDS = 128  # a bit beside the kinds of characters


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A folded text: its code points, the kinds of its characters, and the places of additional characters.

    A character that becomes several, as "ß" becomes "ss", has all but the first of them as additional characters.
    """

    codes: Codes
    kinds: Kinds
    additional: Positions

    def original_kinds(self) -> Kinds:
        """The kinds of the characters of the original text."""
        return np.delete(self.kinds, self.additional) if len(self.additional) else self.kinds

    def places(self, positions: Positions) -> Positions:
        """Where positions of the original text are in the folded one."""
        expanded = self.additional - np.arange(1, len(self.additional) + 1)
        return positions + np.searchsorted(expanded, positions)

    def originals(self, places: Positions) -> tuple[Positions, Booleans]:
        """Which positions of the original text these are, and whether they lie between characters of it."""
        count = np.searchsorted(self.additional, places)
        return places - count, ~np.isin(places, self.additional)


class _Tables(NamedTuple):
    first: NDArray[np.uint32]  # what each character becomes, or the first of the characters that it becomes
    kinds: Kinds  # of that character; the bit _EXPANDS if there are more
    rest: dict[int, tuple[int, ...]]


class Folding:
    """Folds case ("ß" is "ss"), width (full-width "Ａ" is "A", half-width "ｶﾞ" is "ガ"), both or nothing."""

    def __init__(self, *, case: bool = True, width: bool = True) -> None:
        self._tables = _tables(case, width)

    def fold(self, text: str) -> Folded:
        """Fold a text.

        >>> folded = Folding().fold("Größe")
        >>> "".join(map(chr, folded.codes)), folded.additional.tolist()
        ('grösse', [4])
        """
        first, table, rest = self._tables
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.intp)
        folded, kinds = first.take(codes), table.take(codes)
        rows = np.flatnonzero(kinds >= _EXPANDS)
        if not len(rows):
            return Folded(folded, kinds, rows)
        kinds[rows] &= ~np.uint8(_EXPANDS)
        more = [rest[code] for code in codes[rows].tolist()]
        after = np.repeat(rows + 1, list(map(len, more)))
        extra = np.array(list(chain.from_iterable(more)), np.uint32)
        additional = after + np.arange(len(after))
        return Folded(np.insert(folded, after, extra), np.insert(kinds, after, kinds_of(extra)), additional)


@lru_cache(maxsize=4)
def _tables(case: bool, width: bool) -> _Tables:
    kinds = character_kinds()
    first, table = np.arange(_CODE_POINTS, dtype=np.uint32), kinds.copy()
    rest: dict[int, tuple[int, ...]] = {}
    for code in range(_FOLDED):
        one = chr(code)
        folded = _fold_character(one, case, width)
        if folded == one or not (kinds[code] == kinds[ord(folded[0])] or folded in _VOICED):
            continue  # other foldings would move the edges of words
        first[code], table[code] = ord(folded[0]), kinds[ord(folded[0])]
        if len(folded) > 1:
            table[code] |= _EXPANDS
            rest[code] = tuple(map(ord, folded[1:]))
    return _Tables(first, table, rest)


def _fold_character(one: str, case: bool, width: bool) -> str:
    if width and unicodedata.decomposition(one).startswith(("<wide>", "<narrow>")):
        one = unicodedata.normalize("NFKC", one)
    if width and "\u3041" <= one <= "\u30ff":
        parts = unicodedata.normalize("NFD", one)
        one = parts if parts.endswith(_VOICED) else one
    return one.casefold() if case else one
