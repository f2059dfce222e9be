"""SUNER's batches: candidates, labels, known types, prefixes and sampled negatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Corpus, Document
from onoma.inputs.tokenizer import WordTokenIds, WordTokenizer
from onoma.systems.suner.candidates import dataset_prefix
from onoma.systems.suner.collator import MAX_MARKED, SunerCollator, sample_negatives
from onoma.systems.suner.options import StageName, SunerOptions
from onoma.training.examples import Example, make_examples
from tiny import TYPES, corpus


def examples_of(given: Corpus, tokenizer: WordTokenizer) -> list[Example]:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    return make_examples([given], numbers, tokenizer, max_tokens=130, overlap=8, drop_empty=False)[0]


@pytest.fixture(scope="module")
def examples(tokenizer: WordTokenizer) -> list[Example]:
    return examples_of(corpus(), tokenizer)


def collator(tokenizer: WordTokenizer, stage: StageName = "classification", **options: Any) -> SunerCollator:
    form = stage if stage in ("fused", "one-stage") else "two-stage"
    chosen = SunerOptions(**({"form": form} | options))
    return SunerCollator(TYPES, tokenizer, chosen, stage, corpora=["the_small", "other"])


def candidate_words(batch: dict[str, np.ndarray]) -> list[tuple[int, int, int]]:
    """The candidates of a batch as words, looked up by their tokens."""
    first, last = batch["first"].tolist(), batch["last"].tolist()
    rows = batch["marks"].tolist()
    return [(window, first[window].index(begin), last[window].index(end)) for window, _, _, begin, end in rows]


@pytest.mark.parametrize("stage", ["classification", "fused"])
def test_mentions_are_candidates_with_their_types(
    stage: Any, examples: list[Example], tokenizer: WordTokenizer
) -> None:
    chosen = examples[:40:3]
    batch = collator(tokenizer, stage)(chosen)
    spans = candidate_words(batch)
    assert spans == sorted(set(spans))
    found = sorted((*spans[candidate], kind) for candidate, kind in batch["labels"].tolist())
    assert found == sorted((w, *row) for w, example in enumerate(chosen) for row in example.gold.tolist())
    golden = {(w, *row[:2]) for w, example in enumerate(chosen) for row in example.gold.tolist()}
    assert set(map(tuple, batch["gold"].tolist())) == golden < set(spans)  # and negatives
    assert batch["known"].shape == (len(spans), len(TYPES))
    for (window, opening, closing, begin, end), (_, first, last) in zip(batch["marks"].tolist(), spans, strict=True):
        assert batch["positions"][window, opening] == begin == batch["first"][window, first]
        assert batch["positions"][window, closing] == end == batch["last"][window, last]
        assert batch["roles"][window, [opening, closing]].tolist() == [2, 3]


@pytest.mark.parametrize("options", [{"negatives_per_mention": 0.0}, {"rejection": "cosine"}], ids=str)
def test_without_sampled_negatives_only_mentions_are_candidates(
    options: dict[str, Any], examples: list[Example], tokenizer: WordTokenizer
) -> None:
    batch = collator(tokenizer, **options)(examples[:30])
    assert candidate_words(batch) == list(map(tuple, batch["gold"].tolist()))
    assert set(batch["labels"][:, 0].tolist()) == set(range(len(batch["marks"])))


def test_the_number_of_negatives_follows_the_option(examples: list[Example], tokenizer: WordTokenizer) -> None:
    numbers = [
        len(collator(tokenizer, negatives_per_mention=share)(examples[:30])["marks"]) for share in (0.0, 0.5, 1.0, 4.0)
    ]
    assert numbers == sorted(set(numbers))


def test_each_candidate_has_the_known_types_of_its_window(tokenizer: WordTokenizer) -> None:
    both = Document.from_spans("Tom sang .", [(0, 3, "person")], annotated=["person", "city"])
    bands = Document.from_spans("Tom sang .", [], annotated=["band"])
    batch = collator(tokenizer, negatives_per_mention=30.0)(
        examples_of(Corpus("partly", [both, bands], TYPES), tokenizer)
    )
    windows = batch["marks"][:, 0].tolist()
    assert set(windows) == {0, 1}
    assert batch["known"].tolist() == [[[False, True, True], [True, False, False]][window] for window in windows]


def test_a_span_with_two_types_is_one_candidate(tokenizer: WordTokenizer) -> None:
    double = Document.from_spans("Paris sang for Tom .", [(0, 5, "band"), (0, 5, "city"), (15, 18, "person")])
    batch = collator(tokenizer, negatives_per_mention=0.0)(examples_of(Corpus("double", [double], TYPES), tokenizer))
    assert candidate_words(batch) == [(0, 0, 0), (0, 3, 3)]
    assert sorted(map(tuple, batch["labels"].tolist())) == [(0, 0), (0, 1), (1, 2)]
    assert batch["gold"].tolist() == [[0, 0, 0], [0, 3, 3]]


def test_the_same_examples_give_the_same_batch(examples: list[Example], tokenizer: WordTokenizer) -> None:
    first, again = (collator(tokenizer)(examples[:6]) for _ in range(2))
    assert all(bool((first[name] == again[name]).all()) for name in first)


def test_windows_without_mentions_can_be_collated(tokenizer: WordTokenizer) -> None:
    empty = examples_of(Corpus("empty", [Document("We eat soup and bread every day .")] * 2, TYPES), tokenizer)
    batch = collator(tokenizer)(empty)
    assert batch["gold"].shape == (0, 3)
    assert batch["labels"].shape == (0, 2)
    assert len(batch["marks"]) > 0
    assert collator(tokenizer, "one-stage")(empty)["labels"].shape == (0, 4)
    assert collator(tokenizer, negatives_per_mention=0.0)(empty)["marks"].shape == (0, 5)


@pytest.mark.parametrize("stage", ["detection", "classification", "fused", "one-stage"])
@pytest.mark.parametrize("wanted", [True, False])
def test_texts_have_the_prefix_of_their_corpus_except_in_classification(
    stage: Any, wanted: bool, examples: list[Example], tokenizer: WordTokenizer
) -> None:
    chosen = [examples[0], replace(examples[1], corpus=1)]
    batch = collator(tokenizer, stage, dataset_prefix=wanted)(chosen)
    prefixes = [dataset_prefix(name, tokenizer) for name in ("the_small", "other")]
    for row, (example, prefix) in enumerate(zip(chosen, prefixes, strict=True)):
        before = prefix if wanted and stage != "classification" else []
        text = [tokenizer.cls, *before, *example.tokens.ids.tolist(), tokenizer.sep]
        assert batch["ids"][row, : len(text)].tolist() == text
        assert batch["first"][row, 0] == 1 + len(before)


def test_numbered_pairs_have_their_own_roles(examples: list[Example], tokenizer: WordTokenizer) -> None:
    batch = collator(tokenizer, marker_identity="numbered")(examples[:30])
    window, opening, closing = batch["marks"][:, :3].T
    number = (batch["roles"][window, opening] - 2) // 2
    assert (batch["roles"][window, opening] == 2 + 2 * number).all()
    assert (batch["roles"][window, closing] == 3 + 2 * number).all()
    pairs = list(zip(window.tolist(), number.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert len(set(number.tolist())) > 10  # they are random


@pytest.mark.parametrize("stage", ["detection", "fused", "classification", "one-stage"])
def test_detection_is_told_where_some_types_are_not_annotated(stage: Any, tokenizer: WordTokenizer) -> None:
    spans = [(0, 3, "person")]
    everything = Document.from_spans("Tom sang in Rome .", [*spans, (12, 16, "city")])
    listed = Document.from_spans("Tom sang .", spans, annotated=["person", "city", "band"])
    people = Document.from_spans("Tom sang in Rome .", spans, annotated=["person"])
    mixed = examples_of(Corpus("mixed", [everything, people, listed], TYPES), tokenizer)
    batch = collator(tokenizer, stage)(mixed)
    if stage in ("detection", "fused"):
        assert batch["complete"].tolist() == [True, False, True]
    else:  # there, the types that are known in each window are compared
        assert "complete" not in batch
    assert "complete" not in collator(tokenizer, stage)([mixed[0], mixed[2]])


# --- negatives


@st.composite
def windows(draw: st.DrawFn) -> tuple[Example, np.ndarray]:
    """A window with some of its spans as mentions, and perhaps hard negatives."""
    words = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, words - 1), st.integers(0, words - 1)).map(sorted)
    spans = np.array(draw(st.lists(pairs, max_size=4)), np.int64).reshape(-1, 2)
    hard = draw(st.none() | st.lists(pairs, max_size=3))
    tokens = WordTokenIds(np.arange(words, dtype=np.int32), np.ones(words, np.int32))
    gold = np.concatenate([spans, np.zeros((len(spans), 1), np.int64)], axis=1)
    mistakes = None if hard is None else np.array(hard, np.int64).reshape(-1, 2)
    return Example(tokens, gold, np.array([0]), 0, hard_negatives=mistakes), spans


@given(windows(), st.floats(0.1, 5.0), st.integers(0, 1000))
def test_sampled_negatives_lie_inside_their_window(window: tuple[Example, np.ndarray], share: float, seed: int) -> None:
    example, spans = window
    found = sample_negatives(example, spans, share, np.random.default_rng(seed))
    words = len(example.tokens.counts)
    assert all(0 <= first <= last < words for first, last in found)
    hard = [] if example.hard_negatives is None else example.hard_negatives.tolist()
    assert [list(one) for one in found[: len(hard)]] == hard
    count = int(np.ceil(share * max(len(spans), 1)))
    assert len(found) - len(hard) <= count + -(-count // 2)


def test_negatives_are_sampled_near_mentions_and_elsewhere() -> None:
    tokens = WordTokenIds(np.arange(40, dtype=np.int32), np.ones(40, np.int32))
    example = Example(tokens, np.array([[20, 21, 0]]), np.array([0]), 0)
    generator = np.random.default_rng(0)
    found = [one for _ in range(50) for one in sample_negatives(example, np.array([[20, 21]]), 2.0, generator)]
    near = [one for one in found if abs(one[0] - 20) <= 2 and abs(one[1] - 21) <= 2]
    assert len(near) > 50
    assert len({first for first, _ in found}) > 20


def test_the_number_of_marked_candidates_is_limited(tokenizer: WordTokenizer) -> None:
    words = 60
    spans = [(2 * word, 2 * word + 1, "person") for word in range(words)]
    long = Document.from_spans(" ".join("a" * words), spans)
    batch = collator(tokenizer)(examples_of(Corpus("long", [long, Document("Nobody came .")], TYPES), tokenizer))
    per_window = np.bincount(batch["marks"][:, 0])
    assert per_window[0] == MAX_MARKED
    assert 0 < per_window[1] <= MAX_MARKED
    candidates = candidate_words(batch)
    assert candidates == sorted(set(candidates))
    assert batch["known"].shape[0] == len(candidates)
    assert {candidate for candidate, _ in batch["labels"].tolist()} <= set(range(MAX_MARKED))
