"""Windows side by side: what stands where, with and without tokens before the text."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onoma.batches import Batch, bucket, collate, put_before
from onoma.subwords import Pieces

SUBWORDS = SimpleNamespace(pad=9, first=1, last=2)
FIELDS = ("ids", "mask", "first", "last", "words")

Words = list[list[int]]  # a window: the tokens of each word
words = st.lists(st.lists(st.integers(10, 99), min_size=1, max_size=3), max_size=5)
prefixes = st.lists(st.integers(100, 199), max_size=3)


def collated(windows: list[Words], before: list[list[int]] | None = None) -> Batch:
    pieces = [
        Pieces(np.array([token for word in one for token in word], np.int32), np.array([*map(len, one)], np.int32))
        for one in windows
    ]
    return collate(pieces, SUBWORDS, before or ())  # type: ignore[arg-type]


def same(one: Batch, other: Batch) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


@given(st.lists(st.tuples(words, prefixes), min_size=1, max_size=4))
def test_every_word_is_found_in_its_window(rows: list[tuple[Words, list[int]]]) -> None:
    batch = collated([window for window, _ in rows], [prefix for _, prefix in rows])
    for row, (window, prefix) in enumerate(rows):
        text = [1, *prefix, *(token for word in window for token in word), 2]
        assert batch.ids[row].tolist() == text + [9] * (batch.ids.shape[1] - len(text))
        assert batch.mask[row].tolist() == [1] * len(text) + [0] * (batch.ids.shape[1] - len(text))
        assert batch.words[row] == len(window)
        for place, word in enumerate(window):
            first, last = batch.first[row, place], batch.last[row, place]
            assert batch.ids[row, first : last + 1].tolist() == word
        assert not batch.first[row, len(window) :].any()  # words that are not there point to [CLS]
        assert not batch.last[row, len(window) :].any()
    assert batch.ids.shape[1] == batch.mask.sum(1).max()
    assert batch.first.shape[1] == batch.words.max()


@given(st.lists(words, min_size=1, max_size=4), prefixes)
def test_tokens_put_before_a_batch_are_those_of_windows_with_a_prefix(windows: list[Words], prefix: list[int]) -> None:
    plain = collated(windows)
    copied = Batch(*(getattr(plain, name).copy() for name in FIELDS))
    assert same(put_before(plain, prefix), collated(windows, [prefix] * len(windows)))
    assert same(plain, copied)  # which has not been changed


@given(st.lists(words, min_size=1, max_size=5), st.data())
def test_some_windows_of_a_batch_are_as_they_were(windows: list[Words], data: st.DataObject) -> None:
    batch = collated(windows)
    rows = np.array(data.draw(st.lists(st.integers(0, len(windows) - 1), max_size=5)), np.int64)
    taken = batch.take(rows)
    for name in FIELDS:
        assert getattr(taken, name).tolist() == [getattr(batch, name)[row].tolist() for row in rows]


@given(st.lists(st.integers(0, 40), max_size=20), st.integers(1, 5), st.none() | st.integers(1, 60))
def test_buckets_hold_every_window_once_and_keep_their_limits(lengths: list[int], size: int, most: int | None) -> None:
    batches = bucket(lengths, size, most)
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size for batch in batches)
    if most is not None:
        assert all(len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= most for batch in batches)
    longest = [lengths[row] for batch in batches for row in batch.tolist()]
    assert longest == sorted(lengths, reverse=True)
