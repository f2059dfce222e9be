"""Writing systems: each letter belongs to the script that Unicode gives it."""

from __future__ import annotations

import unicodedata

import pytest

from onoma.text.scripts import SCRIPTS, script_pattern

SAMPLES = {
    "Arabic": "مرحبا بالعالم پچژ گ",
    "Cyrillic": "Привет, Єва Ґанок Ћуприја",
    "Devanagari": "हिन्दी में",
    "Greek": "Αθήνα ᾠδή",
    "Han": "漢字汉字々〇𠀀",
    "Hangul": "서울에서",
    "Hiragana": "ひらがな",
    "Katakana": "カタカナ ﾃｽﾄ",
    "Latin": "Zoë Łódź ǅ ﬁ Ａ",
    "Thai": "ดีมั้ย",
}
PREFIXES = {"Han": ("CJK", "IDEOGRAPHIC", "HANGZHOU", "VERTICAL IDEOGRAPHIC"), "Latin": ("LATIN", "FULLWIDTH LATIN")}
"""How the Unicode names of letters start, if not with the name of the script."""


@pytest.mark.parametrize("script", SCRIPTS)
def test_letters_match_their_own_script_and_no_other(script: str) -> None:
    letters = [character for character in SAMPLES[script] if unicodedata.category(character)[0] == "L"]
    assert letters
    for other in SCRIPTS:
        found = script_pattern([other]).findall("".join(letters))
        assert found == (letters if other == script else [])


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_letters_of_a_script_have_its_unicode_name(script: str) -> None:
    pattern = script_pattern([script])
    letters = [character for character in map(chr, range(0x110000)) if pattern.match(character)]
    names = [unicodedata.name(one) for one in letters if unicodedata.category(one) in ("Lu", "Ll", "Lo")]
    prefixes = PREFIXES.get(script, (script.upper(), f"HALFWIDTH {script.upper()}"))
    others = {name for name in names if not name.startswith(prefixes)}
    assert others <= {"FEMININE ORDINAL INDICATOR", "MASCULINE ORDINAL INDICATOR"}  # ª and º are Latin letters


def test_digits_punctuation_and_spaces_belong_to_no_script() -> None:
    assert script_pattern(list(SCRIPTS)).findall("0123 .,;:!?\"'()-–—“”。，、！？ \n\t€$%") == []


def test_several_scripts_are_matched_together() -> None:
    assert "".join(script_pattern(["Hiragana", "Katakana"]).findall("東京タワーへ行く to go")) == "タワーへく"
