"""Which model of a folder reads a text: a choice by script."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence

from onoma.text.scripts import SCRIPTS, script_pattern

logger = logging.getLogger("onoma")

KANA_SHARE = 0.1
"""The share of kana among its letters from which a text counts as Japanese; Chinese texts may have single ones."""
CHARACTERS_PER_WORD = 2
"""Han characters that weigh as much as a word with spaces around it, in a text with Chinese sentences."""

_KANA = script_pattern(["Hiragana", "Katakana"])
# Characters of Chinese sentences that are rare in names and titles, and Chinese punctuation.
_CHINESE_SENTENCE = re.compile("[的了在是我你他她们們这這请請为為与與及被把给給从從吗嗎呢吧，。！？、；：]")
_UNSPACED = "".join(SCRIPTS[script] for script in ("Han", "Hiragana", "Katakana", "Thai"))
_WORD = re.compile(rf"(?![{_UNSPACED}])[^\W\d_](?:[!-~]|(?![{_UNSPACED}])\w)*")  # addresses are one word


class ScriptRouter:
    """Chooses a route for a text: the first one whose scripts make up a certain share of the text's letters.

    Chinese sentences often contain words in other scripts, such as the names of products, which have many letters. So a
    text with signs of a Chinese sentence is also accepted by a route for Chinese if Han characters make up that share
    when a word of another script counts as two characters. A route without scripts accepts every text.
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
            if own and (
                own >= self.share * counts.total() or (self.chinese[number] and self._is_mixed_chinese(text, own))
            ):
                if self.chinese[number] and _count(_KANA, counts) > KANA_SHARE * counts.total():
                    self._warn_of_japanese()
                return number
        return len(self.patterns) - 1

    def _is_mixed_chinese(self, text: str, own: int) -> bool:
        """Whether a text with these Han characters has Chinese sentences with words in other scripts."""
        if not _CHINESE_SENTENCE.search(text):
            return False
        weight = CHARACTERS_PER_WORD * len(_WORD.findall(text)) + len(_KANA.findall(text))
        return own >= self.share * (own + weight)

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
