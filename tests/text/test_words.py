"""Words: kinds of words, exact coverage, and joining of tokens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.text.words import MAX_WORD_LENGTH, join, segment, split_at

from .repeated import REPEATED, WORST, in_linear_time


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in segment(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tom flew to Paris.", "Tom|flew|to|Paris|."),
        ("Paris-based state-of-the-art", "Paris|-|based|state|-|of|-|the|-|art"),
        ("John's dog and O'Brien's don't", "John|'s|dog|and|O'Brien|'s|don't"),
        ("l’avion, drivers’ He’ll", "l’avion|,|drivers|’|He|’ll"),
        ("write to a.b+c@mail.example.org!", "write|to|a.b+c@mail.example.org|!"),
        ("(see https://example.org/a_(b)?x=1,2).", "(|see|https://example.org/a_(b)?x=1,2|)|."),
        ("网址https://example.cn/路 www.example.org.", "网|址|https://example.cn/|路|www.example.org|."),
        ("5mg, 3.5 kg, 1,000.50, 10:30, 20%", "5|mg|,|3.5|kg|,|1,000.50|,|10:30|,|20|%"),
        ("at 10:30am, 7pm", "at|10:30|am|,|7|pm"),
        ("1990,1995 and 1990s, p53, 4K", "1990|,|1995|and|1990s|,|p53|,|4K"),
        ("the U.S. and J.R.R. Tolkien. End", "the|U.S.|and|J.R.R.|Tolkien|.|End"),
        ("我爱iPhone手机2020年", "我|爱|iPhone|手|机|2020|年"),
        ("カタカナとひらがな", "カ|タ|カ|ナ|と|ひ|ら|が|な"),
        ("서울에서 만나요", "서울에서|만나요"),
        ("cafe\u0301 हिन्दी में", "cafe\u0301|हिन्दी|में"),
        ("שלום עולם, مرحبا بالعالم", "שלום|עולם|,|مرحبا|بالعالم"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("hi 👨‍👩‍👧🇩🇪👍🏽1️⃣❤️!", "hi|👨‍👩‍👧|🇩🇪|👍🏽|1️⃣|❤️|!"),
        ("snake_case #tag @user", "snake_case|#|tag|@|user"),
        ("𝐀𝐁 𠀀𠀁", "𝐀𝐁|𠀀|𠀁"),
        ("服５ｍｇ，约３．５元，２０：３０见", "服|５|ｍｇ|，|约|３．５|元|，|２０：３０|见"),
        ("写信到ｕｓｅｒ＠ａ．ｃｏｍ，２４小时", "写|信|到|ｕｓｅｒ＠ａ．ｃｏｍ|，|２４|小|时"),
        (
            "ｈｔｔｐ：／／ａ．ｃｎ／ｂ，Ｕ．Ｓ．　Ｏ＇Ｎｅｉｌｌ＇ｓ",
            "ｈｔｔｐ：／／ａ．ｃｎ／ｂ|，|Ｕ．Ｓ．|Ｏ＇Ｎｅｉｌｌ|＇ｓ",
        ),
        ("时间20：30，约2．35亿", "时|间|20|：|30|，|约|2|．|35|亿"),
    ],
)
def test_words_of_many_kinds_and_scripts(text: str, expected: str) -> None:
    assert words_of(text) == expected.split("|")


def test_thai_is_cut_by_character_with_its_marks() -> None:
    assert words_of("ดีมั้ย") == ["ดี", "มั้", "ย"]


def assert_covered(text: str) -> None:
    words = in_linear_time(lambda: segment(text), len(text))
    covered = np.zeros(len(text), int)
    previous = 0
    for start, end in words.tolist():
        assert previous <= start < end <= start + 2 * MAX_WORD_LENGTH
        covered[start:end] += 1
        previous = end
    assert covered.tolist() == [0 if character.isspace() else 1 for character in text]


@given(st.text())
def test_words_cover_exactly_the_characters_that_are_not_white_space(text: str) -> None:
    assert_covered(text)


@settings(max_examples=60)
@given(REPEATED)
def test_repeated_patterns_are_covered_in_linear_time(text: str) -> None:
    assert_covered(text)


@pytest.mark.parametrize("text", WORST, ids=lambda text: repr(text[:20]))
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    assert_covered(text)


def test_a_url_ends_before_punctuation_and_brackets_of_the_sentence() -> None:
    assert words_of("(see http://a.example/x(1)[2].].)...")[2] == "http://a.example/x(1)[2]"
    assert words_of("www.。www.example.org")[-1] == "www.example.org"


ODD = st.text(alphabet=list("ab1.,:@'’-_ /(\n\u200d\u0301北โ👨🇩\ufe0fhtps"), max_size=60)


@given(ODD, ODD)
def test_a_space_separates_the_words_of_two_texts(left: str, right: str) -> None:
    assert words_of(f"{left} {right}") == words_of(left) + words_of(right)


def test_a_long_text_has_the_words_of_its_parts() -> None:
    sentence = "Ann's 5mg of α-tocopherol, 北京 U.S.中 https://a.example/b and 🇩🇪. "
    assert words_of(sentence * 12_000) == words_of(sentence) * 12_000


@pytest.mark.parametrize("unit", ["a", "1,", "a.b-", "@", "e\u0301", "http://", "'s", "\u200d👨", "1.", "("])
def test_repeated_characters_give_words_of_limited_length(unit: str) -> None:
    words = segment(unit * 20_000)
    assert (words[:, 1] - words[:, 0]).max() <= 2 * MAX_WORD_LENGTH


@given(st.text(), st.lists(st.integers(0, 40)))
def test_split_at_splits_words_at_the_cuts_inside_them(text: str, cuts: list[int]) -> None:
    words = segment(text)
    expected = []
    for start, end in words.tolist():
        edges = [start, *sorted({cut for cut in cuts if start < cut < end}), end]
        expected += [[a, b] for a, b in pairwise(edges)]
    assert split_at(words, np.array(cuts, int)).tolist() == expected


@given(st.lists(st.text(min_size=1), max_size=10))
def test_join_returns_the_offsets_of_every_token(tokens: list[str]) -> None:
    text, offsets = join(tokens)
    assert [text[start:end] for start, end in offsets] == tokens


def test_join_puts_no_space_between_chinese_characters() -> None:
    assert join(list("北京A B"))[0] == "北京A B"
    assert join(["x", "y"])[0] == "x y"
    assert join(["北京", "大学"])[0] == "北京 大学"
