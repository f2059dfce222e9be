from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onoma.decoding import Proposals, stitch
from onoma.text import cut_windows

Row = tuple[int, int, int, int, float]
ROW = st.tuples(*[st.integers(0, 2)] * 4, st.sampled_from([0.1, 0.5, 0.9]))


def proposals(rows: list[Row]) -> Proposals:
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return Proposals(*(np.array(column, np.int64) for column in columns[:4]), np.array(columns[4], np.float32))


def rows_of(found: Proposals) -> list[tuple[float, ...]]:
    return list(zip(*(column.tolist() for column in found), strict=True))


@given(st.lists(st.lists(ROW, max_size=4), max_size=3))
def test_concatenated_rows_keep_their_order(parts: list[list[Row]]) -> None:
    joined = Proposals.concatenate(proposals(part) for part in parts)
    assert rows_of(joined) == rows_of(proposals([row for part in parts for row in part]))
    assert joined.score.dtype == np.float32


def test_rows_are_taken_by_index_or_mask() -> None:
    three = proposals([(0, 1, 1, 0, 0.9), (0, 2, 2, 1, 0.8), (1, 0, 0, 0, 0.7)])
    assert three.take(np.array([2, 0])).window.tolist() == [1, 0]
    assert three.take(np.array([False, True, False])).first.tolist() == [2]


def test_thresholds_are_one_number_or_one_per_type() -> None:
    three = proposals([(0, 1, 1, 0, 0.9), (0, 2, 2, 1, 0.8), (1, 0, 0, 0, 0.7)])
    assert three.reaches(0.8).tolist() == [True, True, False]  # 0.8 in float32 reaches 0.8
    assert three.above([0.6, 0.85]).score.tolist() == three.score[[0, 2]].tolist()


def test_a_score_that_is_not_a_number_reaches_no_threshold() -> None:
    assert not proposals([(0, 0, 0, 0, float("nan"))]).reaches(0.0).any()


def test_stitching_reports_each_mention_once() -> None:
    windows = cut_windows([1] * 50, 20, 6)
    spans = [(first, first + width - 1) for first in range(50) for width in range(1, 7) if first + width <= 50]
    rows = [
        (window, first - start, last - start, 0, 0.9)
        for window, (start, end) in enumerate(zip(windows.start.tolist(), windows.end.tolist(), strict=True))
        for first, last in spans
        if start <= first and last < end
    ]
    assert len(rows) > len(spans)  # in the overlap of windows, a span is found twice
    stitched = stitch(proposals(rows), windows)
    assert sorted(zip(stitched.first.tolist(), stitched.last.tolist(), strict=True)) == spans
