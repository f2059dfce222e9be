"""Tokenizers that lack signs which texts have."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece

from onoma.subwords import mend


def tokenizer(vocabulary: str, *, lowercase: bool) -> Tokenizer:
    """A tokenizer that knows single letters and signs."""
    tokens = ["[UNK]", *vocabulary, *(f"##{letter}" for letter in vocabulary)]
    made = Tokenizer(WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def test_capital_letters_and_curly_quotes_are_read_as_their_plain_relatives() -> None:
    small = tokenizer("abn'\"-.中", lowercase=False)
    assert small.encode("NBA").tokens == ["[UNK]"]
    assert mend(small)
    assert small.encode("NBA 中").tokens == ["n", "##b", "##a", "中"]
    assert small.encode("“a” ‘b’ — …").tokens == ['"', "a", '"', "'", "b", "'", "-", "."]
    again = Tokenizer.from_str(small.to_str())  # it is kept in the file
    assert again.encode("NBA").tokens == ["n", "##b", "##a"]
    assert not mend(again)  # nothing is left to do


@pytest.mark.parametrize(("vocabulary", "lowercase"), [("abAB“”‘’—…'\"-.", False), ("ab“”‘’—…", True)])
def test_a_tokenizer_that_reads_everything_stays_as_it_is(vocabulary: str, lowercase: bool) -> None:
    whole = tokenizer(vocabulary, lowercase=lowercase)
    before = whole.to_str()
    assert not mend(whole)
    assert whole.to_str() == before


def test_what_has_no_relative_in_the_vocabulary_stays_unknown() -> None:
    bare = tokenizer("AB", lowercase=False)
    assert not mend(bare)
    assert bare.encode("“").tokens == ["[UNK]"]
