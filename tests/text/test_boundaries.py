"""Word boundaries without segmenting the whole text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.text import segment
from onoma.text.boundaries import are_boundaries, character_kinds, kinds_of, possible_boundaries

PARTS = (
    *("a", "B", "paris", "x1", "5", "5mg", "3.5", "1,000", "10:30", "U.S.", "O'Brien", "'s", "’ll", ".", ",", "-", "("),
    *(" ", "\n", "\u3000", "北", "京", "か", "\u3099", "ｶ", "ﾞ", "ก", "ำ", "e\u0301", "\u0301", "Ａ", "５", "é", "ß"),
    *("see http://a.org/b", "www.a.de", "tom@b.org", "😀", "🇩🇪", "_", "\u200d", "\u00ad", "한국", "कि"),
    *(
        "Ｂｃ",
        "．",
        "，",
        "：",
        "＠",
        "ｍｇ",
        "３．５",
        "１０：３０",
        "ｔｏｍ＠ｂ．ｏｒｇ",
        "ｗｗｗ．ａ．ｄｅ",
        "ｈｔｔｐ：／／ａ．ｂ",
    ),
)
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def codes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


@settings(max_examples=300)
@given(TEXTS)
def test_positions_at_which_a_boundary_is_possible_are_judged_as_by_segmenting_the_text(text: str) -> None:
    kinds = kinds_of(codes(text))
    positions = np.flatnonzero(possible_boundaries(kinds))
    edges = {0, len(text), *segment(text).ravel().tolist()}
    spaces = {place for place, one in enumerate(f"{text} ") if one.isspace() or text[:place][-1:].isspace()}
    expected = [position in edges | spaces for position in positions.tolist()]
    if text:
        assert are_boundaries(text, kinds, positions).tolist() == expected


@given(st.lists(st.sampled_from([part for part in PARTS if not {*".@🇩'’．＠"} & {*part}]), max_size=12).map("".join))
def test_every_boundary_is_possible(text: str) -> None:
    """Except addresses that start behind a letter, marks on flags and clitics, and words of over 128 characters."""
    possible = possible_boundaries(kinds_of(codes(text)))
    assert possible[segment(text).ravel()].all()


@pytest.mark.parametrize("text", ["ab", "a1", "1a2", "été", "e\u0301", "x_y", "한국", "か\u3099"])
def test_no_boundary_is_possible_inside_a_word(text: str) -> None:
    inside = possible_boundaries(kinds_of(codes(text)))[1:-1]
    assert not inside[-1]


def test_addresses_may_contain_characters_of_scripts_without_spaces() -> None:
    text = "กข ดูที่http://กข.org/ขค กข"
    kinds = kinds_of(codes(text))
    found = {text.index(one) for one in ("ดู", "http")}
    assert are_boundaries(text, kinds, np.array(sorted(found))).all()
    inside = text.index("ขค")
    assert are_boundaries(text, kinds, np.array([inside])).tolist() == [inside in segment(text).ravel()] == [False]


def test_kinds_cover_all_code_points() -> None:
    assert len(character_kinds()) == 0x110000
    assert character_kinds()[ord("\U00020000")] == character_kinds()[ord("北")]
