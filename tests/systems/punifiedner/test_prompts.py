"""Prompts and answers: the forms of equations 1 and 2, with the tokens of the text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from onoma import OnomaError
from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.punifiedner.answers import fold
from onoma.systems.punifiedner.prompts import PromptTokenizer, Source, reserve_symbols
from onoma.text.words import segment
from tiny_t5 import SENTINELS, t5_tokenizer

PROMPTS = PromptTokenizer(WordTokenizer(t5_tokenizer(["Tom flew to New York person city"])))
PERSON, CITY = PROMPTS.type_ids(["person", "city"])


def read(text: str) -> Source:
    return PROMPTS.read([text], [segment(text)])[0]


def pieces(source: Source) -> list[str | None]:
    return [PROMPTS.spaced.tokenizer.id_to_token(one) for one in source.ids.tolist()]


def test_an_answer_reads_as_in_the_paper() -> None:
    source = read("Tom flew to New York.")
    ids = PROMPTS.answer([(CITY, [source.words(3, 4)]), (PERSON, [source.words(0, 0)])], 99)
    assert PROMPTS.show(ids) == "((city):(New York),(person):(Tom))"
    assert PROMPTS.show(PROMPTS.answer([(CITY, [])], 99)) == "((city):(NULL))"
    two = PROMPTS.answer([(PERSON, [source.words(0, 0), source.words(4, 4)])], 99)
    assert PROMPTS.show(two) == "((person):(Tom),(person):(York))"


def test_a_prompt_has_a_marker_before_each_type_and_before_the_text() -> None:
    entity, text = PROMPTS.symbols.entity, PROMPTS.symbols.text
    assert PROMPTS.prompt([CITY, PERSON]) == [entity, *CITY, entity, *PERSON, text]


def test_an_answer_that_is_too_long_has_whole_pairs_and_no_end() -> None:
    whole = PROMPTS.answer([(CITY, [(7,)]), (PERSON, [(8,)])], 99)
    cut = PROMPTS.answer([(CITY, [(7,)]), (PERSON, [(8,)])], len(whole) - 2)
    assert cut == PROMPTS.answer([(CITY, [(7,)])], 99)[:-1]


def test_words_that_follow_directly_have_no_mark_of_a_word_start() -> None:
    assert pieces(read("Tom (York)")) == ["▁Tom", "▁", "(", "Y", "o", "r", "k", ")"]
    assert pieces(read("York-York"))[:2] == ["▁York", "-"]


def test_texts_of_a_batch_are_tokenised_as_alone() -> None:
    texts = ["Tom flew.", "", "to New York (York)", "York"]
    together = PROMPTS.read(texts, [segment(text) for text in texts])
    for text, source in zip(texts, together, strict=True):
        assert source.ids.tolist() == read(text).ids.tolist()
        assert source.edges.tolist() == read(text).edges.tolist()
        assert len(source.edges) == len(segment(text)) + 1


@pytest.mark.parametrize("text", [*SENTINELS, "x <extra_id_2> y"])
def test_no_text_becomes_a_reserved_token(text: str) -> None:
    assert not set(read(text).ids.tolist()) & set(PROMPTS.symbols)
    assert not set(PROMPTS.type_ids([text])[0]) & set(PROMPTS.symbols)


def test_ordinary_words_that_are_reserved_become_unknown() -> None:
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"extra{number}" for number in range(6)), "a"]
    tokenizer = Tokenizer(WordPiece({name: number for number, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    prompts = PromptTokenizer(WordTokenizer(tokenizer))
    assert prompts.symbols == (4, 5, 6, 7, 8)
    assert prompts.read(["a extra1 extra5"], [segment("a extra1 extra5")])[0].ids.tolist() == [10, 1, 9]
    assert prompts.type_ids(["a", "extra1"]) == [(10,), (1,)]


def test_a_vocabulary_without_spare_tokens_is_refused() -> None:
    with pytest.raises(OnomaError, match="no tokens to reserve for prompts"):
        reserve_symbols(Tokenizer(WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]")))


@given(st.text(alphabet="Tomw Yk()-.,'\n19", max_size=40), st.data())
def test_any_run_of_words_can_be_read_back_from_its_tokens(text: str, data: st.DataObject) -> None:
    words, source = segment(text), read(text)
    if not len(words):
        return
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    expected = text[words[first, 0] : words[last, 1]]
    assert fold(PROMPTS.strings([source.words(first, last)])[0]) == fold(expected)
    assert np.array_equal(source.ids, np.concatenate([source.words(word, word) for word in range(len(words))]))
