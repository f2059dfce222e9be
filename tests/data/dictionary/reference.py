"""A slow, obvious labeller that tests compare the real one with."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from onoma import Document
from onoma.data.dictionary import Entry
from onoma.text import segment

Span = tuple[int, int, str]
How = tuple[bool, bool, bool]  # whether case, width and traditional characters are folded

SIMPLIFIED = {"臺": "台", "灣": "湾"}


def fold(text: str, case: bool = True, width: bool = True, traditional: bool = True) -> str:
    """The text with folded characters and single spaces."""
    folded = "".join(_fold_character(one, case, width) for one in text)
    if traditional:
        folded = "".join(SIMPLIFIED.get(one, one) for one in folded)
    return " ".join(folded.split())


def _fold_character(one: str, case: bool, width: bool) -> str:
    if width and ("\uff01" <= one <= "\uff9f" or one == "\u3000"):
        one = unicodedata.normalize("NFKC", one)
    if width and one in "がパガ":
        one = unicodedata.normalize("NFD", one)
    return one.casefold() if case else one


def edges(document: Document, width: bool) -> set[int]:
    """Where mentions may start and end: at words, but never inside a run of letters and digits."""
    text = document.text
    words = document.words if document.words is not None else segment(text).tolist()
    found = {position for word in words for position in word}
    return {place for place in found if not (0 < place < len(text) and _is_inside(text[place - 1], text[place], width))}


def _is_inside(before: str, after: str, width: bool) -> bool:
    if _fold_character(after, False, width) in "\u3099\u309a" or unicodedata.category(after).startswith("M"):
        return not before.isspace()
    letters = all((one.isalnum() and not _is_unspaced(one)) or one == "_" for one in (before, after))
    return letters and not (before.isdecimal() and not after.isdecimal())


def _is_unspaced(one: str) -> bool:
    return "\u3040" <= one <= "\u9fff" or "\uff66" <= one <= "\uff9f"


def label(
    document: Document,
    entries: Sequence[Entry],
    *,
    ambiguous: str = "skip",
    stop: Sequence[str] = (),
    case: bool = True,
    width: bool = True,
    traditional: bool = True,
) -> set[Span]:
    """The mentions in a document, found by comparing every span with every entry."""
    text, places, how = document.text, sorted(edges(document, width)), (case, width, traditional)
    spans = [(a, b) for a in places for b in places if a < b and text[a:b] == text[a:b].strip()]
    found: list[tuple[int, int, tuple[str, ...]]] = []
    for start, end in spans:
        types = _types(fold(text[start:end], *how), entries, ambiguous, stop, how)
        if types is not None and not (types and _is_ruled_out(document, start, end, entries, types[0], how)):
            found.append((start, end, types))
        elif types is not None:
            found.append((start, end, ()))
    return set(_longest_first(found))


def _types(
    phrase: str, entries: Sequence[Entry], ambiguous: str, stop: Sequence[str], how: How
) -> tuple[str, ...] | None:
    """None if the phrase is unknown, no types if it is not labelled."""
    if phrase in {fold(one, *how) for one in stop}:
        return ()
    types = list(dict.fromkeys(entry.type for entry in entries if fold(entry.text, *how) == phrase))
    if not types:
        return None
    if len(types) > 1 and ambiguous == "skip":
        return ()
    return tuple(types if ambiguous == "all" else types[:1])


def _is_ruled_out(document: Document, start: int, end: int, entries: Sequence[Entry], type: str, how: How) -> bool:
    """Rules are those of the first entry with this text and type."""
    text, places = document.text, edges(document, how[1])
    phrase = fold(text[start:end], *how)
    entry = next(one for one in entries if fold(one.text, *how) == phrase and one.type == type)
    after = end + len(text[end:]) - len(text[end:].lstrip())
    before = len(text[:start].rstrip())
    following = {fold(text[after:b], *how) for b in places if b > after and text[b - 1].strip()}
    preceding = {fold(text[a:before], *how) for a in places if a < before and text[a].strip()}
    return (after in places and bool(following & {fold(one, *how) for one in entry.not_before})) or (
        before in places and bool(preceding & {fold(one, *how) for one in entry.not_after})
    )


def _longest_first(found: list[tuple[int, int, tuple[str, ...]]]) -> Iterator[Span]:
    taken: set[int] = set()
    for start, end, types in sorted(found, key=lambda span: (span[0] - span[1], span[0])):
        if taken.isdisjoint(range(start, end)):
            taken |= set(range(start, end))
            yield from ((start, end, type) for type in types)
