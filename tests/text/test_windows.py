import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import OnomaError
from onoma.text import cut_windows, segment, sentence_starts, sentence_windows

COSTS = st.lists(st.integers(1, 5), max_size=60)


@st.composite
def window_cases(draw):
    costs = draw(COSTS)
    breaks = sorted(draw(st.sets(st.integers(0, max(len(costs) - 1, 0)), max_size=8)) | {0}) if costs else []
    return costs, draw(st.integers(5, 30)), draw(st.integers(0, 8)), np.array(breaks, np.int64)


@given(window_cases())
def test_windows_cover_every_word_within_budget_and_always_move_on(case):
    costs, budget, overlap, breaks = case
    windows = cut_windows(costs, budget, overlap, breaks)
    covered = set()
    for start, end in zip(windows.start, windows.end, strict=True):
        assert sum(costs[start:end]) <= budget
        covered.update(range(start, end))
    assert covered == set(range(len(costs)))
    assert (np.diff(windows.start) > 0).all()
    assert (np.diff(windows.end) > 0).all()


@given(window_cases())
def test_every_span_up_to_the_overlap_has_one_owner_that_holds_it(case):
    costs, budget, overlap, breaks = case
    windows = cut_windows(costs, budget, overlap, breaks)
    shared = min((windows.end[:-1] - windows.start[1:]).tolist(), default=len(costs))
    for first in range(len(costs)):
        for last in range(first, min(first + shared, len(costs))):
            owners = [i for i in range(len(windows)) if windows.owns(i, first, last)]
            assert len(owners) == 1
            assert windows.start[owners[0]] <= first
            assert last < windows.end[owners[0]]


def test_overlap_is_kept_where_half_of_the_budget_pays_for_it():
    windows = cut_windows([1] * 1000, 100, 30)
    assert set((windows.end[:-1] - windows.start[1:]).tolist()) == {30}


def test_windows_end_with_a_sentence_if_one_ends_near():
    windows = cut_windows([1] * 30, 12, 0, np.array([0, 10, 21]))
    assert windows.end.tolist() == [10, 21, 30]


def test_a_word_over_the_budget_is_an_error_not_a_cut():
    with pytest.raises(OnomaError, match="word 1 costs 9"):
        cut_windows([1, 9, 1], 5)


def test_sentence_windows():
    windows = sentence_windows([1] * 10, 4, 1, np.array([0, 3, 4]))
    assert list(zip(windows.start.tolist(), windows.end.tolist(), strict=True)) == [(0, 3), (3, 4), (4, 8), (7, 10)]
    assert len(sentence_windows([], 4, 1, np.array([], int))) == 0


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Dr. No came. He left! Why?", ["Dr", "He", "Why"]),
        ("J. Smith paid 3.5 euros. “Fine.” She went.", ["J", "“", "She"]),
        ("他来了。她走了！好", ["他", "她", "好"]),
        ("Title\n\nFirst line\ngoes on", ["Title", "First"]),
        ("", []),
    ],
)
def test_sentence_starts(text, starts):
    words = segment(text)
    assert [text[slice(*words[i])] for i in sentence_starts(text, words)] == starts
