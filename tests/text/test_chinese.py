"""Folding of traditional and full-width characters, one to one."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.text.chinese import CHINESE_PUNCTUATION, PAIRS, fold_chinese, folding_table

CHARACTERS = st.one_of(
    st.characters(), st.sampled_from("臺灣後於麵乾著瞭夥裡衞Ａｚ９，（　ßİǅΣſ\ud800\udc00豈\U0002f800")
)
TEXTS = st.text(CHARACTERS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("她說臺灣大學的圖書館後面開了一家麵館。", "她说台湾大学的图书馆后面开了一家面馆。"),
        ("張醫師於香港衞生署擔任顧問", "张医师于香港卫生署担任顾问"),
        ("廣東話裡這個詞與國語不同", "广东话里这个词与国语不同"),
        ("夥計們發現這間工廠為許多種機車製造輪胎", "伙计们发现这间工厂为许多种机车制造轮胎"),
    ],
)
def test_traditional_becomes_simplified(text: str, expected: str) -> None:
    assert fold_chinese(text) == expected


@pytest.mark.parametrize("text", ["乾隆皇帝著有诗集、一目瞭然", "哪吒闹海", "陶喆与甯浩", "他们后来干了一杯"])
def test_characters_of_simplified_text_stay(text: str) -> None:
    assert fold_chinese(text) == text


def test_full_width_becomes_half_width() -> None:
    assert fold_chinese("ＡＢＣ－１２３　（ｘｙｚ）％，！") == "ABC-123 (xyz)%,!"
    assert fold_chinese("“引号”、《书名》。ｶﾞ") == "“引号”、《书名》。ｶﾞ"


def test_chinese_punctuation_stays_on_request() -> None:
    assert fold_chinese("臺北，（ＩＴ）：！", punctuation=False) == "台北，（IT）：！"
    assert fold_chinese(CHINESE_PUNCTUATION, punctuation=False) == CHINESE_PUNCTUATION


def test_case_is_folded_on_request_where_the_length_stays() -> None:
    assert fold_chinese("ＷｉＦｉ Größe") == "WiFi Größe"
    assert fold_chinese("ＷｉＦｉ GrößE ΣΑΣ İ", case=True) == "wifi größe σασ İ"


@given(TEXTS, st.booleans(), st.booleans())
def test_the_length_stays_and_folding_twice_changes_nothing(text: str, case: bool, punctuation: bool) -> None:
    folded = fold_chinese(text, case=case, punctuation=punctuation)
    assert len(folded) == len(text)
    assert fold_chinese(folded, case=case, punctuation=punctuation) == folded


@given(TEXTS, TEXTS)
def test_characters_are_folded_one_by_one(one: str, other: str) -> None:
    assert fold_chinese(one + other) == fold_chinese(one) + fold_chinese(other)


def test_texts_longer_than_a_block_are_folded_as_a_whole() -> None:
    assert fold_chinese("灣" * 300_000 + "\U0001f600") == "湾" * 300_000 + "\U0001f600"


@pytest.mark.parametrize("case", [False, True])
@pytest.mark.parametrize("punctuation", [False, True])
def test_no_character_becomes_one_that_would_be_folded(case: bool, punctuation: bool) -> None:
    table = folding_table(case, punctuation)
    assert np.array_equal(table[table], table)


def test_the_table_has_two_aligned_lines_of_ideographs() -> None:
    traditional, simplified = PAIRS.read_text("utf-8").splitlines()
    assert 2500 <= len(traditional) == len(simplified) <= 4000
    assert len(set(traditional)) == len(traditional)
    assert not set(traditional) & set(simplified)
    assert traditional.isalpha()
    assert simplified.isalpha()


def test_folding_is_fast() -> None:
    text = "她說臺灣大學的圖書館後面，開了一家ＫＴＶ。" * 50_000
    fold_chinese(text)
    start = time.process_time()
    fold_chinese(text)
    assert len(text.encode()) / 1e6 / (time.process_time() - start) > 20
