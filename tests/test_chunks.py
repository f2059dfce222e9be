from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing

from onoma import OnomaError
from onoma.chunks import chunks, line_windows, tokenise
from onoma.subwords import Subwords
from onoma.text import cut_windows, segment, sentence_starts
from onoma.word_tokens import WordTokens

TEXTS = st.lists(st.text("ab é北𝔘. \n", max_size=60), max_size=6)


def byte_tokenizer() -> Subwords:
    """One token a byte, as byte-level encoders have it for characters they have never seen."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<pad>", "<unk>", "<s>", "</s>", *alphabet])}
    tokenizer = Tokenizer(BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)])
    return Subwords(tokenizer)


BYTES = WordTokens(byte_tokenizer())


@given(TEXTS, st.integers(4, 20))
def test_every_byte_of_every_word_becomes_a_token(texts: list[str], budget: int) -> None:
    line, pieces = tokenise(texts, BYTES, budget)
    assert pieces.counts.max(initial=0) <= budget
    assert pieces.counts.sum() == len(pieces.ids) == len("".join("".join(texts).split()).encode())
    for document, text in enumerate(texts):
        words = line.words_of(document)
        assert "".join(text[start:end] for start, end in words) == "".join(text.split())
        assert set(segment(text).ravel()) <= set(words.ravel())  # words are only ever cut further


@given(TEXTS, st.integers(4, 20), st.integers(0, 5))
def test_windows_are_those_of_each_document_alone(texts: list[str], budget: int, overlap: int) -> None:
    line, pieces = tokenise(texts, BYTES, budget)
    windows = line_windows(line, pieces.counts, budget, overlap)
    expected = []
    for document, text in enumerate(texts):
        words, begin = line.words_of(document), line.begins[document]
        counts = pieces.counts[begin : begin + len(words)]
        own = cut_windows(counts, budget, overlap, sentence_starts(text, words))
        expected += list(zip(own.start + begin, own.end + begin, strict=True))
    assert list(zip(windows.start, windows.end, strict=True)) == expected


@given(TEXTS)
def test_words_know_their_document(texts: list[str]) -> None:
    line, _ = tokenise(texts, BYTES, 20)
    owners = [number for number in range(len(texts)) for _ in line.words_of(number)]
    assert line.document(np.arange(len(line.words))).tolist() == owners


def test_many_words_are_tokenised_in_parts_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "a bb ccc " * 7, "", "", "dd e", "北京 " * 5, ""]
    _, whole = tokenise(texts, BYTES, 20)
    monkeypatch.setattr("onoma.chunks._TOGETHER", 3)
    _, parts = tokenise(texts, BYTES, 20)
    assert parts.ids.tolist() == whole.ids.tolist()
    assert parts.counts.tolist() == whole.counts.tolist()


def test_a_character_that_fits_into_no_window_is_an_error() -> None:
    with pytest.raises(OnomaError, match="raise its max_tokens"):
        tokenise(["𝔘"], BYTES, 3)


def test_chunks_are_limited_in_texts_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.chunks.MOST_CHARACTERS", 10)
    texts = ["a", "b", "c", "d" * 100, "e", "f" * 9, "g"]
    assert list(chunks(iter(texts), 3)) == [["a", "b", "c"], ["d" * 100], ["e", "f" * 9], ["g"]]
    assert list(chunks([], 3)) == []
