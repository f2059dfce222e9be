"""Tags of mentions and mentions of tags, in both schemes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.systems.blocks.tagging import TagScheme, longest_mentions
from onoma.text.tags import encode_bio
from systems.blocks.all_paths import is_valid, mentions, tag_names, valid_paths

SCHEMES = [TagScheme(2, "bio"), TagScheme(2, "bmes")]
NOTHING = np.zeros((0, 4), np.int64)
Row = tuple[int, int, int, int]


def rows(*mentions: Row) -> np.ndarray:
    return np.array(mentions, np.int64).reshape(-1, 4)


@st.composite
def windows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Mentions that do not overlap, words of the windows, and a width with some padding."""
    found, words = [], []
    for window in range(draw(st.integers(1, 4))):
        position = 0
        for gap, width, kind in draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(0, 2)))):
            found.append((window, position + gap, position + gap + width - 1, kind))
            position += gap + width
        words.append(position + draw(st.integers(0, 2)))
    return rows(*found), np.array(words), max(words) + draw(st.integers(0, 2))


@given(windows(), st.sampled_from(["bio", "bmes"]))
def test_the_tags_of_any_flat_mentions_decode_to_them(case: tuple[np.ndarray, np.ndarray, int], name: str) -> None:
    gold, words, width = case
    scheme = TagScheme(3, name)  # type: ignore[arg-type]
    tags = scheme.encode(gold, words, width)
    assert tags.shape == (len(words), width)
    assert tags.dtype == np.int64
    assert np.stack(scheme.spans(tags, words), axis=1).tolist() == gold.tolist()
    shuffled = np.random.default_rng(0).permutation(gold)
    assert np.array_equal(scheme.encode(shuffled, words, width), tags)
    assert longest_mentions(gold).tolist() == gold.tolist()


