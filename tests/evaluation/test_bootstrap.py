"""Confidence intervals and significance tests."""

from __future__ import annotations

import random

import numpy as np
import pytest

from onoma import Corpus, Document, Entity, OnomaError
from onoma.data.joining import join_documents
from onoma.evaluation import Comparison, bootstrap, paired_bootstrap
from onoma.evaluation.bootstrap import (
    document_counts,
    mention_counts,
    paired_bootstrap_of_corpora,
    paired_bootstrap_of_runs,
)
from onoma.evaluation.strict import strict

TEXT = "aa bb cc dd"
MENTIONS = tuple(Entity(start, start + 2, TEXT[start : start + 2], "x") for start in (0, 3, 6, 9))


def system(right: float, size: int = 200, seed: int = 0) -> Comparison:
    """A system that finds each mention with probability `right`, and makes some wrong predictions."""
    generator = random.Random(seed)
    documents, predicted = [], []
    for number in range(size):
        gold = MENTIONS[: 1 + number % 4]
        documents.append(Document(TEXT, gold))
        noise = [Entity(0, 11, TEXT, "x")] if generator.random() < 0.3 else []
        predicted.append([entity for entity in gold if generator.random() < right] + noise)
    return Comparison.between(Corpus("random", documents), predicted)


def naive_f1(comparison: Comparison, samples: int) -> np.ndarray:
    """Draw documents one by one and count again."""
    generator = np.random.default_rng(1)
    size = len(comparison.corpus)
    scores = []
    for _ in range(samples):
        drawn = generator.integers(0, size, size).tolist()
        gold = sum(int((comparison.gold.document == number).sum()) for number in drawn)
        predicted = sum(int((comparison.predicted.document == number).sum()) for number in drawn)
        correct = sum(int(comparison.correct[comparison.predicted.document == number].sum()) for number in drawn)
        scores.append(2 * correct / (gold + predicted))
    return np.array(scores)


def test_intervals_agree_with_naive_resampling() -> None:
    comparison = system(0.7, size=40)
    interval = bootstrap(comparison, samples=4000).f1
    low, high = np.quantile(naive_f1(comparison, 1500), [0.025, 0.975])
    assert interval.low == pytest.approx(low, abs=0.015)
    assert interval.high == pytest.approx(high, abs=0.015)


def test_the_same_seed_gives_the_same_intervals() -> None:
    comparison = system(0.7)
    assert bootstrap(comparison, seed=3) == bootstrap(comparison, seed=3)
    assert bootstrap(comparison, seed=3) != bootstrap(comparison, seed=4)


def test_intervals_contain_the_value_and_grow_with_the_level() -> None:
    comparison = system(0.7)
    narrow, wide = bootstrap(comparison, level=0.5), bootstrap(comparison, level=0.99)
    for name in ("precision", "recall", "f1"):
        inner, outer = getattr(narrow, name), getattr(wide, name)
        assert outer.low < inner.low < inner.value < inner.high < outer.high
    assert narrow.recall.value == pytest.approx(comparison.found.mean())


def test_equal_documents_give_intervals_of_width_zero() -> None:
    corpus = Corpus("alike", [Document(TEXT, MENTIONS[:2])] * 10)
    result = bootstrap(Comparison.between(corpus, [[MENTIONS[0]]] * 10))
    assert (result.recall.low, result.recall.value, result.recall.high) == (0.5, 0.5, 0.5)
    assert (result.precision.low, result.precision.high) == (1.0, 1.0)


def test_replicates_without_mentions_score_zero() -> None:
    result = bootstrap(Comparison.between(Corpus("empty", [Document("a")]), [[]]))
    assert (result.f1.value, result.f1.low, result.f1.high) == (0.0, 0.0, 0.0)


def test_a_clearly_better_system_is_significantly_better() -> None:
    result = paired_bootstrap(system(0.9), system(0.5, seed=1))
    assert result.f1.low > 0
    assert result.p_value == pytest.approx(2 / 1001)  # the smallest possible value: no replicate has the other sign
    swapped = paired_bootstrap(system(0.5, seed=1), system(0.9))
    assert swapped.f1.high < 0
    assert swapped.p_value == result.p_value


def test_a_system_does_not_differ_from_itself() -> None:
    result = paired_bootstrap(system(0.7), system(0.7))
    assert (result.f1.value, result.f1.low, result.f1.high) == (0.0, 0.0, 0.0)
    assert result.p_value == 1.0


