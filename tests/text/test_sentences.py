"""Sentence boundaries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.text import segment, sentence_starts


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Dr. No came. He left! Why?", ["Dr", "He", "Why"]),
        ("J. Smith paid 3.5 euros. “Fine.” She went.", ["J", "“", "She"]),
        ("他来了。她走了！好", ["他", "她", "好"]),
        ("Title\n\nFirst line\ngoes on", ["Title", "First"]),
        ("", []),
    ],
)
def test_the_first_words_of_sentences_are_found(text: str, starts: list[str]) -> None:
    words = segment(text)
    assert [text[slice(*words[i])] for i in sentence_starts(text, words)] == starts


@given(st.text(alphabet=list("aB1. !?\n。”)’\u061f"), max_size=40))
def test_starts_are_increasing_and_include_the_first_word(text: str) -> None:
    words = segment(text)
    starts = sentence_starts(text, words).tolist()
    assert starts == sorted(set(starts))
    assert starts[:1] == [0][: len(words)]
    assert all(0 <= start < len(words) for start in starts)
