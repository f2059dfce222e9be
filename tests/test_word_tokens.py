from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Extractor
from onoma.text import segment
from onoma.word_tokens import WordTokens


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in segment(text)]


@given(st.lists(st.text(max_size=40), max_size=5))
def test_remembered_tokens_are_those_of_the_tokenizer(ner: Extractor, texts: list[str]) -> None:
    subwords = ner.backend.subwords
    tokens = WordTokens(subwords)
    for text in texts * 2:
        pieces, (expected,) = tokens.split(words_of(text)), subwords.split([(text, segment(text))])
        assert pieces.ids.tolist() == expected.ids.tolist()
        assert pieces.counts.tolist() == expected.counts.tolist()


def test_a_word_is_tokenised_once(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = WordTokens(ner.backend.subwords)
    learned: list[str] = []
    learn = tokens._learn
    monkeypatch.setattr(tokens, "_learn", lambda words: learned.extend(words) or learn(words))
    tokens.split(["Tom", "saw", "Tom"])
    tokens.split(["Ann", "saw", "Tom"])
    assert sorted(learned) == ["Ann", "Tom", "saw"]


def test_memory_is_limited(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.word_tokens.MOST_WORDS", 10)
    tokens = WordTokens(ner.backend.subwords)
    for number in range(100):
        words = [f"{number}a", f"{number}b", "Tom"]
        assert tokens.split(words).counts.tolist() == WordTokens(ner.backend.subwords).split(words).counts.tolist()
        assert len(tokens._numbers) <= 13


def test_half_of_a_surrogate_pair_is_read_as_one_character(ner: Extractor) -> None:
    text = "Tom\ud800 \udc00 flew to Paris ."
    entities = ner.extract(text, ["city"])
    assert [(one.start, one.text) for one in entities] == [(text.index("Paris"), "Paris")]


def test_threads_learn_together(ner: Extractor) -> None:
    tokens = WordTokens(ner.backend.subwords)
    texts = [[f"{number % 7}x{place}" for place in range(number, number + 50)] for number in range(64)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(tokens.split, texts))
    for words, pieces in zip(texts, results, strict=True):
        expected = WordTokens(ner.backend.subwords).split(words)
        assert np.array_equal(pieces.ids, expected.ids)
        assert np.array_equal(pieces.counts, expected.counts)