@given(windows())
def test_bio_tags_are_those_of_the_scheme(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    gold, words, width = case
    scheme = TagScheme(3, "bio")
    names = np.array(tag_names(scheme))
    for window, tags in enumerate(names[scheme.encode(gold, words, width)].tolist()):
        spans = [(first, last + 1, str(kind)) for number, first, last, kind in gold.tolist() if number == window]
        assert tags == encode_bio(spans, width)


def test_bmes_tags_of_some_mentions() -> None:
    scheme = TagScheme(2, "bmes")
    tags = scheme.encode(rows((0, 0, 0, 1), (0, 1, 2, 0), (1, 0, 3, 1)), np.array([4, 4]), 5)
    names = np.array(tag_names(scheme))[tags].tolist()
    assert names == [["S-1", "B-0", "E-0", "O", "O"], ["B-1", "M-1", "M-1", "E-1", "O"]]


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
def test_the_allowed_paths_are_those_that_encode_their_mentions(scheme: TagScheme) -> None:
    for tags in product(range(scheme.tags), repeat=3):
        allowed = scheme.may_start[tags[0]] and scheme.may_end[tags[-1]] and scheme.allowed[tags[:-1], tags[1:]].all()
        assert bool(allowed) == is_valid(scheme, tags)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
def test_mentions_of_all_valid_paths(scheme: TagScheme) -> None:
    paths = np.array(valid_paths(scheme, 4))
    found = np.stack(scheme.spans(paths, np.full(len(paths), 4)), axis=1).tolist()
    expected = [
        [number, first, end - 1, int(label)]
        for number, tags in enumerate(paths.tolist())
        for first, end, label in mentions(scheme, tuple(tags))
    ]
    assert found == expected


def test_tags_behind_the_last_word_are_ignored() -> None:
    window, first, last, kind = TagScheme(1, "bio").spans(np.array([[1, 2, 2, 1]]), np.array([2]))
    assert (window.tolist(), first.tolist(), last.tolist(), kind.tolist()) == ([0], [0], [1], [0])


def test_of_nested_mentions_the_longest_is_encoded() -> None:
    scheme = TagScheme(3, "bio")
    gold = rows((0, 0, 1, 2), (0, 0, 3, 0), (0, 5, 5, 1), (1, 0, 1, 2))
    assert scheme.encode(gold, np.array([6, 2]), 6).tolist() == [[1, 2, 2, 2, 0, 3], [5, 6, 0, 0, 0, 0]]
    assert len(gold) - len(longest_mentions(gold)) == 1


def test_of_crossing_mentions_of_one_length_the_earlier_is_encoded() -> None:
    gold = rows((0, 1, 2, 1), (0, 0, 1, 0))
    assert TagScheme(2, "bio").encode(gold, np.array([3]), 3).tolist() == [[1, 2, 0]]


def test_windows_without_mentions_or_words() -> None:
    scheme = TagScheme(2, "bmes")
    assert scheme.encode(NOTHING, np.array([2, 0]), 2).tolist() == [[0, 0], [0, 0]]
    assert scheme.encode(NOTHING, np.array([0]), 0).shape == (1, 0)
    assert [len(column) for column in scheme.spans(np.zeros((2, 3), np.int64), np.array([3, 0]))] == [0] * 4
    assert scheme.possible(NOTHING, np.array([1, 0]), 1, np.ones((2, 2), np.bool_)).sum() == 2


def test_schemes_are_values() -> None:
    assert TagScheme(2, "bio") == TagScheme(2, "bio") != TagScheme(2, "bmes")
    assert (TagScheme(4, "bio").tags, TagScheme(4, "bmes").tags) == (9, 17)
    assert TagScheme(2, "bmes").kinds.tolist() == [-1, 0, 0, 0, 0, 1, 1, 1, 1]


def is_consistent(
    scheme: TagScheme, tags: tuple[int, ...], gold: list[Row], known: list[bool], masked: set[int]
) -> bool:
    """Whether tags have all gold mentions, and others only of unknown types or inside masked words."""
    found = {(first, end - 1, int(label)) for first, end, label in mentions(scheme, tags)}
    annotated = {(first, last, kind) for _, first, last, kind in gold}
    others = found - annotated
    return annotated <= found and all(
        not known[kind] or set(range(first, last + 1)) <= masked for first, last, kind in others
    )


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
@pytest.mark.parametrize("known", [[True, True], [True, False], [False, False]], ids=str)
@pytest.mark.parametrize("gold", [[], [(0, 1, 1, 0)], [(0, 1, 2, 0)], [(0, 0, 0, 0), (0, 1, 1, 0)]], ids=str)
@pytest.mark.parametrize("masked", [None, [(0, 2, 3)], [(0, 0, 1)]], ids=str)
def test_possible_paths_are_those_that_an_incomplete_annotation_allows(
    scheme: TagScheme, known: list[bool], gold: list[Row], masked: list[tuple[int, int, int]] | None
) -> None:
    hidden = None if masked is None else np.array(masked)
    possible = scheme.possible(rows(*gold), np.array([4]), 5, np.array([known]), hidden)
    assert possible.shape == (1, 5, scheme.tags)
    words = {place for _, first, last in masked or [] for place in range(first, last + 1)}
    found = {tags for tags in valid_paths(scheme, 4) if all(possible[0, place, tag] for place, tag in enumerate(tags))}
    assert found == {tags for tags in valid_paths(scheme, 4) if is_consistent(scheme, tags, gold, known, words)}
    assert found
    assert possible[0, 4].tolist() == [True] + [False] * (scheme.tags - 1)  # padding


def test_each_window_has_its_own_annotated_types() -> None:
    scheme = TagScheme(2, "bio")
    possible = scheme.possible(rows((1, 0, 0, 1)), np.array([1, 2]), 2, np.array([[True, False], [False, True]]))
    assert possible[:, 0].astype(int).tolist() == [[1, 0, 0, 1, 1], [0, 0, 0, 1, 0]]
    assert possible[1, 1].astype(int).tolist() == [1, 1, 1, 0, 0]
