"""Full-width letters and digits, which are read as half-width ones: "ＩＢＭ" is "IBM", "３．５" is "3.5"."""

from __future__ import annotations

import re

_ALPHANUMERIC = "[０-９Ａ-Ｚａ-ｚ]"
_SIGN = (
    "[＂-＇＊＋－-／＜-＞＠［-｀｛-～]|(?<=[０-９])[，：](?=[０-９])|：(?=／／)"  # without punctuation of Chinese text
)
_RUN = re.compile(f"{_ALPHANUMERIC}(?:(?:{_ALPHANUMERIC}|{_SIGN})*{_ALPHANUMERIC})?．?")
_HALF_WIDTH = {full: full - ord("！") + ord("!") for full in range(ord("！"), ord("～") + 1)}


def fold_width(text: str) -> str:
    """The text with half-width letters and digits, and half-width signs between those that were full-width.

    It has the length of the original text. Full-width signs elsewhere stay as they are, because they are the usual
    punctuation of Chinese text; so do those that would end a clause. A full stop directly behind is folded, too.

    >>> fold_width("ＩＢＭ公司，３．５％，１２：３０，ｕｓｅｒ＠ａ．ｃｏｍ")
    'IBM公司，3.5％，12:30，user@a.com'
    """
    return text if text.isascii() else _RUN.sub(_fold_run, text)


def _fold_run(run: re.Match[str]) -> str:
    return run.group().translate(_HALF_WIDTH)
