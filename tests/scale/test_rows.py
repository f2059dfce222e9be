"""Rows of files in all formats, damaged ones among them."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from onoma.errors import DataError
from onoma.scale.rows import CsvTable, Row, detect_format, open_rows


def read(path: Path, format: str | None = None, text_column: str = "text") -> list[Row]:
    reader = open_rows(str(path), format or detect_format(str(path)), text_column)
    return [reader.parse(row) for row in reader.rows()]


def texts(path: Path, format: str | None = None, text_column: str = "text") -> list[str | None]:
    return [row.text for row in read(path, format, text_column)]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def test_json_lines_with_everything_that_can_be_wrong_with_a_row(tmp_path: Path) -> None:
    lines = [
        b'{"text": "a"}',
        b"{",
        b"",
        b"[1]",
        b'{"body": "b"}',
        b'{"text": null}',
        b'{"text": 5}',
        b'{"text": "\\ud800"}',
        b'{"text": "\xff"}',
        b"[" * 100_000,
        b'{"n": ' + b"1" * 5000 + b', "text": "x"}',
        b'  {"text": "z"}  \r',
    ]
    rows = read(write(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + b"\n".join(lines)))
    assert [row.number for row in rows] == list(range(12))
    assert [row.text for row in rows if row.error is None] == ["a", None, "z"]
    assert rows[2].is_blank
    reasons = [str(row.error) for row in rows]
    for number, word in {1: "JSON", 3: "list", 4: "body", 5: "null", 6: "int", 7: "surrogate", 8: "UTF-8"}.items():
        assert word in reasons[number], reasons[number]


def test_a_line_that_is_too_long_is_an_error_of_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONOMA_MAX_MEGABYTES", "1")
    path = write(tmp_path / "a.txt", "one\n" + "x" * 2_500_000 + "\nthree\n")
    rows = read(path)
    assert [row.text for row in rows] == ["one", None, "three"]
    assert "1,000,000 bytes" in str(rows[1].error)
    assert [row.offset for row in rows] == [0, 4, 2_500_005]


def test_each_line_of_text_is_a_document_and_blank_ones_are_counted(tmp_path: Path) -> None:
    rows = read(write(tmp_path / "a.txt", "one\r\n\n  \ntwo\x85\u2028still two"))
    assert [(row.number, row.text) for row in rows if not row.is_blank] == [(0, "one"), (3, "two\x85\u2028still two")]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress), (".zst", None)]
)
def test_compressed_files(tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes] | None) -> None:
    content = b'{"text": "one"}\n{"text": "two"}\n'
    packed = compress(content) if compress else bytes(pa.compress(content, codec="zstd", asbytes=True))
    path = write(tmp_path / f"a.jsonl{suffix}", packed)
    assert texts(path) == ["one", "two"]
    with pytest.raises(DataError, match=path.name):
        texts(write(path, b"this is not compressed at all"))


def test_a_table_with_quotes_line_breaks_and_damaged_rows(tmp_path: Path) -> None:
    content = (
        'id,text\r\n1,"two\r\nlines, one ""field"""\r\n2,plain\r\n\r\n3,too,many\r\n4,"closed" badly\r\n'
        '5,good\r\n6,"never closed\r\n7,last\r\n'
    )
    rows = read(write(tmp_path / "a.csv", content))
    assert [(row.number, row.text) for row in rows if row.text] == [
        (0, 'two\r\nlines, one "field"'),
        (1, "plain"),
        (5, "good"),
        (7, "last"),
    ]
    assert [row.number for row in rows if row.error] == [3, 4, 6]


def test_bytes_that_are_not_utf8_are_an_error_of_their_row(tmp_path: Path) -> None:
    rows = read(write(tmp_path / "a.tsv", b"text\tid\n\xff\t1\ngood\t2\n"))
    assert [row.text for row in rows] == [None, "good"]
    assert "UTF-8" in str(rows[0].error)


@given(st.lists(st.tuples(st.text("a,\"\r\n 'é", max_size=8), st.text("b\t\n", max_size=4)), max_size=12))
def test_tables_are_read_as_they_were_written_from_any_row(
    tmp_path_factory: pytest.TempPathFactory, table: list
) -> None:
    path = tmp_path_factory.mktemp("tables") / "a.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("text", "other"), *table])
    reader = CsvTable(str(path), "text")
    rows = [reader.parse(row) for row in reader.rows()]
    assert [(row.record["text"], row.record["other"]) for row in rows if row.record] == table
    for row in rows:
        again = CsvTable(str(path), "text", reader.columns)
        first = again.parse(next(again.rows(row.number, row.offset)))
        assert (first.number, first.record) == (row.number, row.record)


def test_a_table_needs_a_header_with_different_names(tmp_path: Path) -> None:
    for content in ("", "text,text\na,b\n", "text,\na,b\n"):
        with pytest.raises(DataError, match="header"):
            read(write(tmp_path / "a.csv", content))


def test_parquet_is_read_from_any_row(tmp_path: Path) -> None:
    table = pa.table({"n": range(1000), "text": [None if n == 7 else f"text {n}" for n in range(1000)]})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=300)
    reader = open_rows(str(tmp_path / "a.parquet"), "parquet", "text")
    for first in (0, 1, 299, 300, 650, 999, 1000):
        rows = [reader.parse(row) for row in reader.rows(first)]
        assert [row.number for row in rows] == list(range(first, 1000))
        assert all(row.values()["n"] == row.number for row in rows)
        assert [row.number for row in rows if row.error] == [7] * (first <= 7)
    assert [row.size for row in reader.sizes()] == [row.size for row in reader.rows()]


def test_files_that_are_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"PDF document, not UTF-8 text\. Fix: convert it"):
        read(write(tmp_path / "a.txt", b"%PDF-1.7 ..."), "text")
    with pytest.raises(DataError, match="Fix: save it as UTF-8"):
        read(write(tmp_path / "a.txt", "Tom".encode("utf-16")), "text")
    with pytest.raises(DataError, match="Fix: remove its NUL bytes"):
        read(write(tmp_path / "a.txt", b"Tom\0"), "text")
    with pytest.raises(DataError, match="Parquet"):
        read(write(tmp_path / "a.parquet", "text"))
    with pytest.raises(DataError, match="--from"):
        detect_format("a.docx")
    with pytest.raises(DataError, match="--from"):
        detect_format("a.parquet.gz")


def test_a_column_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"body": ["x"]}), buffer)
    with pytest.raises(DataError, match="body"):
        read(write(tmp_path / "a.parquet", buffer.getvalue()))
