from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece

from onoma import EntityType, Extractor, OnomaError, load
from onoma.inputs.tokenizer import WordTokenizer, normalize_unknown_signs
from onoma.models.hub import EMBEDDED
from onoma.text.width import fold_width
from onoma.text.words import segment
from tiny_t5 import t5_tokenizer


@pytest.fixture(scope="module")
def loaded() -> WordTokenizer:
    """A tokenizer as models have it."""
    return WordTokenizer.load(EMBEDDED / "en")


@pytest.fixture
def fresh(loaded: WordTokenizer) -> WordTokenizer:
    """The same with an empty cache."""
    return WordTokenizer(loaded.tokenizer)


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in segment(text)]


def tokens_of(word: str, tokenizer: WordTokenizer) -> list[int]:
    """The tokens of one word, without a cache."""
    clean = "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in word)
    encoding = tokenizer.tokenizer.encode([fold_width(clean)], is_pretokenized=True, add_special_tokens=False)
    return encoding.ids or [tokenizer.unk]


def assert_tokens(tokenizer: WordTokenizer, words: Sequence[str]) -> None:
    tokens, expected = tokenizer.tokenize(words), [tokens_of(word, tokenizer) for word in words]
    assert tokens.counts.tolist() == [len(ids) for ids in expected]
    assert tokens.ids.tolist() == [token for ids in expected for token in ids]


@given(st.lists(st.text(max_size=40), max_size=5))
def test_cached_tokens_are_those_of_the_tokenizer(loaded: WordTokenizer, texts: list[str]) -> None:
    tokenizer = WordTokenizer(loaded.tokenizer)
    for text in texts * 2:
        assert_tokens(tokenizer, words_of(text))


def test_full_width_words_have_the_tokens_of_half_width_ones(fresh: WordTokenizer) -> None:
    full, half = fresh.tokenize(["ＩＢＭ", "３．５", "ａ＠ｂ．ｃｏｍ"]), fresh.tokenize(["IBM", "3.5", "a@b.com"])
    assert full.ids.tolist() == half.ids.tolist()
    assert full.counts.tolist() == half.counts.tolist()
    assert fresh.encode(["ＩＢＭ的产品"]) == fresh.encode(["IBM的产品"])


def test_chinese_punctuation_keeps_its_own_tokens() -> None:
    tokenizer, marks = WordTokenizer.load(EMBEDDED / "zh"), list("，：；！？（）。％～．")
    expected = [tokenizer.tokenizer.token_to_id(mark) for mark in marks]
    assert None not in expected
    assert tokenizer.tokenize(marks).ids.tolist() == expected
    assert tokenizer.encode(["，："]) == [[tokenizer.cls, *expected[:2], tokenizer.sep]]


