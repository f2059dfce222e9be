"""Columns: tag schemes, separators, comments, and what columns cannot hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import DataError, Document
from onoma.data.formats import read, write
from onoma.data.formats.conll import decode_tags


def parsed(folder: Path, content: str) -> list[Document]:
    path = folder / "a.conll"
    path.write_bytes(content.encode())
    return list(read(path))


def mentions(document: Document) -> list[tuple[str, str]]:
    return [(entity.text, entity.label) for entity in document.entities]


# "Ann Lee" and "Bo" touch, both persons; "Rome" stands alone
SCHEMES = {
    "BIO": "B-per I-per B-per O B-loc",
    "IOB1": "I-per I-per B-per O I-loc",
    "BIOES": "B-per E-per S-per O S-loc",
    "BMES": "B-per E-per S-per O S-loc",
    "BILOU": "B-per L-per U-per O U-loc",
}


@pytest.mark.parametrize("tags", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("separator", ["\t", " ", "   ", " NNP x "])
def test_every_scheme_says_the_same(tmp_path: Path, tags: str, separator: str) -> None:
    tokens = ["Ann", "Lee", "Bo", "saw", "Rome"]
    lines = [f"{token}{separator}{tag}" for token, tag in zip(tokens, tags.split(), strict=True)]
    (document,) = parsed(tmp_path, "\n".join(lines))
    assert document.text == "Ann Lee Bo saw Rome"
    assert mentions(document) == [("Ann Lee", "per"), ("Bo", "per"), ("Rome", "loc")]


@st.composite
def flat_spans(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, str]]]:
    lengths = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("xy")), max_size=6))
    position, spans = 0, []
    for gap, length, label in lengths:
        spans.append((position + gap, position + gap + length, label))
        position += gap + length
    return position + draw(st.integers(0, 2)), spans


@given(flat_spans(), st.sampled_from(["BII-", "BIES", "BMES", "BILU"]))
def test_the_tags_of_any_mentions_decode_to_them(case: tuple[int, list[tuple[int, int, str]]], scheme: str) -> None:
    length, spans = case
    begin, inside, end, single = scheme
    tags = ["O"] * length
    for first, stop, label in spans:
        letters = (
            [begin, *[inside] * (stop - first - 2), end] if stop - first > 1 else [begin if single == "-" else single]
        )
        tags[first:stop] = [f"{letter}-{label}" for letter in letters]
    assert decode_tags(tags) == spans


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        (["I-x", "I-y"], [(0, 1, "x"), (1, 2, "y")]),
        (["E-x", "I-x"], [(0, 1, "x"), (1, 2, "x")]),
        (["L-x", "I-x"], [(0, 1, "x"), (1, 2, "x")]),
        (["B-x", "S-x", "M-x"], [(0, 1, "x"), (1, 2, "x"), (2, 3, "x")]),
        (["B-x", "U-x", "I-x"], [(0, 1, "x"), (1, 2, "x"), (2, 3, "x")]),
        (["B-x", "O", "I-x"], [(0, 1, "x"), (2, 3, "x")]),
        (["B-a-b", "I-a-b"], [(0, 2, "a-b")]),
    ],
)
def test_tags_out_of_order_are_read_as_far_as_they_make_sense(tags: list[str], spans: list[object]) -> None:
    assert decode_tags(tags) == spans


def test_sentences_comments_and_document_marks(tmp_path: Path) -> None:
    content = """-DOCSTART- -X- -X- O

# a comment
# text = Ann ate vitamin B-12
#hash NN O
# NN O
Ann NNP B-per

\t

-DOCSTART-
Bo NNP S-per
"""
    first, second = parsed(tmp_path, content)
    assert (first.text, mentions(first)) == ("#hash # Ann", [("Ann", "per")])
    assert (second.text, mentions(second)) == ("Bo", [("Bo", "per")])


def test_line_ends_of_other_systems_and_odd_white_space(tmp_path: Path) -> None:
    (document,) = parsed(tmp_path, "\ufeffke\u2005s\tB-x y\r\n\x85\tI-x y\r\n\u3000\tO\r\n\r\n")
    assert document.text == "ke\u2005s \x85 \u3000"
    assert mentions(document) == [("ke\u2005s \x85", "x y")]
    (chinese,) = parsed(tmp_path, "北 B-地\n京 I-地\n  O\n好 O\n")
    assert (chinese.text, mentions(chinese)) == ("北京 好", [("北京", "地")])


def test_the_text_stands_in_front_only_where_the_tokens_cannot_rebuild_it(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    write([Document.from_spans("Ann left", [(0, 3, "per")]), Document("two\n lines"), Document("")], path)
    assert path.read_text(encoding="utf-8") == (
        'Ann\tB-per\nleft\tO\n\n# text = "two\\n lines"\ntwo\tO\nlines\tO\n\n# text = ""\n\n'
    )
    assert [document.text for document in read(path)] == ["Ann left", "two\n lines", ""]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (Document.from_spans("ab cd", [(0, 5, "x"), (3, 5, "y")]), "overlap"),
        (Document.from_spans("ab cd", [(0, 2, "x"), (0, 2, "y")]), "overlap"),
        (Document.from_spans("ab cd", [(0, 2, "x\ty")]), "tab"),
        (Document.from_spans("ab\ncd", [(0, 3, "x")]), "line break"),
    ],
)
def test_what_columns_cannot_hold_is_refused_with_the_number_of_the_document(
    tmp_path: Path, document: Document, message: str
) -> None:
    with pytest.raises(DataError, match=f"document 2: .*{message}.*jsonl"):
        write([Document("fine"), document], tmp_path / "a.conll")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("Ann B-per\nBo\n", 2),
        ("Ann B-per\nBo per\n", 2),
        ("Ann B-\n", 1),
        ("\n\nAnn X-per\n", 3),
        ('Ann O\n\n# text = "Bo"\nAnn O\n', 3),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: str, line: int) -> None:
    with pytest.raises(DataError) as caught:
        parsed(tmp_path, content)
    assert caught.value.line == line
    assert caught.value.fix
