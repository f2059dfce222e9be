"""The spans of SCL-RAI's picture: mentions and as many other spans."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import scl_rai_vectors as pictures
from onoma import Document
from onoma.text.words import segment


def test_other_spans_are_words_and_no_mentions() -> None:
    document = Document.from_spans("张伟在北京大学学习。", [(0, 2, "人物"), (3, 7, "大学")])
    empty = Document.from_spans("", [])
    marked, nothing = pictures.with_other_spans([document, empty], np.random.default_rng(0))
    assert not nothing.entities
    assert marked.annotated is None
    mentions = {(one.start, one.end) for one in document.entities}
    others = [one for one in marked.entities if one.label == pictures.OTHER]
    assert 0 < len(others) <= len(mentions)
    words = segment(document.text)
    starts, ends = set(words[:, 0].tolist()), set(words[:, 1].tolist())
    for one in others:
        assert (one.start, one.end) not in mentions
        assert one.start in starts
        assert one.end in ends
        assert document.text[one.start : one.end] == one.text
    assert {(one.start, one.end) for one in marked.entities} > mentions


def test_both_kinds_of_spans_are_drawn_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "EACH", 5)
    is_mention = np.arange(100) % 10 == 0
    rows = pictures.balanced(is_mention, np.random.default_rng(0))
    assert is_mention[rows].tolist().count(True) == 5
    assert len(rows) == len(set(rows.tolist())) == 10
    assert (np.diff(rows) > 0).all()


def test_the_picture_has_a_panel_for_each_model() -> None:
    random = np.random.default_rng(0)
    vectors = {name: random.normal(size=(80, 8)).astype(np.float16) for name in pictures.PANELS}
    figure = pictures.draw({**vectors, "is_mention": np.arange(80) % 2 == 0})
    assert [one.get_title() for one in figure.axes] == list(pictures.PANELS.values())
    assert all(sum(len(dots.get_offsets()) for dots in one.collections) == 80 for one in figure.axes)
