"""Tags of words for sequence labelling: BIO and BMES as numbers, and the mentions that they encode."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.overlap import resolve_overlaps

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Scheme = Literal["bio", "bmes"]

OUTSIDE = 0
"""The tag of words outside mentions."""


class TaggedSpans(NamedTuple):
    """Mentions, one per row: four arrays of the same length."""

    window: Integers
    first: Integers  # word
    last: Integers  # word, inclusive
    type: Integers


class TaggedWords(NamedTuple):
    """The words of mentions, mention by mention: three arrays of the same length."""

    mention: Integers  # row of the mention
    place: Integers  # word, counted from the start of the window
    tag: Integers


@dataclass(frozen=True)
class TagScheme:
    """BIO or BMES tags of some types.

    Tag 0 is O. The tags of type k follow one another: B and I in BIO; B, M, E and S in BMES.

    >>> TagScheme(2, "bio").kinds
    array([-1,  0,  0,  1,  1])
    """

    types: int
    scheme: Scheme

    @property
    def prefixes(self) -> str:
        """The prefixes of a type's tags, in their order."""
        return "BI" if self.scheme == "bio" else "BMES"

    @property
    def tags(self) -> int:
        """The number of tags."""
        return 1 + self.types * len(self.prefixes)

    @cached_property
    def kinds(self) -> Integers:
        """The type of each tag, -1 for O: (tags,)."""
        return np.repeat(np.arange(-1, self.types), [1] + [len(self.prefixes)] * self.types)

    @cached_property
    def allowed(self) -> Flags:
        """Whether a tag may follow another one: (tags, tags), indexed [from, to]."""
        same = self.kinds[:, None] == self.kinds
        goes_on = self._with_prefix("BI" if self.scheme == "bio" else "BM")
        return np.where(self.continues, goes_on[:, None] & same, self.may_end[:, None])

    @cached_property
    def may_start(self) -> Flags:
        """Whether a tag may be that of the first word: (tags,)."""
        return ~self.continues

    @cached_property
    def may_end(self) -> Flags:
        """Whether a tag may be that of the last word: (tags,)."""
        return ~self._with_prefix("" if self.scheme == "bio" else "BM")

    @cached_property
    def continues(self) -> Flags:
        """Whether a tag continues the mention of the word before: (tags,)."""
        return self._with_prefix("IME")

    def _with_prefix(self, prefixes: str) -> Flags:
        """Whether a tag has one of some prefixes: (tags,)."""
        return np.array([False] + [prefix in prefixes for prefix in self.prefixes] * self.types)

    def words_of(self, first: Integers, last: Integers, kind: Integers) -> TaggedWords:
        """The words of mentions, with their tags."""
        widths = last - first + 1
        mention = np.repeat(np.arange(len(first)), widths)
        place = np.arange(len(mention)) - np.repeat(np.cumsum(widths) - widths, widths) + first[mention]
        is_first, is_last = place == first[mention], place == last[mention]
        prefix = ~is_first * 1  # B or I, B or M
        if self.scheme == "bmes":
            prefix += is_last * np.where(is_first, 3, 1)  # S or E
        return TaggedWords(mention, place, 1 + len(self.prefixes) * kind[mention] + prefix)

    def encode(self, gold: Integers, words: Integers, width: int) -> Integers:
        """The tags of mentions: (windows, width). Words outside mentions and padding have tag O.

        Args:
            gold: rows (window, first word, last word, type). Of mentions that overlap, `longest_mentions` are encoded.
            words: number of words of each window (windows,).
            width: words of the longest window.
        """
        tags = np.full((len(words), width), OUTSIDE, np.int64)
        window, first, last, kind = longest_mentions(gold).T
        mention, place, tag = self.words_of(first, last, kind)
        tags[window[mention], place] = tag
        return tags

    def possible(
        self, gold: Integers, words: Integers, width: int, known: Flags, masked: Integers | None = None
    ) -> Flags:
        """The tags that an incomplete annotation allows: (windows, width, tags).

        A word of a mention has exactly its tag, and the word behind it does not continue it. Every other word is O or
        has any tag of a type that is not annotated; words of masked spans have any tag. At least one path of allowed
        tags always remains: the mentions, and O elsewhere.

        Args:
            gold, words, width: see `encode`.
            known: types that are annotated (windows, types).
            masked: spans of which nothing is known: rows (window, first word, last word).
        """
        unknown = np.pad(~known, ((0, 0), (1, 0)), constant_values=True)  # (windows, 1 + types), with O
        possible = np.repeat(unknown[:, None, self.kinds + 1], width, axis=1)  # (windows, width, tags)
        if masked is not None:
            window, first, last = masked.T
            hidden = self.words_of(first, last, np.zeros_like(first))
            possible[window[hidden.mention], hidden.place] = True
        window, first, last, kind = longest_mentions(gold).T
        inner = np.flatnonzero(last + 1 < width)
        possible[window[inner], last[inner] + 1] &= ~(self.continues & (self.kinds == kind[inner, None]))
        mention, place, tag = self.words_of(first, last, kind)
        possible[window[mention], place] = np.arange(self.tags) == tag[:, None]
        possible[np.arange(width) >= words[:, None]] = np.arange(self.tags) == OUTSIDE
        return possible

    def spans(self, paths: Integers, words: Integers) -> TaggedSpans:
        """The mentions of valid tag sequences (windows, width), in the order of windows and words."""
        tags = np.where(np.arange(paths.shape[1]) < words[:, None], paths, OUTSIDE)
        inside, continues = tags != OUTSIDE, self.continues[tags]
        window, first = np.nonzero(inside & ~continues)
        last = np.nonzero(inside & ~np.pad(continues, ((0, 0), (0, 1)))[:, 1:])[1]
        return TaggedSpans(window, first, last, self.kinds[tags[window, first]])


def longest_mentions(gold: Integers) -> Integers:
    """The rows (window, first word, last word, type) that remain if no two mentions of a window may overlap.

    The longest mention stays; of mentions of the same length, the one that starts earlier.
    """
    window, first, last, kind = gold.T
    return gold[resolve_overlaps(first, last + 1, kind, last - first, overlap="flat", group=window)]
