"""From examples to arrays: the types that a batch asks for, gold rows and known types."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import EntityType
from onoma.inputs.tokenizer import WordTokenIds, WordTokenizer
from onoma.training.collation import TypeSampler, batch_generator, collate_examples, gold_rows, known_types
from onoma.training.examples import Example
from tiny import TYPES

KINDS = 8


def example(gold: list[tuple[int, int, int]], known: set[int], words: int = 6, corpus: int = 0) -> Example:
    """A window of words with one token each."""
    tokens = WordTokenIds(np.arange(10, 10 + words, dtype=np.int32), np.ones(words, np.int32))
    offsets = np.stack([np.arange(words), np.arange(words) + 1], axis=1).astype(np.int32)
    rows = np.array(gold, np.int64).reshape(-1, 3)
    return Example(tokens, rows, np.array(sorted(known), np.int64), corpus, "a" * words, offsets)


@st.composite
def batches(draw: st.DrawFn) -> list[Example]:
    """Examples whose gold types are known."""
    examples = []
    for _ in range(draw(st.integers(1, 4))):
        known = draw(st.sets(st.integers(0, KINDS - 1), min_size=1))
        spans = st.tuples(st.integers(0, 2), st.integers(3, 5), st.sampled_from(sorted(known)))
        examples.append(example(draw(st.lists(spans, max_size=4, unique=True)), known))
    return examples


@pytest.fixture(scope="module")
def sampler(tokenizer: WordTokenizer) -> TypeSampler:
    types = [*TYPES, *(EntityType(f"thing {number}") for number in range(KINDS - len(TYPES)))]
    return TypeSampler(types, tokenizer, with_description=True)


@given(batches(), st.none() | st.integers(1, KINDS), st.integers(0, 99))
def test_the_types_of_a_batch(sampler: TypeSampler, examples: list[Example], max_types: int | None, seed: int) -> None:
    sampler.max_types = max_types
    types = sampler.choose(examples, np.random.default_rng(seed)).tolist()
    present = {kind for one in examples for kind in one.gold[:, 2].tolist()}
    known = {kind for one in examples for kind in one.known.tolist()}
    assert types == sorted(set(types))
    assert present <= set(types) <= known
    assert len(types) == (len(known) if max_types is None else max(len(present), min(max_types, len(known))))


@given(batches())
def test_gold_and_known_refer_to_the_types_of_the_batch(examples: list[Example]) -> None:
    types = np.unique(np.concatenate([one.known for one in examples]))
    gold, known = gold_rows(examples, types), known_types(examples, types)
    found = [(window, first, last, int(types[kind])) for window, first, last, kind in gold.tolist()]
    assert found == [(window, *row) for window, one in enumerate(examples) for row in one.gold.tolist()]
    for window, one in enumerate(examples):
        assert types[known[window]].tolist() == one.known.tolist()


def test_a_batch_has_texts_and_offsets(tokenizer: WordTokenizer) -> None:
    batch = collate_examples([example([], {0}, words=3), example([], {0}, words=2)], tokenizer, [[7, 8], []])
    cls, sep, pad = tokenizer.cls, tokenizer.sep, tokenizer.pad
    assert batch.ids.tolist() == [[cls, 7, 8, 10, 11, 12, sep], [cls, 10, 11, sep, pad, pad, pad]]
    assert batch.first.tolist() == batch.last.tolist() == [[3, 4, 5], [1, 2, 0]]
    assert list(batch.texts) == ["aaa", "aa"]
    assert [one.tolist() for one in batch.offsets] == [[[0, 1], [1, 2], [2, 3]], [[0, 1], [1, 2]]]


def test_randomness_depends_on_the_seed_and_the_batch_alone() -> None:
    first, second = [example([], {0}, words=3)], [example([], {0}, words=4)]

    def number(examples: list[Example], seed: int) -> float:
        return float(batch_generator(examples, seed).random())

    assert number(first, 1) == number(first, 1)
    assert len({number(first, 1), number(first, 2), number(second, 1), number(first + second, 1)}) == 4


def test_types_are_given_by_their_aliases_at_the_given_rate(tokenizer: WordTokenizer) -> None:
    types = [EntityType("person"), EntityType("city")]
    aliases = {"person": ["PER", "people"], "song": ["track"]}
    sampler = TypeSampler(types, tokenizer, with_description=False, aliases=aliases, alias_rate=0.5)
    texts = {name: tokenizer.encode([name])[0] for name in ("person", "PER", "people", "city")}
    generator = np.random.default_rng(0)
    rows = [sampler.token_rows(np.array([0, 1]), generator) for _ in range(200)]
    counts = {name: sum(one[0] == texts[name] for one in rows) for name in ("person", "PER", "people")}
    assert sum(counts.values()) == 200
    assert 70 < counts["person"] < 130
    assert min(counts["PER"], counts["people"]) > 25
    assert all(one[1] == texts["city"] for one in rows)  # it has none
