"""Folding of texts: case, width and traditional characters, one by one, so that offsets can be mapped back exactly."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.text.boundaries import Booleans, Codes, Kinds, Positions, character_kinds, kinds_of
from onoma.text.chinese import simplified_characters

_CODE_POINTS = 0x110000
_FOLDED = 0x1F000
"""Characters from here on have neither case nor width."""
_VOICED = ("\u3099", "\u309a")
_KINDS = np.uint32(24)
"""A character is one number: its code point, its kinds from this bit on, and the highest bit if more follow."""
_CODE, _EXPANDS = np.uint32((1 << 24) - 1), np.uint32(1 << 31)


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A folded text: its code points, the kinds of its characters, and the places of additional characters.

    A character that becomes several, as "ß" becomes "ss", has all but the first of them as additional characters.
    """

    codes: Codes
    kinds: Kinds
    original_kinds: Kinds  # without additional characters
    additional: Positions

    def places(self, positions: Positions) -> Positions:
        """Where positions of the original text are in the folded one."""
        expanded = self.additional - np.arange(1, len(self.additional) + 1)
        return positions + np.searchsorted(expanded, positions)

    def originals(self, places: Positions) -> tuple[Positions, Booleans]:
        """Which positions of the original text these are, and whether they lie between characters of it."""
        count = np.searchsorted(self.additional, places)
        return places - count, np.append(self.additional, -1).take(count) != places


class _Tables(NamedTuple):
    first: NDArray[np.uint32]  # what each character becomes, or the first of the characters that it becomes
    rest: dict[int, tuple[int, ...]]


class Folding:
    """Folds case ("ß" is "ss"), width (full-width "Ａ" is "A", half-width "ｶﾞ" is "ガ") and traditional characters.

    Traditional characters become simplified ones ("灣" is "湾"). Each of the three can be switched off.
    """

    def __init__(self, *, case: bool = True, width: bool = True, traditional: bool = True) -> None:
        self._tables = _tables(case, width, traditional)

    def fold(self, text: str) -> Folded:
        """Fold a text.

        >>> folded = Folding().fold("Größe")
        >>> "".join(map(chr, folded.codes)), folded.additional.tolist()
        ('grösse', [4])
        """
        first, rest = self._tables
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.intp)
        folded = first.take(codes)
        rows = np.flatnonzero(folded >= _EXPANDS)
        folded[rows] -= _EXPANDS
        kinds = _kinds(folded)
        if not len(rows):
            return Folded(folded & _CODE, kinds, kinds, rows)
        more = [rest[code] for code in codes[rows].tolist()]
        after = np.repeat(rows + 1, list(map(len, more)))
        folded = np.insert(folded, after, _characters(np.array(list(chain.from_iterable(more)), np.uint32)))
        return Folded(folded & _CODE, _kinds(folded), kinds, after + np.arange(len(after)))


def _characters(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return codes | kinds_of(codes).astype(np.uint32) << _KINDS


def _kinds(characters: NDArray[np.uint32]) -> Kinds:
    return (characters >> _KINDS).astype(np.uint8)


@lru_cache(maxsize=8)
def _tables(case: bool, width: bool, traditional: bool) -> _Tables:
    kinds = character_kinds()
    first = np.arange(_CODE_POINTS, dtype=np.uint32)
    rest: dict[int, tuple[int, ...]] = {}
    for code in range(_FOLDED):
        one = chr(code)
        folded = _fold_character(one, case, width)
        if folded == one or not (kinds[code] == kinds[ord(folded[0])] or folded in _VOICED):
            continue  # other foldings would move the edges of words
        first[code] = ord(folded[0])
        if len(folded) > 1:
            rest[code] = tuple(map(ord, folded[1:]))
    if traditional:
        characters, simplified = simplified_characters()
        first[characters] = simplified
    first = _characters(first)
    first[list(rest)] |= _EXPANDS
    return _Tables(first, rest)


def _fold_character(one: str, case: bool, width: bool) -> str:
    if width and unicodedata.decomposition(one).startswith(("<wide>", "<narrow>")):
        one = unicodedata.normalize("NFKC", one)
    if width and "\u3041" <= one <= "\u30ff":
        parts = unicodedata.normalize("NFD", one)
        one = parts if parts.endswith(_VOICED) else one
    return one.casefold() if case else one
