"""Constrained generation: all answers that it allows are sound, and all sound ones are allowed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.systems.punifiedner.constraint import AnswerConstraint, ConstrainedLogits
from onoma.systems.punifiedner.prompts import Ids, Source, Symbols

SYMBOLS, END, VOCABULARY = Symbols(10, 11, 12, 13, 14), 1, 15
TYPES: list[Ids] = [(2,), (2, 3), (4,)]  # one name is the beginning of another
WORDS = st.lists(st.lists(st.integers(5, 7), min_size=1, max_size=2), min_size=1, max_size=5)


def source(words: list[list[int]]) -> Source:
    edges = np.cumsum([0, *map(len, words)])
    return Source(np.array([token for word in words for token in word], np.int64), edges.astype(np.int64))


def constraint(sources: list[Source], types: list[Ids] = TYPES, beams: int = 1) -> AnswerConstraint:
    return AnswerConstraint(sources, types, SYMBOLS, END, VOCABULARY, torch.device("cpu"), beams)


def spans(one: Source) -> dict[Ids, tuple[int, int]]:
    """All runs of words, and the first place of each as (start, length) in tokens."""
    words = len(one.edges) - 1
    found: dict[Ids, tuple[int, int]] = {}
    for first in range(words):
        for last in range(first, words):
            ids = one.words(first, last)
            found.setdefault(ids, (int(one.edges[first]), len(ids)))
    return found


def write(mentions: list[list[Ids]]) -> list[int]:
    """The answer with the mentions of each type."""
    pairs = [(*kind, 12, *one) for kind, found in zip(TYPES, mentions, strict=True) for one in found or [(14,)]]
    return [*[token for pair in pairs for token in (*pair, 13)][:-1], END]


def read(ids: list[int]) -> list[list[Ids]]:
    """The mentions of each type of a sound answer; an error for any other one."""
    assert ids[-1] == END
    mentions: list[list[Ids]] = [[] for _ in TYPES]
    numbers, pair = [], []
    for token in [*ids[:-1], 13]:
        if token != 13:
            pair.append(token)
            continue
        middle = pair.index(12)
        numbers.append(TYPES.index(tuple(pair[:middle])))
        mentions[numbers[-1]].append(tuple(pair[middle + 1 :]))
        pair = []
    assert numbers == sorted(numbers)
    assert sorted(set(numbers)) == list(range(len(TYPES)))
    assert all(len(one) == 1 for one in mentions if (14,) in one)
    return [[] if one == [(14,)] else one for one in mentions]


@settings(max_examples=60)
@given(WORDS, st.integers(0, 2**31))
def test_whatever_is_allowed_is_a_sound_answer_and_ends(words: list[list[int]], seed: int) -> None:
    one, generator = source(words), np.random.default_rng(seed)
    rules = constraint([one])
    state, ids = rules.begin(), []
    while not ids or ids[-1] != END:
        allowed = np.flatnonzero(rules.allowed(state)[0].numpy())
        assert len(allowed)
        assert len(ids) < 500
        ids.append(int(generator.choice(allowed)))
        state = rules.advance(state, torch.tensor([ids[-1]]))
    for found in read(ids):
        assert set(found) <= spans(one).keys()


@settings(max_examples=60)
@given(WORDS, st.data())
def test_every_answer_in_the_order_of_the_text_is_allowed(words: list[list[int]], data: st.DataObject) -> None:
    one = source(words)
    known = spans(one)
    mentions = [
        sorted(data.draw(st.sets(st.sampled_from(sorted(known)), max_size=3)), key=lambda ids: known[ids])
        for _ in TYPES
    ]
    rules = constraint([one])
    state = rules.begin()
    for token in write(mentions):
        assert rules.allowed(state)[0, token], (mentions, token)
        state = rules.advance(state, torch.tensor([token]))
    assert np.flatnonzero(rules.allowed(state)[0].numpy()).tolist() == [END]


@settings(max_examples=30)
@given(st.lists(WORDS, min_size=2, max_size=3), st.integers(0, 2**31))
def test_a_batch_is_treated_as_its_rows(texts: list[list[list[int]]], seed: int) -> None:
    sources, generator = [source(words) for words in texts], np.random.default_rng(seed)
    together, alone = constraint(sources), [constraint([one]) for one in sources]
    state, states = together.begin(), [one.begin() for one in alone]
    for _ in range(12):
        allowed = together.allowed(state)
        tokens = []
        for row, (rules, own) in enumerate(zip(alone, states, strict=True)):
            assert torch.equal(allowed[row], rules.allowed(own)[0])
            tokens.append(int(generator.choice(np.flatnonzero(allowed[row].numpy()))))
        state = together.advance(state, torch.tensor(tokens))
        states = [
            rules.advance(own, torch.tensor([token])) for rules, own, token in zip(alone, states, tokens, strict=True)
        ]


def test_states_follow_the_rows_of_a_beam_search() -> None:
    sources = [source([[5], [6], [7]]), source([[6, 7], [5]])]
    processor = ConstrainedLogits(constraint(sources, [(2,)], beams=2), beams=2)
    scores = torch.zeros(4, VOCABULARY)

    def allowed(*rows: list[int]) -> list[list[int]]:
        result = processor(torch.tensor(rows), scores)
        return [np.flatnonzero(np.isfinite(row)).tolist() for row in result.numpy()]

    assert allowed([0], [0], [0], [0]) == [[2]] * 4
    assert allowed([0, 2], [0, 2], [0, 2], [0, 2]) == [[12]] * 4
    assert allowed(*[[0, 2, 12]] * 4) == [[5, 6, 7, 14]] * 2 + [[5, 6, 14]] * 2
    first = [[0, 2, 12, 5], [0, 2, 12, 6], [0, 2, 12, 6], [0, 2, 12, 14]]
    assert allowed(*first) == [[1, 6, 13], [1, 7, 13], [7], [1]]
    # the first beam of the first window is dropped, and the beams of the second one change places
    second = [[0, 2, 12, 6, 7], [0, 2, 12, 6, 13], [0, 2, 12, 14, 1], [0, 2, 12, 6, 7]]
    assert allowed(*second) == [[1, 13], [2], [1], [1, 5, 13]]


@pytest.mark.parametrize("words", [[[5]], [[5], [5], [5]], [[5, 5]]])
def test_no_mention_is_repeated_for_ever(words: list[list[int]]) -> None:
    rules = constraint([source(words)], [(2,)])
    state, steps = rules.begin(), 0
    while not rules.allowed(state)[0, END] or rules.allowed(state)[0, 13]:  # goes on as long as it may
        allowed = rules.allowed(state)[0]
        token = 13 if allowed[13] else next(one for one in (5, 2, 12, END) if allowed[one])
        state, steps = rules.advance(state, torch.tensor([token])), steps + 1
        assert steps < 100