def test_many_words_are_tokenised_in_parts(fresh: WordTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.inputs.tokenizer._WORDS_PER_CALL", 5)
    monkeypatch.setattr("onoma.inputs.tokenizer._WORDS_PER_SEQUENCE", 2)
    assert_tokens(fresh, [f"{number}gliding\x00" for number in range(17)] + ["\x00", "\x01"])


def test_a_word_is_tokenised_once(fresh: WordTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenized: list[str] = []
    tokenize = fresh._tokenize
    monkeypatch.setattr(fresh, "_tokenize", lambda words: tokenized.extend(words) or tokenize(words))
    fresh.tokenize(["Tom", "saw", "Tom"])
    fresh.tokenize(["Ann", "saw", "Tom"])
    assert sorted(tokenized) == ["Ann", "Tom", "saw"]


def test_the_cache_is_limited(fresh: WordTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.inputs.tokenizer.MAX_CACHED_WORDS", 10)
    for number in range(100):
        assert_tokens(fresh, [f"{number}a", f"{number}b", "Tom"])
        assert len(fresh._numbers) <= 13


def test_threads_share_a_cache(fresh: WordTokenizer, loaded: WordTokenizer) -> None:
    texts = [[f"{number % 7}x{place}" for place in range(number, number + 50)] for number in range(64)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(fresh.tokenize, texts))
    for words, tokens in zip(texts, results, strict=True):
        expected = WordTokenizer(loaded.tokenizer).tokenize(words)
        assert np.array_equal(tokens.ids, expected.ids)
        assert np.array_equal(tokens.counts, expected.counts)


def test_whole_texts_have_special_tokens_and_are_truncated(loaded: WordTokenizer) -> None:
    short, long = loaded.encode(["a city", "city " * 500], max_tokens=16)
    assert short == [loaded.cls, *tokens_of("a", loaded), *tokens_of("city", loaded), loaded.sep]
    assert long == [loaded.cls, *tokens_of("city", loaded) * 14, loaded.sep]
    assert loaded.encode([]) == []


def test_half_of_a_surrogate_pair_is_read_as_one_character(ner: Extractor) -> None:
    text = "Tom\ud800 \udc00 flew to Paris ."
    entities = ner.extract(text, [EntityType("city", "a town\ud800")])
    assert [(one.start, one.text) for one in entities] == [(text.index("Paris"), "Paris")]


@pytest.mark.parametrize("token", ["[CLS]", "[SEP]", "[PAD]", "[UNK]"])
def test_special_tokens_in_labels_are_plain_text(loaded: WordTokenizer, token: str) -> None:
    special = loaded.tokenizer.token_to_id(token)
    (ids,) = loaded.encode([f"{token}: a {token} of people"])
    assert special is not None
    assert special not in ids[1:-1]
    assert len(ids) > 10


def test_special_tokens_do_not_match_persons() -> None:
    entities = load().extract("Tom Hanks flew to Paris.", ["[CLS]", "[SEP]", "[PAD]", "[MASK]"])
    assert all(one.score < 0.5 for one in entities)


def test_a_folder_without_a_tokenizer_is_explained(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"has no tokenizer\.json\. Fix"):
        WordTokenizer.load(tmp_path)


def test_a_tokenizer_must_add_a_token_at_each_end() -> None:
    with pytest.raises(OnomaError, match="one token at each end of a text, it adds 0 in all"):
        WordTokenizer(letter_tokenizer("ab", lowercase=False))


def test_padding_is_the_first_token_of_a_t5_which_adds_an_end_only() -> None:
    tokenizer = WordTokenizer(t5_tokenizer(["Tom"]))
    assert (tokenizer.cls, tokenizer.pad) == (0, 0)
    assert tokenizer.encode(["Tom"])[0][-1] == tokenizer.sep == 1
    assert tokenizer.tokenize(["Tom", "To"]).counts.tolist() == [1, 3]  # "▁", "T", "o"


def letter_tokenizer(vocabulary: str, *, lowercase: bool) -> Tokenizer:
    """A tokenizer that knows single letters and signs."""
    tokens = ["[UNK]", *vocabulary, *(f"##{letter}" for letter in vocabulary)]
    made = Tokenizer(WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def test_unknown_capital_letters_and_curly_quotes_are_replaced_by_plain_ones() -> None:
    small = letter_tokenizer("abn'\"-.中", lowercase=False)
    assert small.encode("NBA").tokens == ["[UNK]"]
    assert normalize_unknown_signs(small)
    assert small.encode("NBA 中").tokens == ["n", "##b", "##a", "中"]
    assert small.encode("“a” ‘b’ — …").tokens == ['"', "a", '"', "'", "b", "'", "-", "."]
    saved = Tokenizer.from_str(small.to_str())  # the change is part of tokenizer.json
    assert saved.encode("NBA").tokens == ["n", "##b", "##a"]
    assert not normalize_unknown_signs(saved)  # there is nothing more to change


@pytest.mark.parametrize(("vocabulary", "lowercase"), [("abAB“”‘’—…'\"-.", False), ("ab“”‘’—…", True)])
def test_a_tokenizer_that_knows_all_signs_is_not_changed(vocabulary: str, lowercase: bool) -> None:
    complete = letter_tokenizer(vocabulary, lowercase=lowercase)
    before = complete.to_str()
    assert not normalize_unknown_signs(complete)
    assert complete.to_str() == before


def test_signs_without_a_known_replacement_stay_unknown() -> None:
    bare = letter_tokenizer("AB", lowercase=False)
    assert not normalize_unknown_signs(bare)
    assert bare.encode("“").tokens == ["[UNK]"]
