"""Which model of a folder reads a text, or a part of it: a choice by script.

A text in one script is read by one model as a whole. In a text that mixes scripts,

1. each sentence or line is read by the model that would read it as a text of its own; neighbours with the same model
   are read together, and a few words between Chinese sentences ("Apple Inc.") stay with them;
2. runs of a script in a sentence that another model reads ("The CEO of 腾讯, 马化腾, met Tim Cook") are also read by
   the model for that script, each run on its own, and this model alone finds mentions inside of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from onoma.inputs.blocks import Block, Part
from onoma.labels.coverage import Coverage, count_letters
from onoma.text.scripts import SCRIPTS, script_pattern
from onoma.text.sentences import sentence_ends

CHARACTERS_PER_WORD = 2
"""Han characters that weigh as much as a word with spaces around it, in a text with Chinese sentences."""
MIN_WORDS = 3
"""A sentence with fewer words in scripts of no other model is read together with its neighbours."""
BLOCK_CHARACTERS = 32_768
"""Characters of a text with mixed scripts that are read before their entities are reported."""

_KANA = script_pattern(["Hiragana", "Katakana"])
# Characters of Chinese sentences that are rare in names and titles, and Chinese punctuation.
_CHINESE_SENTENCE = re.compile("[的了在是我你他她们們这這请請为為与與及被把给給从從吗嗎呢吧，。！？、；：]")
# Words of English sentences that are rare in titles.
_ENGLISH_SENTENCE = re.compile(
    r"\b(?:is|are|was|were|been|has|have|had|will|would|that|he|she|they|we|his)\b", re.ASCII
)
_UNSPACED = "".join(SCRIPTS[script] for script in ("Han", "Hiragana", "Katakana", "Thai"))
_WORD = re.compile(rf"(?![{_UNSPACED}])[^\W\d_](?:[!-~]|(?![{_UNSPACED}])\w)*")  # addresses are one word
_LINE_END = re.compile(r"\n+")


class ScriptRouter:
    """Chooses a route for a text: the first one whose scripts make up a certain share of the text's letters.

    Chinese sentences often contain words in other scripts, such as the names of products, which have many letters. So a
    text with signs of a Chinese sentence, and none of an English one, is also accepted by a route for Chinese if Han
    characters make up that share when a word of another script counts as two characters. A route without scripts
    accepts every text.
    """

    def __init__(self, routes: Sequence[Sequence[str]], share: float, coverage: Coverage | None = None) -> None:
        """`coverage` warns of texts that none of the models was made for."""
        self.patterns = [script_pattern(scripts) if scripts else None for scripts in routes]
        self.runs = [_run_pattern(scripts) if scripts else None for scripts in routes]
        self.chinese = ["Han" in scripts and not {"Hiragana", "Katakana"} & set(scripts) for scripts in routes]
        self.share, self.coverage = share, coverage

    def route(self, text: str) -> int:
        """The index of the route for a text, if it is read as a whole."""
        return self._route(text, Counter(filter(str.isalpha, text)))

    def _route(self, text: str, counts: Counter[str]) -> int:
        for number, pattern in enumerate(self.patterns):
            if pattern is None:
                return number
            own = count_letters(pattern, counts)
            if own and (
                own >= self.share * counts.total() or (self.chinese[number] and self._is_mixed_chinese(text, own))
            ):
                return number
        return len(self.patterns) - 1

    def _is_mixed_chinese(self, text: str, own: int) -> bool:
        """Whether a text with these Han characters has Chinese sentences with words in other scripts."""
        if not _CHINESE_SENTENCE.search(text) or _ENGLISH_SENTENCE.search(text):
            return False
        return own >= self.share * (own + _weight_of_words(text))

    def split(self, text: str) -> list[Block]:
        """The parts of a text that each model reads; one part for a text in one script.

        >>> router = ScriptRouter([["Han"], []], 0.3333)
        >>> [text[part.start:part.end] for text in ["Ask 王芳 in Oslo."] for part in router.split(text)[0]]
        ['Ask 王芳 in Oslo.', '王芳']
        """
        counts = Counter(filter(str.isalpha, text))  # even a long text has few distinct letters
        route = self._route(text, counts)
        if self.coverage is not None:
            self.coverage.check(text, counts, is_other=route == len(self.patterns) - 1)
        if not self._may_be_mixed(text, route, counts):
            return [[Part(route, 0, len(text))]]
        units = list(self._units(text, route))
        if all(unit.route == route and not runs for unit, runs in units):
            return [[Part(route, 0, len(text))]]
        return list(_blocks(units))

    def _may_be_mixed(self, text: str, route: int, counts: Counter[str]) -> bool:
        """Whether some sentences or runs might be for another model than the text as a whole."""
        others = (pattern for number, pattern in enumerate(self.patterns) if number != route)
        if any(pattern is not None and count_letters(pattern, counts) for pattern in others):
            return True
        return route < len(self.patterns) - 1 and _is_sentence(text)

    def _units(self, text: str, route: int) -> Iterator[tuple[Part, list[Part]]]:
        """Sentences and lines with their routes, and the runs in them that other routes read as well."""
        lines = np.fromiter((match.end() for match in _LINE_END.finditer(text)), np.int64)
        edges = np.unique(np.concatenate([[0], sentence_ends(text), lines, [len(text)]])).tolist()
        for start, end in pairwise(edges):
            sentence = text[start:end]
            own = self.route(sentence)
            if own < len(self.patterns) - 1 or _is_sentence(sentence):
                route = own
            yield Part(route, start, end), list(self._runs(text, start, end, route))

    def _runs(self, text: str, start: int, end: int, route: int) -> Iterator[Part]:
        for number, pattern in enumerate(self.runs):
            if pattern is not None and number != route:
                for match in pattern.finditer(text, start, end):
                    yield Part(number, match.start(), match.end(), is_run=True)


def _run_pattern(scripts: Sequence[str]) -> re.Pattern[str]:
    """Matches letters of scripts with what is between them, except letters of other scripts, and numbers before them.

    >>> _run_pattern(["Han"]).findall("On 2023年5月 腾讯, 马化腾 met")
    ['2023年5月 腾讯, 马化腾']
    """
    own = script_pattern(scripts).pattern
    opening, closing = "[《〈「『（【“]", "[》〉」』）】”]"
    return re.compile(rf"{opening}?(?:(?<![\w.,])\d[\d.,]{{0,15}}+)?{own}++(?:[\W\d_]++{own}++)*+{closing}?")


def _weight_of_words(text: str) -> int:
    """What the words of a text in other scripts than Han weigh, in Han characters."""
    return CHARACTERS_PER_WORD * len(_WORD.findall(text)) + len(_KANA.findall(text))


def _is_sentence(text: str) -> bool:
    """Whether words in other scripts than Han are more than a name."""
    return _weight_of_words(text) >= CHARACTERS_PER_WORD * MIN_WORDS


def _blocks(units: Sequence[tuple[Part, list[Part]]]) -> Iterator[Block]:
    """Blocks of limited size; neighbouring units with the same route are one part, with the runs inside of them."""
    block: list[Part] = []
    runs: list[Part] = []
    begin = 0
    for unit, inside in units:
        if block and unit.end - begin > BLOCK_CHARACTERS:
            yield [*block, *runs]
            block, runs, begin = [], [], unit.start
        if block and block[-1].route == unit.route:
            block[-1] = block[-1]._replace(end=unit.end)
        else:
            block.append(unit)
        runs += inside
    yield [*block, *runs]
