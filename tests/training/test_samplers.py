"""Which windows make up an epoch, and in which batches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.inputs.tokenizer import WordTokenIds
from onoma.training.examples import Example
from onoma.training.samplers import BucketedSampler


def windows(sizes: list[int], seed: int = 0) -> list[Example]:
    """Windows of random lengths, given the number of windows of each corpus."""
    generator = np.random.default_rng(seed)
    nothing, known = np.zeros((0, 3), np.int64), np.zeros(1, np.int64)
    lengths = [(corpus, int(generator.integers(1, 60))) for corpus, size in enumerate(sizes) for _ in range(size)]
    return [
        Example(WordTokenIds(np.ones(length, np.int32), np.ones(length, np.int32)), nothing, known, corpus)
        for corpus, length in lengths
    ]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=3), st.integers(1, 7), st.integers(0, 5))
def test_by_default_an_epoch_has_every_window_once(sizes: list[int], batch_size: int, epoch: int) -> None:
    examples = windows(sizes)
    batches = BucketedSampler(examples, batch_size, seed=1)
    batches.set_epoch(epoch)
    drawn = list(batches)
    assert sorted(index for batch in drawn for index in batch) == list(range(len(examples)))
    assert len(drawn) == len(batches)
    # all are full but the last, as processes that share the batches expect
    assert [len(batch) for batch in drawn[:-1]] == [batch_size] * (len(drawn) - 1)


def test_seed_and_epoch_determine_the_batches() -> None:
    examples = windows([300])

    def drawn(seed: int, epoch: int, **settings: float) -> list[list[int]]:
        batches = BucketedSampler(examples, 8, seed=seed, **settings)  # type: ignore[arg-type]
        batches.set_epoch(epoch)
        return list(batches)

    for settings in ({}, {"samples_per_epoch": 100}, {"temperature": 2.0}):
        assert drawn(1, 0, **settings) == drawn(1, 0, **settings)
        assert drawn(1, 0, **settings) != drawn(2, 0, **settings)
        assert drawn(1, 0, **settings) != drawn(1, 1, **settings)


def test_batches_have_windows_of_similar_length_in_random_order() -> None:
    examples = windows([2000])
    lengths = np.array([len(example.tokens.ids) for example in examples])
    spans = [np.ptp(lengths[batch]) for batch in BucketedSampler(examples, 16, seed=0)]
    assert np.mean(spans) < 4  # of 60; about 55 without buckets
    means = [lengths[batch].mean() for batch in BucketedSampler(examples, 16, seed=0)]
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.3


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"samples_per_epoch": 20_000}, [100, 400, 1600]),
        ({"samples_per_epoch": 20_000, "temperature": float("inf")}, [1, 1, 1]),
        ({"samples_per_epoch": 20_000, "temperature": 2.0}, [10, 20, 40]),
        ({"samples_per_epoch": 20_000, "cap": 400}, [100, 400, 400]),
        ({"samples_per_epoch": 20_000, "weights": [4.0, 1.0, 1.0]}, [400, 400, 1600]),
    ],
)
def test_corpora_are_drawn_with_their_probabilities(settings: dict[str, float], expected: list[float]) -> None:
    examples = windows([100, 400, 1600])
    drawn = [examples[index].corpus for batch in BucketedSampler(examples, 8, seed=0, **settings) for index in batch]  # type: ignore[arg-type]
    assert len(drawn) == 20_000
    counts = Counter(drawn)
    shares = [counts[corpus] / len(drawn) for corpus in range(3)]
    assert shares == pytest.approx(np.array(expected) / sum(expected), abs=0.02)


def test_a_small_corpus_is_repeated_evenly() -> None:
    examples = windows([10, 1000])
    batches = BucketedSampler(examples, 8, seed=0, temperature=float("inf"), samples_per_epoch=400)
    times = Counter(index for batch in batches for index in batch)
    small = [times[index] for index in range(10)]
    assert max(small) - min(small) <= 1
    assert min(small) > 10
    assert max(times[index] for index in range(10, 1010)) == 1


def test_weights_belong_to_their_corpora_even_if_one_has_no_windows() -> None:
    examples = [example for example in windows([50, 50, 50]) if example.corpus != 1]
    batches = BucketedSampler(examples, 8, seed=0, samples_per_epoch=6000, weights=[1.0, 9.0, 3.0])
    drawn = Counter(examples[index].corpus for batch in batches for index in batch)
    assert drawn[2] / drawn[0] == pytest.approx(3.0, rel=0.1)


def test_a_cap_makes_the_epoch_shorter() -> None:
    batches = BucketedSampler(windows([100, 1000]), 10, seed=0, cap=100)
    assert len(batches) == 20 == len(list(batches))
