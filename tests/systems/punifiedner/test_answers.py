"""Answers: any sequence of tokens can be parsed, and mentions are found in the text or counted."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.punifiedner.answers import COUNTED, Pair, WindowText, outermost, parse
from onoma.systems.punifiedner.prompts import Ids, PromptTokenizer
from onoma.text.words import segment
from tiny_t5 import t5_tokenizer

PROMPTS = PromptTokenizer(WordTokenizer(t5_tokenizer(["Tom flew to New York person city"])))
PERSON, CITY = PROMPTS.type_ids(["person", "city"])
SLOTS = {CITY: 0, PERSON: 1}
TOM, ROME = (40,), (41, 42)
COLON, COMMA, NULL, END = (*PROMPTS.symbols[2:], PROMPTS.end)


def parsed(*ids: int) -> tuple[list[Pair], dict[str, int]]:
    counts: Counter[str] = Counter()
    pairs = parse(ids, SLOTS, PROMPTS, counts)
    return pairs, dict(+counts)


def test_an_answer_is_read_back() -> None:
    ids = PROMPTS.answer([(CITY, [ROME, TOM]), (PERSON, [])], 99)
    pairs, counts = parsed(*ids, PROMPTS.pad, PROMPTS.pad)
    assert [(one.slot, tuple(ids[one.start : one.end])) for one in pairs] == [(0, ROME), (0, TOM)]
    assert [tuple(ids[one.type_start : one.start]) for one in pairs] == [(*CITY, COLON)] * 2
    assert counts == {"answers": 1}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ((END,), {"damaged": 1}),
        ((*CITY, END), {"damaged": 1}),
        ((*CITY, COLON, END), {"damaged": 1}),
        ((COLON, *TOM, END), {"damaged": 1}),
        ((*CITY, COLON, *TOM, COLON, *TOM, END), {"damaged": 1}),
        ((*CITY, COLON, NULL, *TOM, END), {"damaged": 1}),
        ((*CITY, COLON, PROMPTS.symbols.entity, END), {"damaged": 1}),
        ((*TOM, COLON, *TOM, END), {"unasked": 1}),
        ((*TOM, COLON, NULL, END), {}),
        ((*CITY, COLON, NULL), {"truncated": 1}),
        ((), {"truncated": 1}),
    ],
)
def test_what_is_wrong_is_counted_and_dropped(ids: Ids, expected: dict[str, int]) -> None:
    pairs, counts = parsed(*ids)
    assert pairs == []
    assert counts == {"answers": 1, **expected}


def test_what_is_right_survives_beside_it() -> None:
    ids = (*CITY, COLON, *ROME, COMMA, COLON, COMMA, *CITY, COLON, *ROME, COMMA, *PERSON, COLON, *TOM, COMMA, *CITY)
    pairs, counts = parsed(*ids)
    assert [one.slot for one in pairs] == [0, 1]
    assert counts == {"answers": 1, "damaged": 1, "repeated": 1, "truncated": 1}


@given(st.lists(st.sampled_from([*PROMPTS.symbols, END, PROMPTS.pad, *CITY, *PERSON, *TOM, *ROME]), max_size=30))
@example([])
def test_any_sequence_of_tokens_is_parsed(ids: list[int]) -> None:
    pairs, counts = parsed(*ids)
    assert counts.keys() <= COUNTED.keys()
    for one in pairs:
        assert tuple(ids[one.type_start : one.start]) in ((*CITY, COLON), (*PERSON, COLON))
        assert one.start < one.end
        assert not set(ids[one.start : one.end]) & {*PROMPTS.symbols, END}
    commas = ids[: ids.index(END) if END in ids else len(ids)].count(COMMA)
    wrong = sum(counts.get(name, 0) for name in ("damaged", "unasked", "repeated"))
    assert len(pairs) + wrong <= commas + (END in ids)


def find(text: str, mention: str, ids: Ids = ()) -> tuple[list[str], bool]:
    words = segment(text)
    source = PROMPTS.read([text], [words])[0]
    runs, occurs = WindowText(text, words, source).find(mention, ids, PROMPTS.unk)
    return [text[words[first, 0] : words[last, 1]] for first, last in runs], occurs


@pytest.mark.parametrize(
    ("text", "mention", "found"),
    [
        ("Tom and Tom", "Tom", ["Tom", "Tom"]),
        ("tom and TOM", "Tom", ["tom", "TOM"]),
        ("Tom and TOM", "Tom", ["Tom"]),  # exact occurrences come first
        ("New\n  York and new york", "New York", ["New\n  York", "new york"]),
        ("ＴＯＭ", "Tom", ["ＴＯＭ"]),
        ("Cafe\u0301", "Café", ["Cafe\u0301"]),
        ("straße", "STRASSE", ["straße"]),
        ("北 京 和北京", "北京", ["北京"]),
        ("北 京", "北京", ["北 京"]),
        ("IL-2 (IL-2)", "IL-2", ["IL-2", "IL-2"]),
    ],
)
def test_mentions_are_found_exactly_or_folded(text: str, mention: str, found: list[str]) -> None:
    assert find(text, mention) == (found, True)


def test_mentions_inside_words_and_invented_ones_are_told_apart() -> None:
    assert find("tomorrow", "tom") == ([], True)
    assert find("tomorrow", "Ann") == ([], False)
    assert find("", "Ann") == ([], False)


def test_unknown_characters_are_found_by_their_tokens() -> None:
    ids = tuple(PROMPTS.read(["{Tom}"], [segment("{Tom}")])[0].ids.tolist())
    assert PROMPTS.unk in ids
    assert find("a {Tom} b", "Tom", ids) == (["{Tom}"], True)
    assert find("Tom", "Tom", ids) == ([], False)


def test_text_outside_of_a_window_is_not_searched() -> None:
    text = "Tom saw Tom"
    words = segment(text)[1:]
    window = WindowText(text, words, PROMPTS.read([text], [words])[0])
    assert window.find("Tom", (40,), PROMPTS.unk) == ([(1, 1)], True)
    empty = WindowText(text, words[:0], PROMPTS.read([text], [words[:0]])[0])
    assert empty.find("Tom", (40,), PROMPTS.unk) == ([], False)


@given(st.text(max_size=30), st.text(max_size=8), st.lists(st.integers(0, 50), max_size=4))
def test_any_mention_can_be_searched_in_any_text(text: str, mention: str, ids: list[int]) -> None:
    words = segment(text)
    window = WindowText(text, words, PROMPTS.read([text], [words])[0])
    runs, occurs = window.find(mention, tuple(ids), PROMPTS.unk)
    assert occurs or not runs
    assert all(0 <= first <= last < len(words) for first, last in runs)


def test_occurrences_inside_other_mentions_count_only_if_there_are_no_others() -> None:
    assert outermost([(0, 0), (5, 5)], {(4, 6), (0, 0), (5, 5)}) == [(0, 0)]
    assert outermost([(5, 5)], {(4, 6), (5, 5)}) == [(5, 5)]
