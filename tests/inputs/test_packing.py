from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing

from onoma import OnomaError
from onoma.decoding import Proposals
from onoma.inputs.packing import SPECIAL_TOKENS, PackedTexts, WindowedTexts, chunk_texts
from onoma.inputs.tokenizer import WordTokenizer
from onoma.text import cut_windows, segment, sentence_starts

TEXTS = st.lists(st.text("ab é北𝔘. \n", max_size=60), max_size=6)
MAX_TOKENS = st.integers(6, 22)
OVERLAP = st.integers(0, 5)


def byte_tokenizer() -> WordTokenizer:
    """One token per byte, as byte-level encoders have it for characters that they do not know."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<pad>", "<unk>", "<s>", "</s>", *alphabet])}
    tokenizer = Tokenizer(BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)])
    return WordTokenizer(tokenizer)


BYTES = byte_tokenizer()


def cut(texts: list[str], max_tokens: int = 22, overlap: int = 0) -> WindowedTexts:
    return WindowedTexts.cut(PackedTexts.pack(texts), BYTES, max_tokens, overlap)


@given(TEXTS, MAX_TOKENS)
def test_every_byte_of_every_word_becomes_a_token(texts: list[str], max_tokens: int) -> None:
    windowed = cut(texts, max_tokens)
    counts = np.diff(windowed.token_edges)
    assert counts.max(initial=0) <= max_tokens - SPECIAL_TOKENS
    assert counts.sum() == len(windowed.token_ids) == len("".join("".join(texts).split()).encode())
    for number, text in enumerate(texts):
        words = windowed.packed.words_of(number)
        assert "".join(text[start:end] for start, end in words) == "".join(text.split())
        assert set(segment(text).ravel()) <= set(words.ravel())  # words are only ever split further


@given(TEXTS, MAX_TOKENS, OVERLAP)
def test_windows_are_those_of_each_text_alone(texts: list[str], max_tokens: int, overlap: int) -> None:
    windowed = cut(texts, max_tokens, overlap)
    counts, expected = np.diff(windowed.token_edges), []
    for number, text in enumerate(texts):
        words, first = windowed.packed.words_of(number), windowed.packed.edges[number]
        own_counts = counts[first : first + len(words)]
        own = cut_windows(own_counts, max_tokens - SPECIAL_TOKENS, overlap, sentence_starts(text, words))
        expected += list(zip(own.start + first, own.end + first, strict=True))
    assert list(zip(windowed.windows.start, windowed.windows.end, strict=True)) == expected


@given(TEXTS)
def test_words_know_their_text(texts: list[str]) -> None:
    packed = PackedTexts.pack(texts)
    owners = [number for number in range(len(texts)) for _ in packed.words_of(number)]
    assert packed.text_of(np.arange(len(packed.words))).tolist() == owners


@given(TEXTS, st.data())
def test_words_as_strings(texts: list[str], data: st.DataObject) -> None:
    packed = PackedTexts.pack(texts)
    words = [text[start:end] for text in texts for start, end in segment(text)]
    start = data.draw(st.integers(0, len(words)))
    end = data.draw(st.integers(start, len(words) + 3))
    assert packed.strings(start, end) == words[start:end]


@given(TEXTS, MAX_TOKENS, OVERLAP, st.data())
def test_a_batch_carries_texts_and_the_offsets_of_their_words(
    texts: list[str], max_tokens: int, overlap: int, data: st.DataObject
) -> None:
    windowed = cut(texts, max_tokens, overlap)
    count = len(windowed.windows)
    rows = np.array(data.draw(st.permutations(range(count)))[: data.draw(st.integers(0, count))], np.int64)
    batch = windowed.batch(rows, BYTES)
    for number, row in enumerate(rows):
        start, end = int(windowed.windows.start[row]), int(windowed.windows.end[row])
        offsets = batch.offsets[number]
        words = [batch.texts[number][first:last] for first, last in offsets]
        assert words == windowed.packed.strings(start, end)
        assert batch.texts[number] == texts[int(windowed.packed.text_of(np.array(start)))]
        assert len(offsets) == batch.words[number] == end - start
        assert batch.mask[number].sum() == windowed.lengths()[row] <= max_tokens
        for word, first, last in zip(words, batch.first[number], batch.last[number], strict=False):
            tokens = BYTES.tokenize([word]).ids.tolist()
            assert batch.ids[number, first : last + 1].tolist() == tokens


@given(TEXTS, MAX_TOKENS, OVERLAP, st.integers(1, 60))
def test_sections_hold_every_window_once_in_order(
    texts: list[str], max_tokens: int, overlap: int, section_tokens: int
) -> None:
    windowed = cut(texts, max_tokens, overlap)
    sections = list(windowed.sections(section_tokens))
    assert [row for rows, _ in sections for row in rows.tolist()] == list(range(len(windowed.windows)))
    for (_, end), (following, _) in pairwise(sections):
        assert end == windowed.windows.start[following[0]]  # the first word of the windows behind it
    assert sections[-1][1] == len(windowed.packed.words)
    lengths = windowed.lengths()
    assert all(lengths[rows].sum() < section_tokens + max_tokens for rows, _ in sections)


@given(TEXTS, MAX_TOKENS)
def test_without_a_limit_there_is_one_section(texts: list[str], max_tokens: int) -> None:
    windowed = cut(texts, max_tokens)
    ((rows, end),) = windowed.sections(None)
    assert rows.tolist() == list(range(len(windowed.windows)))
    assert end == len(windowed.packed.words)


def test_entities_belong_to_their_texts() -> None:
    texts = ["Tom flew", "", "to Paris ."]
    packed = PackedTexts.pack(texts)
    columns = ([0, 0], [0, 3], [1, 3], [1, 0], [0.5, 0.9])
    found = packed.entities(Proposals(*map(np.array, columns)), ["city", "person"])
    assert [[(one.start, one.end, one.text, one.label, one.score) for one in entities] for entities in found] == [
        [(0, 8, "Tom flew", "person", 0.5)],
        [],
        [(3, 8, "Paris", "city", 0.9)],
    ]


def test_many_words_are_tokenised_in_parts_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "a bb ccc " * 7, "", "", "dd e", "北京 " * 5, ""]
    whole = cut(texts)
    monkeypatch.setattr("onoma.inputs.packing._WORDS_AT_ONCE", 3)
    parts = cut(texts)
    assert parts.token_ids.tolist() == whole.token_ids.tolist()
    assert parts.token_edges.tolist() == whole.token_edges.tolist()


def test_a_character_that_fits_into_no_window_is_an_error() -> None:
    with pytest.raises(OnomaError, match="raise the model's max_tokens"):
        cut(["𝔘"], 5)


def test_chunks_are_limited_in_texts_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.inputs.packing.MAX_CHUNK_CHARACTERS", 10)
    texts = ["a", "b", "c", "d" * 100, "e", "f" * 9, "g"]
    assert list(chunk_texts(iter(texts), 3)) == [["a", "b", "c"], ["d" * 100], ["e", "f" * 9], ["g"]]
    assert list(chunk_texts([], 3)) == []


def test_texts_that_are_not_strings_are_named_by_number() -> None:
    with pytest.raises(OnomaError, match="texts must be strings, but number 1 is NoneType: None"):
        list(chunk_texts(["a", None], 3))  # type: ignore[list-item]
