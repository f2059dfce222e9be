"""Folding of Chinese text: traditional to simplified characters, full width to half width, one character at a time.

A folded text has the length of the original one, so that offsets in one are offsets in the other. The table of
characters (simplified.txt) is made from the character tables of OpenCC 1.4.2 (https://github.com/BYVoid/OpenCC,
Apache License 2.0) by recipes/text/simplified.py. It has one simplified form for each character. Characters that are
usual in simplified text stay as they are, such as 乾 in 乾隆 or 著 in 著名, even if they have other forms in other
words.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint32]

PAIRS = Path(__file__).with_name("simplified.txt")
CHINESE_PUNCTUATION = "，：；！？（）"
"""Full-width marks that are usual in Chinese text."""

_BLOCK = 1 << 17  # characters that are folded together, in the processor's cache
_CODE_POINTS = 0x110000
_FULL_WIDTH = slice(0xFF01, 0xFF5F)  # the ASCII characters from "!" to "~"
_HAVE_CASE = 0x1F000  # characters from here on have none


def fold_chinese(text: str, *, case: bool = False, punctuation: bool = True) -> str:
    """The text with simplified characters and half-width letters, digits, signs and spaces, of the same length.

    Args:
        case: fold the case of letters, too, except of those that would become several ("ß").
        punctuation: fold the full-width marks in `CHINESE_PUNCTUATION`, too.

    >>> fold_chinese("臺灣大學ＡＩ中心，２０２４年")
    '台湾大学AI中心,2024年'
    """
    if text.isascii():
        return text.lower() if case else text
    table = folding_table(case, punctuation)
    blocks = (text[start : start + _BLOCK] for start in range(0, len(text), _BLOCK))
    return "".join(table.take(code_points(block)).tobytes().decode("utf-32-le", "surrogatepass") for block in blocks)


def code_points(text: str) -> NDArray[np.intp]:
    """The code points of a text, as indexes."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.intp)


def simplified_characters() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The code points of traditional characters, and those of their simplified forms."""
    traditional, simplified = PAIRS.read_text("utf-8").splitlines()
    return code_points(traditional), code_points(simplified)


@lru_cache(maxsize=4)
def folding_table(case: bool, punctuation: bool) -> Codes:
    """What each code point becomes."""
    table = np.arange(_CODE_POINTS, dtype=np.uint32)
    table[_FULL_WIDTH] = np.arange(ord("!"), ord("~") + 1)
    table[ord("\u3000")] = ord(" ")
    if not punctuation:
        marks = code_points(CHINESE_PUNCTUATION)
        table[marks] = marks
    traditional, simplified = simplified_characters()
    table[traditional] = simplified
    if case:
        lower = np.arange(_CODE_POINTS, dtype=np.uint32)
        folded = (chr(code).casefold() for code in range(_HAVE_CASE))
        lower[:_HAVE_CASE] = [ord(one) if len(one) == 1 else code for code, one in enumerate(folded)]
        table = lower[table]
    table.setflags(write=False)  # it is shared
    return table
