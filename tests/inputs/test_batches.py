"""Windows as padded arrays, with and without tokens before the text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onoma.inputs.batches import Batch, bucket_by_length, collate, pad_rows

TOKENIZER = SimpleNamespace(pad=9, cls=1, sep=2)
ARRAYS = ("ids", "mask", "first", "last", "words")

Window = list[list[int]]  # the tokens of each word
windows_of_words = st.lists(st.lists(st.integers(10, 99), min_size=1, max_size=3), max_size=5)
prefixes_of_tokens = st.lists(st.integers(100, 199), max_size=3)


class Row(NamedTuple):
    """A window of a batch, computed with plain loops."""

    tokens: list[int]
    first: list[int]
    last: list[int]


def obvious_row(window: Window, prefix: list[int]) -> Row:
    tokens, first, last = [TOKENIZER.cls, *prefix], [], []
    for word in window:
        first.append(len(tokens))
        tokens += word
        last.append(len(tokens) - 1)
    return Row([*tokens, TOKENIZER.sep], first, last)


def padded(row: list[int], length: int, value: int) -> list[int]:
    return row + [value] * (length - len(row))


def assert_equals_obvious(batch: Batch, rows: list[Row]) -> None:
    tokens = max((len(row.tokens) for row in rows), default=2)
    words = max((len(row.first) for row in rows), default=0)
    assert batch.ids.tolist() == [padded(row.tokens, tokens, TOKENIZER.pad) for row in rows]
    assert batch.mask.tolist() == [padded([1] * len(row.tokens), tokens, 0) for row in rows]
    assert batch.first.tolist() == [padded(row.first, words, 0) for row in rows]  # padding words point to [CLS]
    assert batch.last.tolist() == [padded(row.last, words, 0) for row in rows]
    assert batch.words.tolist() == [len(row.first) for row in rows]


def collated(windows: list[Window], prefixes: list[list[int]] | None = None) -> Batch:
    """Windows that follow each other without overlap in a sequence of words."""
    words = [word for window in windows for word in window]
    token_ids = np.array([token for word in words for token in word], np.int32)
    token_edges = np.cumsum([0, *map(len, words)])
    edges = np.cumsum([0, *map(len, windows)])
    texts = [f"text {number}" for number in range(len(windows))]
    offsets = [np.array([(at, at + 1) for at in range(len(window))]).reshape(-1, 2) for window in windows]
    return collate(token_ids, token_edges, edges[:-1], edges[1:], TOKENIZER, texts, offsets, prefixes or ())  # type: ignore[arg-type]


def equal(one: Batch, other: Batch) -> bool:
    arrays = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ARRAYS)
    return arrays and one.texts == other.texts and all(map(np.array_equal, one.offsets, other.offsets))


@given(st.lists(st.tuples(windows_of_words, prefixes_of_tokens), max_size=4))
def test_collate_agrees_with_plain_loops(rows: list[tuple[Window, list[int]]]) -> None:
    batch = collated([window for window, _ in rows], [prefix for _, prefix in rows])
    assert_equals_obvious(batch, [obvious_row(*row) for row in rows])


@given(windows_of_words, st.data())
def test_windows_may_overlap_and_come_in_any_order(words: Window, data: st.DataObject) -> None:
    edges = st.tuples(st.integers(0, len(words)), st.integers(0, len(words))).map(sorted)
    windows = data.draw(st.lists(edges, max_size=5))
    start, end = (np.array([window[side] for window in windows], np.int64) for side in (0, 1))
    token_ids = np.array([token for word in words for token in word], np.int32)
    token_edges = np.cumsum([0, *map(len, words)])
    batch = collate(token_ids, token_edges, start, end, TOKENIZER, [], [])  # type: ignore[arg-type]
    assert_equals_obvious(batch, [obvious_row(words[a:b], []) for a, b in windows])


@given(st.lists(windows_of_words, min_size=1, max_size=4), prefixes_of_tokens)
def test_a_prefix_can_be_inserted_into_a_batch(windows: list[Window], prefix: list[int]) -> None:
    plain, unchanged = collated(windows), collated(windows)
    assert equal(plain.with_prefix(prefix), collated(windows, [prefix] * len(windows)))
    assert equal(plain, unchanged)


@given(st.lists(windows_of_words, min_size=1, max_size=5), st.data())
def test_some_windows_of_a_batch_are_a_batch_without_needless_padding(
    windows: list[Window], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(windows) - 1), min_size=1, max_size=5))
    batch = collated(windows)
    taken = batch.take(np.array(rows, np.int64))
    assert_equals_obvious(taken, [obvious_row(windows[row], []) for row in rows])
    assert list(taken.texts) == [batch.texts[row] for row in rows]
    assert [one.tolist() for one in taken.offsets] == [batch.offsets[row].tolist() for row in rows]


@given(st.lists(st.lists(st.integers(10, 99), max_size=6), max_size=5))
def test_padded_rows_agree_with_plain_loops(rows: list[list[int]]) -> None:
    ids, mask = pad_rows(rows, 9)
    longest = max(map(len, rows), default=0)
    assert ids.tolist() == [padded(row, longest, 9) for row in rows]
    assert mask.tolist() == [padded([1] * len(row), longest, 0) for row in rows]


@given(
    st.lists(st.integers(0, 40), max_size=40),
    st.integers(1, 8),
    st.none() | st.integers(1, 200),
    st.integers(1, 4),
    st.integers(0, 100),
    st.none() | st.integers(0, 50),
)
def test_buckets_hold_every_window_once_and_respect_their_limits(
    lengths: list[int], max_windows: int, max_tokens: int | None, workers: int, min_tokens: int, call_tokens: int | None
) -> None:
    batches = bucket_by_length(
        lengths, max_windows, max_tokens, workers=workers, min_tokens=min_tokens, call_tokens=call_tokens
    )
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= max_windows for batch in batches)
    if max_tokens is not None:
        padded_sizes = (len(batch) * max(lengths[row] for row in batch) for batch in batches if len(batch) > 1)
        assert all(size <= max_tokens for size in padded_sizes)
    assert [lengths[row] for batch in batches for row in batch.tolist()] == sorted(lengths, reverse=True)
    assert all(len(batch) <= -(-len(lengths) // workers) for batch in batches)  # one worker's share, rounded up


@given(st.lists(st.integers(1, 40), min_size=1, max_size=40), st.integers(0, 50))
def test_batches_end_earlier_where_that_costs_less(lengths: list[int], call_tokens: int) -> None:
    def cost(batches: list[np.ndarray]) -> int:
        return sum(len(batch) * max(lengths[row] for row in batch) + call_tokens for batch in batches)

    full = bucket_by_length(lengths, len(lengths))
    assert cost(bucket_by_length(lengths, len(lengths), call_tokens=call_tokens)) <= cost(full)


def test_with_several_workers_the_last_batches_are_small() -> None:
    sizes = [len(batch) for batch in bucket_by_length([10] * 400, 64, 256, workers=4, min_tokens=64)]
    assert sizes[0] == 25  # 256 tokens
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes[-4:-1]) == {6}  # 64 tokens
    assert {len(batch) for batch in bucket_by_length([10] * 400, 64, 256)} == {25}
