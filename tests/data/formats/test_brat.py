"""The format brat: pairs of files, escaped types, discontinuous mentions."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from onoma import DataError, Document
from onoma.data.formats import read, write


def pair(folder: Path, name: str, text: str, annotation: str | None) -> None:
    (folder / f"{name}.txt").write_bytes(text.encode())
    if annotation is not None:
        (folder / f"{name}.ann").write_bytes(annotation.encode())


def test_documents_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 100):
        pair(tmp_path, f"doc{number}", f"text {number}", "")
    assert [document.id for document in read(tmp_path)] == ["doc9", "doc10", "doc100"]


def test_rows_other_than_mentions_are_skipped(tmp_path: Path) -> None:
    rows = (
        "T1\tper 0 3\tAnn\r\nR1\tknows Arg1:T1 Arg2:T2\n\nE1\tx:T1\n"
        "A1\tnew T1\n#1\tNote T1\thi\n*\tEquiv T1 T2\nT2\tper 8 10\n"
    )
    pair(tmp_path, "a", "Ann met Bo", rows)
    for path in (tmp_path, tmp_path / "a.txt", tmp_path / "a.ann"):
        (document,) = read(path)
        assert [entity.key for entity in document.entities] == [(0, 3, "per"), (8, 10, "per")]


def test_a_text_without_annotation_is_unlabelled(tmp_path: Path) -> None:
    pair(tmp_path, "a", "Ann", None)
    (document,) = read(tmp_path, "brat")
    assert document.annotated == frozenset()


def test_line_ends_and_byte_order_marks_are_part_of_the_text(tmp_path: Path) -> None:
    pair(tmp_path, "a", "\ufeffone\r\ntwo\r\n", "T1\tnumber 6 9\ttwo\n")
    (document,) = read(tmp_path)
    assert document.text == "\ufeffone\r\ntwo\r\n"
    assert document.entities[0].text == "two"


def test_discontinuous_mentions_become_one_span_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "left and right lung\nand heart"
    pair(tmp_path, "a", text, "T1\torgan 0 4;15 19\tleft lung\nT2\torgan 9 14;15 19\tright lung\n")
    pair(tmp_path, "b", text, "T1\torgan 0 4;15 19\tleft lung\nT2\torgan 15 19;20 29\tlung and heart\n")
    with caplog.at_level(logging.WARNING, logger="onoma"):
        first, _ = read(tmp_path)
    assert [entity.text for entity in first.entities] == ["left and right lung", "right lung"]
    (record,) = caplog.records
    assert "2 discontinuous mentions" in record.getMessage()  # T1 of each; the others have only white space between


def test_files_are_numbered_and_types_escaped(tmp_path: Path) -> None:
    spans = [(0, 3, "person, nominal"), (0, 3, "AI/ML.tool_x-1"), (8, 10, "人名"), (4, 10, "100%")]
    write([Document.from_spans("Ann\nmet Bo", spans)], tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["000001.ann", "000001.txt"]
    rows = (tmp_path / "out" / "000001.ann").read_text(encoding="utf-8").splitlines()
    assert rows == [
        "T1\tAI%2FML%2Etool_x-1 0 3\tAnn",
        "T2\tperson%2C%20nominal 0 3\tAnn",
        "T3\t100%25 4 10\tmet Bo",
        "T4\t人名 8 10\tBo",
    ]


def test_a_mention_over_several_lines_is_written_with_one_part_per_line(tmp_path: Path) -> None:
    write([Document.from_spans("New\n\nYork\n", [(0, 9, "city"), (3, 9, "odd"), (5, 10, "odd")])], tmp_path / "out")
    rows = (tmp_path / "out" / "000001.ann").read_text(encoding="utf-8").splitlines()
    assert rows == ["T1\tcity 0 3;5 9\tNew  York", "T2\todd 3 9\t  York", "T3\todd 5 10\tYork "]
    (document,) = read(tmp_path / "out")
    assert [entity.key for entity in document.entities] == [(0, 9, "city"), (3, 9, "odd"), (5, 10, "odd")]


@pytest.mark.parametrize(
    "row",
    [
        "T1\tper 0 4\tAnn ",
        "T1\tper 0 0\t",
        "T1\tper 3 0\tAnn",
        "T1\tper 2 3;0 1\tn A",
        "T1\tper 0 2\tAnn",
        "T1\tper 0 x\tAnn",
        "T1 per 0 3 Ann",
        "T1\tper 0 " + "9" * 5000 + "\tAnn",
        "T1\t%FF 0 3\tAnn",
        "hello",
        "\x00",
    ],
)
def test_the_error_names_the_row_that_is_not_valid(tmp_path: Path, row: str) -> None:
    pair(tmp_path, "a", "Ann", f"\nT9\tper 0 3\tAnn\n{row}\n")
    with pytest.raises(DataError) as caught:
        list(read(tmp_path))
    assert (caught.value.path, caught.value.line) == (tmp_path / "a.ann", 3)
    assert caught.value.fix


def test_the_error_names_the_file_that_is_missing_or_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no \.txt files"):
        list(read(tmp_path, "brat"))
    (tmp_path / "a.ann").touch()
    for path in (tmp_path, tmp_path / "a.ann"):
        with pytest.raises(DataError, match=r"a\.(ann|txt)"):
            list(read(path))
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"a\.txt: the file is not UTF-8"):
        list(read(tmp_path))


def test_a_folder_that_is_not_empty_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "keep.txt").touch()
    with pytest.raises(DataError, match="exists already"):
        write([Document("x")], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["keep.txt"]


def test_an_unlabelled_text_is_written_without_annotation(tmp_path: Path) -> None:
    write([Document("x", annotated=frozenset()), Document("y")], tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["000001.txt", "000002.ann", "000002.txt"]
    assert [document.annotated for document in read(tmp_path / "out")] == [frozenset(), None]
