"""From generated answers to spans of words: parsing, which accepts anything, and alignment with the text."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from onoma.systems.punifiedner.prompts import Ids, PromptTokenizer, Source
from onoma.text.words import Spans

Run = tuple[int, int]

COUNTED = {
    "answers": "answers",
    "mentions": "mentions that were aligned with the text",
    "truncated": "answers that ended at the limit of tokens; their last pair is dropped",
    "damaged": "pairs without exactly one type and one mention, dropped",
    "unasked": "mentions of types that were not asked for, dropped",
    "repeated": "mentions that the same answer has before, counted once",
    "invented": "mentions that are not in the text, dropped",
    "unaligned": "mentions that start or end inside words, dropped",
}
"""What is counted when answers are read."""


class Pair(NamedTuple):
    """A type and a mention, by the places of their tokens in an answer."""

    slot: int  # number of the type in the prompt
    type_start: int  # its first token
    start: int  # the first token of the mention
    end: int  # the token behind its last one


def parse(
    answer: Sequence[int], slots: Mapping[Ids, int], prompts: PromptTokenizer, counts: Counter[str]
) -> list[Pair]:
    """The pairs of an answer, which may be any sequence of tokens; `slots` are the types asked for, by their tokens."""
    colon, comma, null = prompts.symbols.colon, prompts.symbols.comma, prompts.symbols.null
    ids = list(answer)
    counts["answers"] += 1
    if prompts.end in ids:
        edges = [i for i, one in enumerate(ids[: ids.index(prompts.end)]) if one == comma] + [ids.index(prompts.end)]
    else:
        edges = [i for i, one in enumerate(ids) if one == comma]  # what follows the last one may be incomplete
        counts["truncated"] += 1
    pairs, seen, first = [], set(), 0
    for edge in edges:
        part = tuple(ids[first:edge])
        middle = part.index(colon) if colon in part else 0
        kind, mention = part[:middle], part[middle + 1 :]
        is_text = [not set(ids).intersection(prompts.symbols) for ids in (kind, mention)]
        if not (kind and mention and is_text[0] and (is_text[1] or mention == (null,))):
            counts["damaged"] += 1
        elif kind not in slots:
            counts["unasked"] += mention != (null,)
        elif (kind, mention) in seen:
            counts["repeated"] += 1
        elif mention != (null,):
            pairs.append(Pair(slots[kind], first, first + middle + 1, edge))
            seen.add((kind, mention))
        first = edge + 1
    return pairs


class WindowText:
    """The text of a window, in which mentions are searched."""

    def __init__(self, text: str, words: Spans, source: Source) -> None:
        self.source, origin = source, int(words[0, 0]) if len(words) else 0
        self.text = text[origin : int(words[-1, 1])] if len(words) else ""
        self.starts = {start - origin: word for word, start in enumerate(words[:, 0].tolist())}
        self.ends = {end - origin: word for word, end in enumerate(words[:, 1].tolist())}

    @cached_property
    def _folded(self) -> tuple[str, list[int]]:
        """The folded text, and the place in the text of each of its characters."""
        parts = [fold(one) for one in self.text]
        return "".join(parts), [place for place, part in enumerate(parts) for _ in part]

    def find(self, mention: str, ids: Ids, unknown: int) -> tuple[list[Run], bool]:
        """First and last word of all occurrences of a mention, in order, and whether it occurs anywhere.

        It is searched as it is, then folded, then by its tokens, until it is found between word boundaries. A mention
        with unknown characters is no string, so that only its tokens are searched.
        """
        if unknown in ids:
            runs = self._by_tokens(ids)
            return runs, bool(runs)
        found = list(_occurrences(self.text, mention))
        runs, occurs = self._between_words(found), bool(found)
        if not runs:
            folded, places = self._folded
            found = [(places[a], places[b - 1] + 1) for a, b in _occurrences(folded, fold(mention))]
            runs, occurs = self._between_words(found) or self._by_tokens(ids), occurs or bool(found)
        return runs, occurs or bool(runs)

    def _between_words(self, found: Sequence[Run]) -> list[Run]:
        return [(self.starts[a], self.ends[b]) for a, b in found if a in self.starts and b in self.ends]

    def _by_tokens(self, ids: Ids) -> list[Run]:
        tokens, size = self.source.ids.tolist(), len(ids)
        words = {edge: word for word, edge in enumerate(self.source.edges.tolist())}
        found = [place for place in words if size and tuple(tokens[place : place + size]) == ids]
        return [(words[place], words[place + size] - 1) for place in found if place + size in words]


def outermost(runs: Sequence[Run], others: Collection[Run]) -> Sequence[Run]:
    """Occurrences of a mention that do not lie inside other mentions; if all do, all of them.

    "Rome" occurs in "University of Rome" as well, but is a mention of its own where it stands alone.
    """
    outer = [(a, b) for a, b in runs if not any(x <= a and b <= y and (x, y) != (a, b) for x, y in others)]
    return outer or runs


def fold(text: str) -> str:
    """A text without differences of case, width and white space."""
    return "".join(unicodedata.normalize("NFKD", text).casefold().split())


def _occurrences(text: str, mention: str) -> Iterator[Run]:
    """Start and end of all occurrences; they may overlap."""
    place = text.find(mention) if mention else -1
    while place >= 0:
        yield place, place + len(mention)
        place = text.find(mention, place + 1)
