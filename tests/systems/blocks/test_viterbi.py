"""Decoding with numpy against all paths, one by one."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.systems.blocks.crf import Crf
from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.blocks.viterbi import MAX_LOG_ODDS, TransitionScores, marginals, span_log_odds, viterbi
from systems.blocks.all_paths import log_sum, mentions, random_scores, scored_paths

SCHEMES = [TagScheme(2, "bio"), TagScheme(1, "bmes")]
SCALES = [0.1, 3.0, 30.0, 1000.0]  # of emissions


class Case:
    """Windows of some lengths with random emissions, nonsense behind their ends."""

    def __init__(self, scheme: TagScheme, scale: float, seed: int = 0, lengths: tuple[int, ...] = (4, 1, 3)) -> None:
        generator = np.random.default_rng(seed)
        self.scheme, self.words = scheme, np.array(lengths)
        self.scores = random_scores(scheme, generator)
        shape = (len(lengths), max(lengths) + 1, scheme.tags)
        self.emissions = (generator.normal(size=shape) * scale).astype(np.float32)

    def paths(self, window: int) -> list[tuple[tuple[int, ...], float]]:
        """The paths of a window and their probabilities' logarithms."""
        paths = list(scored_paths(self.scheme, self.emissions[window, : self.words[window]], self.scores))
        total = log_sum([path.score for path in paths])
        return [(path.tags, path.score - total) for path in paths]

    def spans(self) -> np.ndarray:
        """All spans of all windows with all types: rows (window, first, last, type)."""
        rows = [
            (window, first, last, kind)
            for window, length in enumerate(self.words)
            for first, last, kind in product(range(length), range(length), range(self.scheme.types))
            if first <= last
        ]
        return np.array(rows)

    def log_odds(self, spans: np.ndarray) -> np.ndarray:
        return span_log_odds(self.emissions, self.words, self.scores, self.scheme, *spans.T)

    def slow_log_odds(self, spans: np.ndarray) -> list[float]:
        """log p - log(1 - p), by adding up the paths that have a mention and those that have not."""
        odds = []
        for window, first, last, kind in spans.tolist():
            having: list[float] = []
            lacking: list[float] = []
            for tags, log_probability in self.paths(window):
                found = (first, last + 1, str(kind)) in mentions(self.scheme, tags)
                (having if found else lacking).append(log_probability)
            odds.append(log_sum(having) - log_sum(lacking))
        return odds


CASES = st.builds(Case, st.sampled_from(SCHEMES), st.sampled_from(SCALES), st.integers(0, 1000))


@given(CASES)
def test_viterbi_finds_the_best_path(case: Case) -> None:
    found = viterbi(case.emissions, case.words, case.scores)
    assert found.dtype == np.int64
    assert found.shape == case.emissions.shape[:2]
    for window, length in enumerate(case.words):
        best, _ = max(case.paths(window), key=lambda path: path[1])
        assert found[window].tolist() == [*best, *[0] * (found.shape[1] - length)]


@settings(max_examples=40)
@given(CASES)
def test_marginals_are_sums_over_paths(case: Case) -> None:
    found = marginals(case.emissions, case.words, case.scores)
    assert found.dtype == np.float32
    for window, length in enumerate(case.words):
        expected = np.zeros(found.shape[1:])
        for tags, log_probability in case.paths(window):
            expected[np.arange(length), tags] += math.exp(log_probability)
        assert found[window] == pytest.approx(expected, abs=2e-5)


