"""Tag sequences of all schemes, compared with seqeval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities

from onoma.text.tags import PREFIXES, Span, decode_tags, encode_bio, is_tag

TAGS = ("O", *(f"{prefix}-{label}" for prefix in "BIES" for label in ("PER", "LOC", "per-son")))


@st.composite
def flat_spans(draw: st.DrawFn) -> tuple[int, list[Span]]:
    """The length of a sentence and spans in it that do not overlap; some of them are adjacent."""
    lengths = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("xy")), max_size=6))
    position, spans = 0, []
    for gap, length, label in lengths:
        spans.append((position + gap, position + gap + length, label))
        position += gap + length
    return position + draw(st.integers(0, 2)), spans


def encode(spans: list[Span], length: int, scheme: str) -> list[str]:
    """Tags of a scheme, given as its prefixes: start, inside, end, single token."""
    start, inside, last, single = scheme
    tags = ["O"] * length
    for first, end, label in spans:
        prefixes = [start, *[inside] * (end - first - 2), last] if end - first > 1 else [single]
        tags[first:end] = [f"{prefix}-{label}" for prefix in prefixes]
    return tags


@given(flat_spans(), st.sampled_from(["BIIB", "BIES", "BMES", "BILU"]))
def test_the_tags_of_any_flat_spans_decode_to_them(case: tuple[int, list[Span]], scheme: str) -> None:
    length, spans = case
    assert decode_tags(encode(spans, length, scheme)) == spans


@given(flat_spans())
def test_bio_tags_are_those_of_the_scheme(case: tuple[int, list[Span]]) -> None:
    length, spans = case
    assert encode_bio(spans, length) == encode(spans, length, "BIIB")
    assert encode_bio(reversed(spans), length) == encode_bio(spans, length)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-X I-X O B-X", [(0, 2, "X"), (3, 4, "X")]),  # IOB2
        ("I-X I-X B-X O", [(0, 2, "X"), (2, 3, "X")]),  # IOB1: B only between adjacent spans
        ("I-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),  # another label starts another span
        ("B-X I-Y I-X", [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
        ("B-X O I-X", [(0, 1, "X"), (2, 3, "X")]),
        ("B-X I-X E-X S-Y", [(0, 3, "X"), (3, 4, "Y")]),  # BIOES
        ("O E-X I-X E-X", [(1, 2, "X"), (2, 4, "X")]),  # E ends a span that was not started
        ("E-X I-X", [(0, 1, "X"), (1, 2, "X")]),
        ("L-X I-X", [(0, 1, "X"), (1, 2, "X")]),
        ("S-X I-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B-X S-X M-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("B-X U-X I-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("B-X M-X E-X B-X M-X", [(0, 3, "X"), (3, 5, "X")]),  # BMES, not closed
        ("B-X I-X L-X U-X", [(0, 3, "X"), (3, 4, "X")]),  # BILOU
        ("B-a-b I-a-b", [(0, 2, "a-b")]),
        ("", []),
        ("O O", []),
    ],
)
def test_inconsistent_tags_are_decoded_as_in_conlleval(tags: str, expected: list[Span]) -> None:
    assert decode_tags(tags.split()) == expected


@given(st.lists(st.sampled_from(TAGS), max_size=12))
def test_any_tags_decode_as_in_the_default_mode_of_seqeval(tags: list[str]) -> None:
    assert decode_tags(tags) == [(first, last + 1, label) for label, first, last in get_entities(tags)]


@given(flat_spans(), st.sampled_from([("BIIB", IOB2), ("BIES", IOBES), ("BILU", BILOU)]))
def test_valid_tags_decode_as_in_the_strict_mode_of_seqeval(
    case: tuple[int, list[Span]], scheme: tuple[str, type]
) -> None:
    length, spans = case
    tags = encode(spans, length, scheme[0])
    (strict,) = Entities([tags], scheme[1]).entities
    assert decode_tags(tags) == sorted((one.start, one.end, one.tag) for one in strict)


@given(st.lists(st.sampled_from(["O", "I-x", "I-y", "B-x", "B-y"]), max_size=12))
def test_iob1_tags_decode_as_in_the_strict_mode_of_seqeval(tags: list[str]) -> None:
    for position, tag in enumerate(tags):  # in IOB1, B is valid only directly after a span of the same label
        before = tags[position - 1] if position else "O"
        if tag[0] == "B" and before[1:] != tag[1:]:
            tags[position] = "I" + tag[1:]
    (strict,) = Entities([tags], IOB1).entities
    assert decode_tags(tags) == sorted((one.start, one.end, one.tag) for one in strict)


@pytest.mark.parametrize("tag", ["O", *(f"{prefix}-x" for prefix in PREFIXES), "B-a-b", "I-a b\n"])
def test_valid_tags_are_recognised(tag: str) -> None:
    assert is_tag(tag)


@pytest.mark.parametrize("tag", ["", "o", "B", "B-", "-x", "X-x", "b-x", "Bx", "OO", "O-x", "person"])
def test_other_strings_are_not_tags(tag: str) -> None:
    assert not is_tag(tag)
