"""Which spans count in a loss, against loops over all spans."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from onoma.systems.blocks.negatives import Counted, counted_spans
from onoma.systems.options import NegativeSampling

torch.set_num_threads(1)
WORDS, WIDTHS = torch.tensor([7, 1, 4, 9]), 5
NOTHING = torch.zeros((0, 3), dtype=torch.long)
Span = tuple[int, int, int]


def rows(*spans: Span) -> Tensor:
    return torch.tensor(spans).reshape(-1, 3)


def spans_of(counted: Counted) -> set[Span]:
    """The counted spans as (window, first word, last word)."""
    return {(w, i, i + d) for w, i, d in counted.spans.nonzero().tolist()}


def places_of(flags: Tensor) -> set[tuple[int, ...]]:
    return set(map(tuple, flags.nonzero().tolist()))


def all_spans() -> set[Span]:
    ends = ((w, i, j) for w, n in enumerate(WORDS.tolist()) for i in range(n) for j in range(i, n))
    return {(w, i, j) for w, i, j in ends if j - i < WIDTHS}


def choose(
    gold: Tensor, sampling: NegativeSampling = "none", rate: float = 0.35, masked: Tensor | None = None
) -> Counted:
    return counted_spans(WORDS, (9, WIDTHS), gold, sampling=sampling, rate=rate, masked=masked)


def test_without_sampling_all_spans_count() -> None:
    counted = choose(rows((0, 1, 2)))
    assert spans_of(counted) == all_spans()
    every = {(w, i) for w, n in enumerate(WORDS.tolist()) for i in range(n)}
    assert places_of(counted.starts) == places_of(counted.ends) == every


@pytest.mark.parametrize("rate", [0.0, 0.35, 1.0, 50.0])
def test_a_sample_has_a_share_of_the_words_of_each_window(rate: float) -> None:
    gold = rows((0, 1, 2), (0, 4, 4), (3, 0, 8))  # the last one is wider than all spans
    counted = choose(gold, "uniform", rate)
    labelled = {(0, 1, 2), (0, 4, 4)}
    sampled = spans_of(counted) - labelled
    assert labelled <= spans_of(counted) <= all_spans()
    for window, words in enumerate(WORDS.tolist()):
        unlabelled = [one for one in all_spans() - labelled if one[0] == window]
        assert len([one for one in sampled if one[0] == window]) == min(int(rate * words) + 1, len(unlabelled))
    assert places_of(counted.starts) == {(w, i) for w, i, _ in sampled | labelled} | {(3, 0)}
    assert places_of(counted.ends) == {(w, j) for w, _, j in sampled | labelled} | {(3, 8)}


def test_samples_are_drawn_anew_and_every_unlabelled_span_may_be_drawn() -> None:
    torch.manual_seed(0)
    drawn = [frozenset(spans_of(choose(NOTHING, "uniform"))) for _ in range(200)]
    assert len(set(drawn)) > 150
    assert set().union(*drawn) == all_spans()


def test_spans_that_overlap_a_mention_are_negatives() -> None:
    gold = rows((0, 2, 3), (3, 0, 0))
    counted = choose(gold, "overlapping", 0.0)
    overlapping = {(w, i, j) for w, i, j in all_spans() if (w == 0 and i <= 3 and j >= 2) or (w == 3 and i == 0)}
    others = spans_of(counted) - overlapping
    assert overlapping <= spans_of(counted)
    assert {w for w, _, _ in others} >= {1, 2}  # one sampled span per window
    assert len(others) <= len(WORDS)
    assert places_of(counted.starts) >= {(0, 2), (0, 3), (3, 0)}
    assert len(places_of(counted.starts)) <= 3 + len(WORDS)  # the first words of the other negatives are not known


@given(st.integers(0, 10_000), st.sampled_from(["none", "uniform", "overlapping"]))
@settings(deadline=None, max_examples=40)
def test_masked_spans_are_neither_mentions_nor_negatives(seed: int, sampling: NegativeSampling) -> None:
    torch.manual_seed(seed)
    spans = sorted(all_spans())
    picked = torch.randperm(len(spans))[:8].tolist()
    gold, masked = rows(*(spans[i] for i in picked[:3])), rows(*(spans[i] for i in picked[3:]))
    counted = choose(gold, sampling, 0.5, masked)
    labelled, hidden = set(map(tuple, gold.tolist())), set(map(tuple, masked.tolist()))
    assert labelled <= spans_of(counted)
    assert not hidden & spans_of(counted)
    starts = {(w, i) for w, i, _ in labelled}
    ends = {(w, j) for w, _, j in labelled}
    assert starts <= places_of(counted.starts)
    assert ends <= places_of(counted.ends)
    assert not ({(w, i) for w, i, _ in hidden} - starts) & places_of(counted.starts)
    assert not ({(w, j) for w, _, j in hidden} - ends) & places_of(counted.ends)
    if sampling == "none":
        assert spans_of(counted) == all_spans() - hidden


@given(st.integers(0, 10_000), st.sampled_from(["none", "uniform", "overlapping"]))
@settings(deadline=None, max_examples=40)
def test_in_incomplete_windows_only_spans_that_overlap_a_mention_are_negatives(
    seed: int, sampling: NegativeSampling
) -> None:
    torch.manual_seed(seed)
    spans = sorted(all_spans())
    gold = [spans[i] for i in torch.randperm(len(spans))[:3].tolist()]
    complete = torch.rand(len(WORDS)) < 0.5
    counted = counted_spans(WORDS, (9, WIDTHS), rows(*gold), sampling=sampling, rate=99.0, complete=complete)

    def allowed(span: Span) -> bool:
        window, first, last = span
        overlaps = (w == window and i <= last and first <= j for w, i, j in gold)
        return bool(complete[window]) or any(overlaps)

    assert spans_of(counted) == set(filter(allowed, all_spans()))
    inside = {(w, word) for w, i, j in gold for word in range(i, j + 1)}
    for places in (places_of(counted.starts), places_of(counted.ends)):
        if sampling == "none":
            assert places == {(w, i) for w, i, _ in all_spans() if complete[w]} | inside
        assert inside <= places or sampling == "uniform"
