"""Texts in scripts and languages that a model was not made for: a warning in the log, once for each of them."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Collection

from onoma.text.scripts import script_pattern

logger = logging.getLogger("onoma")

LANGUAGE_SCRIPTS = {"en": "Latin", "zh": "Han"}
MIN_SHARE = 0.1
"""The share of letters from which a script that is not covered is reported; single words in it are not."""
MIN_LETTERS = 5
LONG_TEXT = 200
"""Letters from which the language of a text is guessed."""
MIN_FUNCTION_WORDS = 0.1
"""The share of function words among the words of a text from which it counts as written in their language."""

MIN_DIFFERENT_WORDS = 4
"""Different function words that a text must have to count as written in their language."""

_READ_CHARACTERS = 2000  # of a text, to guess its language
_LATIN_WORD = re.compile(r"[^\W\d_]+")
# Frequent words that are rare in English. Some languages share words; the one with the most hits is named.
_FUNCTION_WORDS = {
    "English": "the of and to in is that for with was it on as are by at from be this have a an not he his or you",
    "German": "der die und das den von zu mit sich des auf ist im dem nicht ein eine als auch es wird einer wurde bei",
    "French": "le la les des et du est dans une pour qui que au sur par pas avec il elle ce cette sont aux ses été",
    "Spanish": "el la los las y del que en una un por con para se es su al lo como más fue pero sus entre este",
    "Italian": "il la di che e del della per un una non sono con alla dei nel più anche gli ha delle si da",
    "Portuguese": "o os da dos das e que em um uma para com não por na se foi ao mais como pelo sua é",
    "Dutch": "het een van en de dat zijn niet voor op te aan er werd ook bij naar uit deze heeft maar wordt",
    "Polish": "w z na się nie jest że po od przez jako oraz był jego za które który dla są było roku ale",
    "Swedish": "och att det som en av för är med på den till inte har ett om han var från sig",
    "Danish or Norwegian": "og det som en av af er med på den til ikke har et om han var fra ble blev sig seg",
    "Czech": "v se na je že z byl pro jako jeho které který ve od s jsou při také podle roku ale",
    "Romanian": "și de în la cu din pe o este un nu mai pentru fost sau prin lui ale ca după fi",
    "Turkish": "ve bir bu da de için ile olarak olan daha gibi çok en ne sonra kadar değil olduğu ise tarafından",
    "Finnish": "ja oli ei se että hän mutta myös joka kun ovat sen tai kuin jonka sekä vuonna mukaan ollut",
    "Hungarian": "az és hogy nem egy volt de csak ez mint azt már vagy még volna után lett ha",
    "Indonesian or Malay": "yang dan di untuk dengan pada dari ini itu dalam tidak adalah ke oleh akan sebagai juga",
    "Vietnamese": "và của là có được trong cho không với các một những đã người này khi đến từ năm ở về",
}
_LANGUAGES = {name: frozenset(words.split()) for name, words in _FUNCTION_WORDS.items()}
_warned: set[str] = set()  # scripts and languages, in this process


class Coverage:
    """What the models of a folder were made for."""

    def __init__(self, scripts: Collection[str], *, english: bool) -> None:
        """Covered scripts, and whether texts that no other model reads should be in English."""
        self.pattern, self.english = script_pattern(sorted(scripts)), english

    def check(self, text: str, counts: Counter[str], *, is_other: bool) -> None:
        """Warn of a text, given with the counts of its letters; `is_other`: no model for a script reads it."""
        letters = counts.total()
        if letters - count_letters(self.pattern, counts) > MIN_SHARE * letters:
            self._check_scripts(counts)
        elif is_other and self.english and letters >= LONG_TEXT:
            language = guess_language(text)
            if language not in ("English", None):
                _warn_once(f"a text that seems to be {language}", str(language))

    def _check_scripts(self, counts: Counter[str]) -> None:
        scripts: Counter[str] = Counter()
        for letter, count in counts.items():
            if not self.pattern.match(letter):
                scripts[unicodedata.name(letter, "unknown").split()[0].capitalize()] += count
        for script, count in scripts.items():
            if count >= MIN_LETTERS and count > MIN_SHARE * counts.total():
                _warn_once(f"a text with letters of the script {script}", script)


def count_letters(pattern: re.Pattern[str], counts: Counter[str]) -> int:
    """How many of the counted letters match a pattern."""
    return sum(counts[letter] for letter in pattern.findall("".join(counts)))


def guess_language(text: str) -> str | None:
    """The language in Latin script whose function words are clearly the most frequent; None if there is none.

    >>> guess_language("Der Zug nach Berlin ist nicht mit dem Wagen auf der Brücke zu verwechseln.")
    'German'
    """
    start = text[:_READ_CHARACTERS].lower()
    if " the " in start and " of " in start:
        return "English"
    words = Counter(_LATIN_WORD.findall(start))
    hits = {name: sum(words[word] for word in own) for name, own in _LANGUAGES.items()}
    best = max(hits, key=lambda name: hits[name])
    frequent = hits[best] >= MIN_FUNCTION_WORDS * words.total()
    different = len(words.keys() & _LANGUAGES[best]) >= MIN_DIFFERENT_WORDS
    clear = best == "English" or hits[best] > 2 * hits["English"]
    return best if frequent and different and clear else None


def _warn_once(what: str, key: str) -> None:
    if key not in _warned:
        _warned.add(key)
        logger.warning(
            "%s is read by a model that was not made for it: little may be found in it, and scores are not reliable",
            what,
        )
