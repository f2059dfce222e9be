"""UIE as a peer: how its probabilities become mentions, and that all of a long text is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from uie import MAX_TOKENS, UIE, join
from uie_stand_in import save_uie

REAL = Path(os.environ.get("ENCODERS", "")) / "uie-nano-zh"


def slow_join(starts: Sequence[bool], ends: Sequence[bool]) -> list[tuple[int, int]]:
    """Every last token with the nearest first one that has no last token in between."""
    pairs = []
    for last in range(len(ends)):
        for first in range(last, -1, -1):
            if first < last and ends[first]:
                break
            if starts[first] and ends[last]:
                pairs.append((first, last))
                break
    return pairs


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12))
def test_a_first_token_is_joined_with_the_nearest_last_one(tokens: list[tuple[bool, bool]]) -> None:
    starts, ends = [one for one, _ in tokens], [one for _, one in tokens]
    found = join(np.array(starts, np.float32), np.array(ends, np.float32), 0.5)
    assert found == slow_join(starts, ends)


def test_mentions_have_the_offsets_of_the_text_and_all_labels_are_asked_for(tmp_path: Path) -> None:
    model = UIE(save_uie(tmp_path / "uie", first="王李", last="芳明", probability=0.8))
    texts = ["王芳和李小明。", "没有人。", "明天"]
    found = model.extract(texts, ["人名（王芳）", "地点"], batch_size=2)  # what is in a label is not a mention
    assert [(texts[0][one.start : one.end], one.label) for one in found[0]] == [
        ("王芳", "人名（王芳）"),
        ("王芳", "地点"),
        ("李小明", "人名（王芳）"),
        ("李小明", "地点"),
    ]
    assert found[1:] == [[], []]
    assert found[0][0].score == pytest.approx(0.64)
    assert model.extract(texts, ["地点"], threshold=0.9) == [[], [], []]


def test_all_of_a_long_text_is_read(tmp_path: Path) -> None:
    text = "王芳，" * MAX_TOKENS
    spans = UIE(save_uie(tmp_path / "uie", first="王", last="芳")).extract([text, "王芳"], ["人名"])
    assert {text[one.start : one.end] for one in spans[0]} == {"王芳"}
    windows = 3 * MAX_TOKENS // (MAX_TOKENS - 5) + 1
    assert MAX_TOKENS - windows <= len(spans[0]) <= MAX_TOKENS  # one may be cut between two windows
    assert len(set(spans[0])) == len(spans[0])
    assert len(spans[1]) == 1


@pytest.mark.skipif(not (REAL / "model.onnx").is_file(), reason="ENCODERS names no folder with uie-nano-zh")
def test_the_real_one_finds_people_and_places() -> None:
    text = "李雷上周从上海坐火车去了广州。"
    (found,) = UIE(REAL).extract([text], ["人物", "城市"])
    assert {(text[one.start : one.end], one.label) for one in found} == {
        ("李雷", "人物"),
        ("上海", "城市"),
        ("广州", "城市"),
    }
