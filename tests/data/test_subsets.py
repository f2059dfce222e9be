"""Random splits and few-shot samples of a corpus."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.data.quality import text_key
from onoma.data.subsets import sample_documents, sample_mentions, split
from onoma.entities import Corpus, Document, EntityType
from onoma.errors import OnomaError

LABELS = "abcdef"


def document(number: int, labels: str) -> Document:
    """A text that occurs once, with one word per label."""
    text = " ".join(["w"] * len(labels)) + f" #{number}"
    return Document.from_spans(text, [(2 * i, 2 * i + 1, label) for i, label in enumerate(labels)])


def mentions(corpus: Corpus) -> Counter[str]:
    return Counter(entity.label for one in corpus for entity in one.entities)


labelled = st.lists(st.text(LABELS, max_size=5), min_size=1, max_size=40)
seeds = st.integers(0, 100)


def corpus_of(labels: list[str]) -> Corpus:
    types = tuple(EntityType(name) for name in LABELS)
    return Corpus("letters", [document(number, one) for number, one in enumerate(labels)], types)


def test_splits_have_the_given_sizes_and_every_document_once() -> None:
    corpus = corpus_of(["ab"] * 200)
    parts = split(corpus, {"train": 0.8, "dev": 0.15, "test": 0.05}, seed=4)
    assert {name: len(part) for name, part in parts.items()} == {"train": 160, "dev": 30, "test": 10}
    assert Counter(one for part in parts.values() for one in part) == Counter(corpus.documents)
    assert all(part.types == corpus.types for part in parts.values())


def test_splits_depend_on_the_seed_only() -> None:
    corpus = corpus_of(["a"] * 50)
    halves = {"one": 0.5, "two": 0.5}
    assert split(corpus, halves, seed=1) == split(corpus, halves, seed=1)
    assert split(corpus, halves, seed=1) != split(corpus, halves, seed=2)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["Oslo", "oslo ", "OS LO", "Rome", "rome", "Lima", "Bonn", "Kyiv"]), min_size=1), seeds)
def test_copies_of_a_text_stay_together(texts: list[str], seed: int) -> None:
    parts = split(Corpus("cities", [Document(text) for text in texts]), {"train": 0.6, "test": 0.4}, seed=seed)
    train, test = ({text_key(one.text) for one in part} for part in parts.values())
    assert not train & test
    assert sum(map(len, parts.values())) == len(texts)


@pytest.mark.parametrize("parts", [{}, {"train": 0.8}, {"train": 1.2, "dev": -0.2}, {"train": 1.0, "dev": 0.0}])
def test_shares_must_be_positive_and_add_up_to_one(parts: dict[str, float]) -> None:
    with pytest.raises(OnomaError, match="add up to 1"):
        split(corpus_of(["a"]), parts)


@settings(max_examples=100, deadline=None)
@given(labelled, st.data(), seeds)
def test_sampled_documents_include_every_type(labels: list[str], data: st.DataObject, seed: int) -> None:
    corpus = corpus_of(labels)
    present = set("".join(labels))
    k = data.draw(st.integers(1, len(labels)))
    sample = sample_documents(corpus, k, seed=seed)
    assert len(sample) == len(set(sample.documents)) == k
    assert set(sample.documents) <= set(corpus.documents)
    if k >= len(present):
        assert set(mentions(sample)) == present
    assert sample == sample_documents(corpus, k, seed=seed)


def test_all_documents_are_equally_likely_if_they_have_the_same_types() -> None:
    corpus = corpus_of(["a"] * 10)
    drawn = Counter(one.text for seed in range(400) for one in sample_documents(corpus, 2, seed=seed))
    assert len(drawn) == 10
    assert min(drawn.values()) > 45


def test_a_rare_type_is_always_sampled() -> None:
    corpus = corpus_of(["a"] * 500 + ["b"])
    assert all(mentions(sample_documents(corpus, 3, seed=seed)) == {"a": 2, "b": 1} for seed in range(10))


@pytest.mark.parametrize("k", [0, 4])
def test_a_sample_cannot_be_empty_or_larger_than_the_corpus(k: int) -> None:
    with pytest.raises(OnomaError, match=f"cannot draw {k} documents from corpus 'letters', which has 3"):
        sample_documents(corpus_of(["a"] * 3), k)


@settings(max_examples=200, deadline=None)
@given(labelled, st.integers(1, 4), seeds)
def test_k_mentions_of_every_type_without_redundant_documents(labels: list[str], k: int, seed: int) -> None:
    corpus = corpus_of(labels)
    total = mentions(corpus)
    sample = sample_mentions(corpus, k, seed=seed)
    found = mentions(sample)
    assert all(found[label] >= min(k, total[label]) for label in total)
    for one in sample:
        without = found - Counter(entity.label for entity in one.entities)
        assert any(without[label] < min(k, total[label]) for label in one.labels), "this document is redundant"
    assert sample == sample_mentions(corpus, k, seed=seed)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "ab", "c", "bc", ""]), min_size=1, max_size=40), st.integers(1, 4), seeds)
def test_at_most_2k_mentions_if_there_are_enough_small_documents(labels: list[str], k: int, seed: int) -> None:
    corpus = corpus_of([*labels, *"abc" * 4])
    assert max(mentions(sample_mentions(corpus, k, seed=seed)).values()) <= 2 * k


def test_more_than_2k_mentions_only_if_necessary() -> None:
    corpus = corpus_of(["aaaaab"] * 3 + ["a"] * 5)
    found = mentions(sample_mentions(corpus, 2, seed=0))
    assert found["b"] == 2
    assert found["a"] == 10


def test_other_seeds_choose_other_documents() -> None:
    corpus = corpus_of(["a", "b"] * 30)
    assert sample_mentions(corpus, 3, seed=0) != sample_mentions(corpus, 3, seed=1)


def test_k_must_be_at_least_one() -> None:
    with pytest.raises(OnomaError, match="at least 1, got 0"):
        sample_mentions(corpus_of(["a"]), 0)
