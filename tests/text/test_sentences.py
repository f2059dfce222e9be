"""Sentence boundaries."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.text import segment, sentence_starts

from .repeated import REPEATED, WORST, in_linear_time


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Dr. No came. He left! Why?", ["Dr", "He", "Why"]),
        ("J. Smith paid 3.5 euros. “Fine.” She went.", ["J", "“", "She"]),
        ("他来了。她走了！好", ["他", "她", "好"]),
        ("Title\n\nFirst line\ngoes on", ["Title", "First"]),
        ("Well... He left.. She (too?!) went. J.. Smith", ["Well", "He", "She", "went", "J", "Smith"]),
        ("方法有效．结果见表３．５．他说“好”．．．她走了", ["方", "结", "她"]),
        ("Ｄｒ．　Ｎｏ　ｃａｍｅ．　Ｈｅ　ｐａｉｄ　３．５．", ["Ｄｒ", "Ｈｅ"]),
        ("增长2．35亿，详见１．背景", ["增"]),
        ("", []),
    ],
)
def test_the_first_words_of_sentences_are_found(text: str, starts: list[str]) -> None:
    words = segment(text)
    assert [text[slice(*words[i])] for i in sentence_starts(text, words)] == starts


def assert_valid_starts(text: str) -> None:
    words = segment(text)
    starts = in_linear_time(lambda: sentence_starts(text, words), len(text)).tolist()
    assert starts == sorted(set(starts))
    assert starts[:1] == [0][: len(words)]
    assert all(0 <= start < len(words) for start in starts)


@given(st.text(alphabet=list("aB1. !?\n。”)’\u061f"), max_size=40))
def test_starts_are_increasing_and_include_the_first_word(text: str) -> None:
    assert_valid_starts(text)


@settings(max_examples=60)
@given(REPEATED)
def test_sentences_of_repeated_patterns_are_found_in_linear_time(text: str) -> None:
    assert_valid_starts(text)


@pytest.mark.parametrize("text", WORST, ids=lambda text: repr(text[:20]))
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    assert_valid_starts(text)