@settings(max_examples=40)
@given(CASES)
def test_log_odds_of_spans_are_those_of_their_paths(case: Case) -> None:
    spans = case.spans()
    found, expected = case.log_odds(spans), np.clip(case.slow_log_odds(spans), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    assert found.dtype == np.float32
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
def test_log_odds_are_exact_near_certainty(scheme: TagScheme) -> None:
    # a mention of two words; what speaks for it grows, and its probability in single precision is 1 long before 30
    case = Case(scheme, 1.0, lengths=(4,))
    mention = np.array([[0, 1, 2, 0]])
    tags = scheme.encode(mention, case.words, 5)[0]
    for sign, most in product((1, -1), (5.0, 10.0, 20.0)):
        case.emissions[0, :, :] = 0.0
        case.emissions[0, np.arange(5), tags] = sign * most
        assert case.log_odds(mention) == pytest.approx(np.clip(case.slow_log_odds(mention), -30, 30), abs=1e-4)
    assert case.log_odds(mention)[0] == -MAX_LOG_ODDS


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
def test_log_odds_of_spans_that_nothing_speaks_for(scheme: TagScheme) -> None:
    # every word is O by a margin that no floating-point number can express
    case = Case(scheme, 1.0, lengths=(6,))
    case.emissions[...] = np.where(np.arange(scheme.tags) == 0, 2000.0, -2000.0)
    assert (case.log_odds(case.spans()) == -MAX_LOG_ODDS).all()
    assert marginals(case.emissions, case.words, case.scores)[0, :6, 0] == pytest.approx(1.0)


def test_a_mention_that_goes_on_is_not_the_mention() -> None:
    scheme = TagScheme(1, "bio")
    scores = random_scores(scheme, np.random.default_rng(0), scale=0.0)
    emissions = np.zeros((1, 2, 3), np.float32)
    emissions[0, 0, 1] = 50.0  # surely B
    spans = np.array([[0, 0, 0, 0], [0, 0, 1, 0]])
    # then O, B or I, with the same probability
    odds = span_log_odds(emissions, np.array([2]), scores, scheme, *spans.T)
    assert odds == pytest.approx([math.log(2), -math.log(2)], abs=1e-5)
    # without a next word the mention cannot go on
    assert span_log_odds(emissions[:, :1], np.array([1]), scores, scheme, *spans[:1].T)[0] == MAX_LOG_ODDS


@pytest.mark.parametrize("forbidden", [-np.inf, -1e4])
@pytest.mark.parametrize("scale", SCALES)
def test_long_windows_with_extreme_scores(scale: float, forbidden: float) -> None:
    """Against PyTorch in double precision, which is tested against a slow computation."""
    scheme, generator = TagScheme(4, "bmes"), np.random.default_rng(3)
    crf = Crf(scheme).double()
    words = np.array([400, 1, 0, 129])
    emissions = (generator.normal(size=(4, 400, scheme.tags)) * scale).astype(np.float32)
    scores = TransitionScores(*(np.maximum(one, np.float32(forbidden)) for one in crf.transition_scores()))
    some = torch.from_numpy(emissions[words > 0]).double().requires_grad_()
    crf.log_partition(some, torch.from_numpy(words[words > 0])).sum().backward()
    assert some.grad is not None
    assert marginals(emissions, words, scores)[words > 0] == pytest.approx(some.grad.numpy(), abs=1e-4)
    paths = viterbi(emissions, words, scores)
    spans = scheme.spans(paths, words)
    assert np.array_equal(scheme.encode(np.stack(spans, axis=1), words, 400), paths)
    odds = span_log_odds(emissions, words, scores, scheme, *spans)
    assert np.isfinite(odds).all()
    assert len(odds) > 50


def test_padding_and_other_windows_have_no_influence() -> None:
    case = Case(TagScheme(3, "bio"), 3.0, lengths=(9, 2, 5))
    paths = viterbi(case.emissions, case.words, case.scores)
    spans = np.stack(case.scheme.spans(paths, case.words), axis=1)
    odds = case.log_odds(spans)
    for window, length in enumerate(case.words):
        emissions, words = case.emissions[window : window + 1, :length], case.words[window : window + 1]
        assert viterbi(emissions, words, case.scores)[0].tolist() == paths[window, :length].tolist()
        own = spans[spans[:, 0] == window] * [0, 1, 1, 1]
        alone = span_log_odds(emissions, words, case.scores, case.scheme, *own.T)
        assert alone == pytest.approx(odds[spans[:, 0] == window], abs=1e-4)


def test_windows_without_words_and_without_spans() -> None:
    scheme = TagScheme(2, "bio")
    scores, nothing = random_scores(scheme, np.random.default_rng(0)), np.zeros(0, np.int64)
    for windows, width in ((0, 0), (2, 0), (2, 3)):
        emissions, words = np.zeros((windows, width, scheme.tags), np.float32), np.zeros(windows, np.int64)
        assert np.array_equal(viterbi(emissions, words, scores), np.zeros((windows, width)))
        assert np.array_equal(marginals(emissions, words, scores), np.zeros((windows, width, scheme.tags)))
        assert len(span_log_odds(emissions, words, scores, scheme, nothing, nothing, nothing, nothing)) == 0


def test_arguments_are_not_changed() -> None:
    case = Case(TagScheme(2, "bio"), 1.0)
    before = case.emissions.copy(), *(one.copy() for one in case.scores)
    viterbi(case.emissions, case.words, case.scores)
    marginals(case.emissions, case.words, case.scores)
    case.log_odds(case.spans())
    for one, copy in zip((case.emissions, *case.scores), before, strict=True):
        assert np.array_equal(one, copy)