def test_a_paired_test_finds_differences_that_separate_intervals_do_not_show() -> None:
    # the second system makes the same errors as the first, and a few more
    first = system(0.7)
    predicted = [[] for _ in first.corpus]
    for number, row in zip(first.predicted.document.tolist(), range(len(first.predicted)), strict=True):
        start, end = (int(edge[row] - first.offsets[number]) for edge in (first.predicted.start, first.predicted.end))
        if row % 20:
            predicted[number].append(Entity(start, end, TEXT[start:end], "x"))
    second = Comparison.between(first.corpus, predicted)
    assert bootstrap(first).f1.low < bootstrap(second).f1.high  # the two intervals overlap
    assert paired_bootstrap(first, second).p_value < 0.01


def test_systems_scored_on_different_gold_mentions_are_refused() -> None:
    with pytest.raises(OnomaError, match="same documents"):
        paired_bootstrap(system(0.7, size=10), system(0.7, size=11))
    other = Corpus("other", [Document(TEXT, MENTIONS[1 : 2 + number % 4]) for number in range(10)])
    with pytest.raises(OnomaError, match="same documents"):
        paired_bootstrap(system(0.7, size=10), Comparison.between(other, [[]] * 10))


def test_the_mean_f1_of_several_runs_is_compared() -> None:
    runs = [[system(right, seed=seed) for seed in range(3)] for right in (0.8, 0.7)]
    counts = [np.stack([document_counts(one) for one in group], axis=1) for group in runs]
    result = paired_bootstrap_of_runs(*counts)
    means = [np.mean([strict(one).micro.f1 for one in group]) for group in runs]
    assert result.f1.value == pytest.approx(means[0] - means[1])
    assert result.p_value < 0.05
    assert paired_bootstrap_of_runs(counts[0], counts[0]).p_value == 1.0
    single = paired_bootstrap_of_runs(counts[0][:, :1], counts[1][:, :1])
    assert single == paired_bootstrap(runs[0][0], runs[1][0])
    with pytest.raises(OnomaError, match="same documents"):
        paired_bootstrap_of_runs(counts[0], counts[1][:-1])


def test_counts_of_joined_documents_are_those_of_single_ones() -> None:
    whole = system(0.7, size=30)
    joined = join_documents(whole.corpus, max_characters=40)
    assert 1 < len(joined) < len(whole.corpus)
    predicted: list[list[Entity]] = [[] for _ in joined]
    offset = place = 0
    for number, document in enumerate(whole.corpus):
        if offset + len(document.text) > len(joined.documents[place].text):
            offset, place = 0, place + 1
        rows = np.flatnonzero(whole.predicted.document == number).tolist()
        for row in rows:
            start, end = (
                int(edge[row] - whole.offsets[number]) for edge in (whole.predicted.start, whole.predicted.end)
            )
            predicted[place].append(Entity(start + offset, end + offset, document.text[start:end], "x"))
        offset += len(document.text) + 1
    counts = mention_counts(Comparison.between(joined, predicted), whole.corpus)
    assert np.array_equal(counts, document_counts(whole))


def test_a_prediction_that_crosses_documents_counts_where_it_starts() -> None:
    corpus = Corpus("two", [Document(TEXT, MENTIONS[:1]), Document(TEXT, MENTIONS[:1])])
    joined = join_documents(corpus)
    crossing = Entity(9, 14, joined.documents[0].text[9:14], "x")
    counts = mention_counts(Comparison.between(joined, [[crossing]]), corpus)
    assert counts.tolist() == [[1, 1, 0], [1, 0, 0]]


def test_empty_corpora_and_invalid_options_are_errors() -> None:
    with pytest.raises(OnomaError, match="without documents"):
        bootstrap(Comparison.between(Corpus("empty", []), []))
    with pytest.raises(OnomaError, match="samples >= 1"):
        bootstrap(system(0.7), samples=0)
    with pytest.raises(OnomaError, match="level"):
        bootstrap(system(0.7), level=95)


def test_the_mean_over_corpora_is_compared_with_each_corpus_resampled_by_itself() -> None:
    counts = {right: document_counts(system(right))[:, None] for right in (0.9, 0.8, 0.5)}
    same = (counts[0.8], counts[0.8])
    better = (counts[0.9], counts[0.5])
    single = paired_bootstrap_of_runs(*better)
    both = paired_bootstrap_of_corpora([better, same])
    assert both.f1.value == pytest.approx(single.f1.value / 2)
    assert both.f1.low > 0
    assert both.p_value < 0.01
    assert paired_bootstrap_of_corpora([same, same]).p_value == 1.0
    smaller = document_counts(system(0.9, size=50))[:, None]
    assert paired_bootstrap_of_corpora([better, (smaller, smaller)]).f1.value == pytest.approx(single.f1.value / 2)
    with pytest.raises(OnomaError, match="not scored on the same documents"):
        paired_bootstrap_of_corpora([better, (smaller, counts[0.9])])
