"""Full-width letters and digits as half-width ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.text.chinese import CHINESE_PUNCTUATION
from onoma.text.width import fold_width

from .repeated import in_linear_time

FULL_WIDTH = "".join(map(chr, range(ord("！"), ord("～") + 1)))
TEXTS = st.text(st.sampled_from(FULL_WIDTH + "０９ａＺ．，：／" * 3 + "北a1.,: \u3000。ｶ") | st.characters())


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ＩＢＭ公司", "IBM公司"),
        ("用量３．５％，每日２０：３０服", "用量3.5％，每日20:30服"),
        ("１，０００元", "1,000元"),
        ("ｕｓｅｒ＠ａ．ｃｏｍ", "user@a.com"),
        ("ｈｔｔｐｓ：／／ａ．ｃｏｍ／ｂ＿ｃ", "https://a.com/b_c"),
        ("Ｃ＋＋、Ｒ＆Ｄ", "C＋＋、R&D"),
        ("Ｕ．Ｓ．　Ｎａｖｙ．", "U.S.　Navy."),
    ],
)
def test_letters_digits_and_signs_between_them_are_folded(text: str, folded: str) -> None:
    assert fold_width(text) == folded


@pytest.mark.parametrize(
    "text",
    [
        "他说：“好！”（真的？）然后走了；她，没有。",
        "比分是20：30，约合2．35亿元，增长50％～60％。",  # half-width digits: the signs are ordinary Chinese
        "－／＋＝．．．",
        "ｶﾀｶﾅ　とカタカナ",
        "plain ASCII, 3.5%",
    ],
)
def test_ordinary_punctuation_stays(text: str) -> None:
    assert fold_width(text) == text


def test_marks_that_end_a_clause_stay_between_full_width_letters() -> None:
    assert fold_width("ＩＢＭ，ＨＰ；Ｓｕｎ！Ｄｅｌｌ？（Ａ）：Ｂ") == "IBM，HP；Sun！Dell？（A）：B"


@given(TEXTS)
def test_the_length_stays_and_no_full_width_letter_or_digit_is_left(text: str) -> None:
    folded = fold_width(text)
    assert len(folded) == len(text)
    assert not re.search("[０-９Ａ-Ｚａ-ｚ]", folded)
    assert all(
        one == other or (one in FULL_WIDTH and ord(one) - ord(other) == ord("！") - ord("!"))
        for one, other in zip(text, folded, strict=True)
    )
    kept = set(CHINESE_PUNCTUATION) - set("，：")
    assert all(other == one for one, other in zip(text, folded, strict=True) if one in kept)


@pytest.mark.parametrize("part", ["Ａ＝", "＝", "Ａ北", "Ａ", "１，", "：／／"])
def test_time_is_linear(part: str) -> None:
    text = "Ａ" + part * 50_000
    assert len(in_linear_time(lambda: fold_width(text), len(text))) == len(text)
