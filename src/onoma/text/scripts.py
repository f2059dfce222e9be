"""Writing systems: which scripts the letters of a text belong to."""

from __future__ import annotations

import re
from collections.abc import Sequence

SCRIPTS = {  # ranges of code points with all letters in current use; historical blocks are left out
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Devanagari": "\u0900-\u097f\ua8e0-\ua8ff",
    "Greek": "\u0370-\u03e1\u03f0-\u03ff\u1f00-\u1fff",
    "Han": "\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc",
    "Hiragana": "\u3041-\u309f",
    "Katakana": "\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Latin": "A-Za-zªº\u00c0-\u02b8\u1d00-\u1d25\u1d6b-\u1d77\u1d79-\u1dbe\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff"
    "\uab30-\uab64\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
}


def script_pattern(scripts: Sequence[str]) -> re.Pattern[str]:
    """A pattern that matches one letter of any of the scripts.

    >>> script_pattern(["Han", "Hiragana"]).findall("東京 to ゆき")
    ['東', '京', 'ゆ', 'き']
    """
    return re.compile(f"[{''.join(SCRIPTS[script] for script in scripts)}]")
