"""Windows: coverage, budget, overlap and ownership of spans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onoma import OnomaError
from onoma.text import cut_windows

from .repeated import in_linear_time

COSTS = st.lists(st.integers(1, 5), max_size=60)
Case = tuple[list[int], int, int, NDArray[np.int64]]  # costs, budget, overlap, sentence starts


@st.composite
def window_cases(draw: st.DrawFn) -> Case:
    costs = draw(COSTS)
    breaks = sorted(draw(st.sets(st.integers(0, max(len(costs) - 1, 0)), max_size=8)) | {0}) if costs else []
    return costs, draw(st.integers(5, 30)), draw(st.integers(0, 8)), np.array(breaks, np.int64)


@given(window_cases())
def test_windows_cover_every_word_within_the_budget(case: Case) -> None:
    costs, budget, overlap, breaks = case
    windows = cut_windows(costs, budget, overlap, breaks)
    covered = set()
    for start, end in zip(windows.start, windows.end, strict=True):
        assert sum(costs[start:end]) <= budget
        covered.update(range(start, end))
    assert covered == set(range(len(costs)))
    assert (np.diff(windows.start) > 0).all()
    assert (np.diff(windows.end) > 0).all()


@settings(max_examples=30)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(40, 300), st.integers(0, 100))
def test_windows_of_repeated_patterns_are_cut_in_linear_time(pattern: list[int], budget: int, overlap: int) -> None:
    costs = np.resize(pattern, 4_000)
    breaks = np.arange(0, 4_000, len(pattern))
    windows = in_linear_time(lambda: cut_windows(costs, budget, overlap, breaks), len(costs))
    assert windows.start[0] == 0
    assert windows.end[-1] == len(costs)
    assert (windows.start[1:] <= windows.end[:-1]).all()


@given(window_cases())
def test_every_span_up_to_the_overlap_belongs_to_one_window_that_contains_it(case: Case) -> None:
    costs, budget, overlap, breaks = case
    windows = cut_windows(costs, budget, overlap, breaks)
    shared = min((windows.end[:-1] - windows.start[1:]).tolist(), default=len(costs))
    for first in range(len(costs)):
        for last in range(first, min(first + shared, len(costs))):
            owners = [i for i in range(len(windows)) if windows.owns(i, first, last)]
            assert len(owners) == 1
            assert windows.start[owners[0]] <= first
            assert last < windows.end[owners[0]]


def test_windows_share_the_overlap_if_it_fits_into_half_of_the_budget() -> None:
    windows = cut_windows([1] * 1000, 100, 30)
    assert set((windows.end[:-1] - windows.start[1:]).tolist()) == {30}


def test_windows_end_at_a_sentence_boundary_in_their_last_quarter() -> None:
    windows = cut_windows([1] * 30, 12, 0, np.array([0, 10, 21]))
    assert windows.end.tolist() == [10, 21, 30]


def test_a_word_over_the_budget_is_an_error() -> None:
    with pytest.raises(OnomaError, match="word 1 costs 9"):
        cut_windows([1, 9, 1], 5)


@pytest.mark.parametrize(("budget", "overlap"), [(0, 0), (5, -1)])
def test_a_budget_below_one_or_a_negative_overlap_is_an_error(budget: int, overlap: int) -> None:
    with pytest.raises(OnomaError, match="budget of at least 1 and an overlap of at least 0"):
        cut_windows([1, 1], budget, overlap)


def test_no_words_give_no_windows() -> None:
    assert len(cut_windows([], 5, 2)) == 0
