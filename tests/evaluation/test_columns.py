"""Overlaps and codes of columns."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onoma.evaluation.columns import encode, overlap_any, overlap_pairs

SPANS = st.lists(st.integers(0, 20).flatmap(lambda a: st.tuples(st.just(a), st.integers(a + 1, 25))), max_size=12)


def columns(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@given(SPANS, SPANS)
def test_overlaps_equal_those_of_comparing_all_pairs(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    pairs = {(i, j) for i, (a, b) in enumerate(left) for j, (c, d) in enumerate(right) if a < d and c < b}
    found = list(zip(*(column.tolist() for column in overlap_pairs(*columns(left), *columns(right))), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == pairs
    touched = {i for i, _ in pairs}
    assert overlap_any(*columns(left), *columns(right)).tolist() == [i in touched for i in range(len(left))]


ROWS = st.lists(st.tuples(*[st.sampled_from([0, 1, 2, 2**31, 2**40])] * 3), max_size=8)  # too large for one product


@given(ROWS, ROWS)
def test_codes_compare_as_the_rows_do(left: list[tuple[int, ...]], right: list[tuple[int, ...]]) -> None:
    tables = (tuple(np.array(rows, dtype=np.int64).reshape(-1, 3).T) for rows in (left, right))
    codes = np.concatenate(encode(*tables)).tolist()
    ranks = {row: rank for rank, row in enumerate(sorted(set(left + right)))}
    assert codes == [ranks[row] for row in left + right]


def test_a_span_over_a_long_document_does_not_take_quadratic_time() -> None:
    size = 50_000
    small = np.arange(size) * 10
    left = np.concatenate([[0], small]), np.concatenate([[size * 10], small + 5])
    right = np.concatenate([[0], small + 4]), np.concatenate([[size * 10], small + 6])
    start = time.perf_counter()
    first, _ = overlap_pairs(*left, *right)
    assert len(first) == 1 + size + size + size  # large and large, each large with each small, small and small
    assert time.perf_counter() - start < 10  # all pairs would be 2.5 billion steps
