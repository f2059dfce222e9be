from __future__ import annotations

import math
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.data.mixtures import BLOCK, Mixture
from onoma.entities import Corpus, Document
from onoma.errors import OnomaError


def corpora(*sizes: int) -> list[Corpus]:
    return [Corpus(f"c{i}", [Document(f"{i}-{n}") for n in range(size)]) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sampling", "cap", "expected"),
    [
        ("proportional", None, [0.1, 0.9]),
        (1.0, None, [0.1, 0.9]),
        ("uniform", None, [0.5, 0.5]),
        (math.inf, None, [0.5, 0.5]),
        (2.0, None, [0.25, 0.75]),
        ("proportional", 20, [1 / 3, 2 / 3]),
        (2.0, 40, [1 / 3, 2 / 3]),
        (0.01, None, [0.0, 1.0]),
    ],
)
def test_probabilities(sampling: float, cap: int | None, expected: list[float]) -> None:
    assert Mixture(corpora(10, 90), sampling=sampling, cap=cap).probabilities == pytest.approx(expected)


def test_draws_follow_the_probabilities() -> None:
    mixture = Mixture(corpora(10, 90), sampling=2.0, seed=3)
    drawn = Counter(draw.corpus for draw in mixture.draws(count=20_000))
    assert drawn[0] / 20_000 == pytest.approx(0.25, abs=0.015)


def test_no_document_comes_again_before_all_of_its_corpus_came() -> None:
    mixture = Mixture(corpora(7, 30), sampling="uniform", seed=1)
    texts = [draw.document.text for draw in mixture.draws(count=400) if draw.corpus == 0]
    rounds = [texts[i : i + 7] for i in range(0, len(texts) - 6, 7)]
    assert len(rounds) > 20
    assert all(len(set(one)) == 7 for one in rounds)
    assert len({tuple(one) for one in rounds}) > 10, "each round is shuffled anew"


def test_a_draw_names_the_corpus_of_its_document() -> None:
    mixture = Mixture(corpora(3, 4, 5))
    assert all(draw.document in mixture.corpora[draw.corpus].documents for draw in mixture.draws(count=50))


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=4),
    start=st.integers(0, 3 * BLOCK),
    seed=st.integers(0, 9),
)
def test_resumed_stream_goes_on_as_the_whole_one(sizes: list[int], start: int, seed: int) -> None:
    whole = Mixture(corpora(*sizes), sampling="uniform", seed=seed)
    again = Mixture(corpora(*sizes), sampling="uniform", seed=seed)
    assert list(again.draws(start, 30)) == list(islice(whole.draws(), start, start + 30))


def test_stream_crosses_a_block_edge() -> None:
    mixture = Mixture(corpora(5, 5), seed=2)
    around = list(mixture.draws(BLOCK - 5, 10))
    assert around == list(mixture.draws(BLOCK - 5, 5)) + list(mixture.draws(BLOCK, 5))


def test_seeds_differ_and_iteration_does_not_end() -> None:
    first, second = (Mixture(corpora(50, 50), seed=seed) for seed in (0, 1))
    assert list(islice(first, 200)) == list(islice(first, 200))
    assert list(islice(first, 200)) != list(islice(second, 200))


def test_resuming_late_is_quick() -> None:
    mixture = Mixture(corpora(10, 20), seed=0)
    assert len(list(mixture.draws(5_000_000, 3))) == 3


@pytest.mark.parametrize("sampling", [0, -1.0, math.nan, "equal"])
def test_bad_sampling(sampling: float) -> None:
    with pytest.raises(OnomaError, match="temperature above 0"):
        Mixture(corpora(1), sampling=sampling)


def test_bad_corpora_cap_and_start() -> None:
    with pytest.raises(OnomaError, match="empty: c1"):
        Mixture(corpora(1, 0))
    with pytest.raises(OnomaError, match="the list itself"):
        Mixture([])
    with pytest.raises(OnomaError, match="cap"):
        Mixture(corpora(1), cap=0)
    with pytest.raises(OnomaError, match="start=-1"):
        next(Mixture(corpora(1)).draws(-1))


def test_probabilities_add_up() -> None:
    assert np.isclose(Mixture(corpora(1, 2, 3), sampling=3.0).probabilities.sum(), 1)
