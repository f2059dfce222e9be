"""The plan: every row in exactly one shard, and groups that depend on the file alone."""

from __future__ import annotations

import gzip
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.scale import plan
from onoma.scale.plan import ShardRows, cut_shards, scan
from onoma.scale.rows import Row, open_rows
from tiny_rows import write_lines

SIZES = st.lists(st.integers(1, 60_000), max_size=60)


def rows(sizes: list[int]) -> list[Row]:
    return [Row(number, size, sum(sizes[:number])) for number, size in enumerate(sizes)]


@given(st.lists(SIZES, max_size=3), st.none() | st.integers(1, 40))
def test_every_row_is_in_one_shard_which_starts_with_a_group(files: list[list[int]], per_shard: int | None) -> None:
    plans = [scan(iter(rows(sizes))) for sizes in files]
    shards = cut_shards(plans, per_shard)
    for number, sizes in enumerate(files):
        own = [shard for shard in shards if shard.file == number]
        covered = [row for shard in own for row in range(shard.first, shard.first + shard.rows)]
        assert covered == list(range(len(sizes)))
        assert {shard.first for shard in own} <= set(plans[number].first)
        assert [shard.offset for shard in own] == [[0, *accumulate(sizes)][shard.first] for shard in own]


def test_a_group_ends_with_its_rows_or_its_bytes() -> None:
    assert list(scan(iter(rows([1] * 600))).first) == [0, 256, 512]
    assert list(scan(iter(rows([60_000, 60_000, 1, 200_000, 1]))).first) == [0, 2, 4]


def test_shards_grow_with_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MANY_SHARDS", 2)
    monkeypatch.setattr(plan, "SHARD_ROWS", 256)
    assert [shard.rows for shard in cut_shards([scan(iter(rows([1] * 4000)))])] == [2048, 1952]
    assert [shard.rows for shard in cut_shards([scan(iter(rows([1] * 600)))])] == [512, 88]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_shards_are_read_in_any_order(tmp_path: Path, suffix: str) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"text": f"text {number}"} for number in range(1000)])
    if suffix.endswith(".gz"):
        (tmp_path / f"a{suffix}").write_bytes(gzip.compress(path.read_bytes()))
    reader = open_rows(str(tmp_path / f"a{suffix}"), "jsonl", "text")
    shards = cut_shards([scan(reader.sizes())], 1)
    source = ShardRows([reader])
    for number in (0, 2, 3, 1, 1, 0):
        shard = shards[number]
        assert [row.text for row in source.read(shard)] == [
            f"text {row}" for row in range(shard.first, shard.first + shard.rows)
        ]
    unfinished = source.read(shards[1])
    next(unfinished)  # as after an error in the middle of a shard
    assert len(list(source.read(shards[1]))) == 256
