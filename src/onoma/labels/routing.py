"""Which model of a folder reads a text: a choice by script."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence

from onoma.text.scripts import script_pattern

logger = logging.getLogger("onoma")

KANA_SHARE = 0.1
"""The share of kana among its letters from which a text counts as Japanese; Chinese texts may have single ones."""

_KANA = script_pattern(["Hiragana", "Katakana"])


class ScriptRouter:
    """Chooses a route for a text: the first one whose scripts make up a certain share of the text's letters.

    A route without scripts accepts every text.
    """

    def __init__(self, routes: Sequence[Sequence[str]], share: float) -> None:
        self.patterns = [script_pattern(scripts) if scripts else None for scripts in routes]
        self.chinese = ["Han" in scripts and not {"Hiragana", "Katakana"} & set(scripts) for scripts in routes]
        self.share = share
        self._warned = False

    def route(self, text: str) -> int:
        """The index of the route for a text."""
        counts = Counter(filter(str.isalpha, text))  # even a long text has few distinct letters
        for number, pattern in enumerate(self.patterns):
            if pattern is None:
                return number
            own = _count(pattern, counts)
            if own and own >= self.share * counts.total():
                if self.chinese[number] and _count(_KANA, counts) > KANA_SHARE * counts.total():
                    self._warn_of_japanese()
                return number
        return len(self.patterns) - 1

    def _warn_of_japanese(self) -> None:
        """Warn once about a Japanese text with so many kanji that the model for Han characters reads it."""
        if not self._warned:
            self._warned = True
            logger.warning(
                "a text with kana is read by the model for Han characters, because a large share of its letters are "
                "Han: this model was made for Chinese, and results on Japanese are not reliable"
            )


def _count(pattern: re.Pattern[str], counts: Counter[str]) -> int:
    """How many of the counted letters match a pattern."""
    return sum(counts[letter] for letter in pattern.findall("".join(counts)))
