"""The format conll: tag schemes, separators, comments, and what columns cannot represent."""

from __future__ import annotations

from pathlib import Path

import pytest

from onoma import DataError, Document
from onoma.data.formats import read, write


def parsed(folder: Path, content: str) -> list[Document]:
    path = folder / "a.conll"
    path.write_bytes(content.encode())
    return list(read(path))


def mentions(document: Document) -> list[tuple[str, str]]:
    return [(entity.text, entity.label) for entity in document.entities]


# "Ann Lee" and "Bo" are adjacent persons; "Rome" is a city of one token
SCHEMES = {
    "BIO": "B-per I-per B-per O B-loc",
    "IOB1": "I-per I-per B-per O I-loc",
    "BIOES": "B-per E-per S-per O S-loc",
    "BMES": "B-per E-per S-per O S-loc",
    "BILOU": "B-per L-per U-per O U-loc",
}


@pytest.mark.parametrize("tags", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("separator", ["\t", " ", "   ", " NNP x "])
def test_all_tag_schemes_give_the_same_mentions(tmp_path: Path, tags: str, separator: str) -> None:
    tokens = ["Ann", "Lee", "Bo", "saw", "Rome"]
    lines = [f"{token}{separator}{tag}" for token, tag in zip(tokens, tags.split(), strict=True)]
    (document,) = parsed(tmp_path, "\n".join(lines))
    assert document.text == "Ann Lee Bo saw Rome"
    assert mentions(document) == [("Ann Lee", "per"), ("Bo", "per"), ("Rome", "loc")]


def test_comments_and_document_marks_are_skipped_but_hashtags_are_tokens(tmp_path: Path) -> None:
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


def test_carriage_returns_and_unusual_white_space_are_handled(tmp_path: Path) -> None:
    (document,) = parsed(tmp_path, "\ufeffke\u2005s\tB-x y\r\n\x85\tI-x y\r\n\u3000\tO\r\n\r\n")
    assert document.text == "ke\u2005s \x85 \u3000"
    assert mentions(document) == [("ke\u2005s \x85", "x y")]
    (chinese,) = parsed(tmp_path, "北 B-地\n京 I-地\n  O\n好 O\n")
    assert (chinese.text, mentions(chinese)) == ("北京 好", [("北京", "地")])


def test_a_text_comment_is_written_only_if_the_tokens_do_not_reproduce_the_text(tmp_path: Path) -> None:
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
def test_documents_that_columns_cannot_represent_are_refused_with_their_number(
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
def test_the_error_names_the_line_that_is_not_valid(tmp_path: Path, content: str, line: int) -> None:
    with pytest.raises(DataError) as caught:
        parsed(tmp_path, content)
    assert caught.value.line == line
    assert caught.value.fix


def test_a_file_with_cr_line_ends_loses_no_mentions_silently(tmp_path: Path) -> None:
    rows = ["Ann\tB-person", "flew\tO", "", "Oslo\tB-city", ""]
    path = tmp_path / "old.conll"
    path.write_bytes("\r".join(rows).encode())
    for format in ("conll", None):
        with pytest.raises(
            DataError, match=r"old\.conll, line 1: the line contains a carriage return.*Fix: .*line feed"
        ):
            list(read(path, format))
    path.write_bytes("\r\n".join(rows).encode())
    assert [one.label for document in read(path) for one in document.entities] == ["person", "city"]
