from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from onoma import DataError
from onoma.data.texts import read_texts


def texts(source: str, *, by_line: bool = False) -> list[str]:
    return [document.text for document in read_texts(source, by_line=by_line)]


@pytest.mark.parametrize("text", ["Tom flew to Paris.", "", "a" * 100_000, "nul \0", "see notes.txt", "Inc.", "a/b"])
def test_what_is_no_file_is_a_text(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert texts(text) == [text]


def test_plain_files_are_one_document_or_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "news.txt"
    path.write_bytes("Tom\r\nflew.\n\nÅse".encode())
    assert texts(str(path)) == ["Tom\r\nflew.\n\nÅse"]
    assert texts(str(path), by_line=True) == ["Tom\r", "flew.", "", "Åse"]


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "news.txt.gz").write_bytes(gzip.compress(b"Tom flew."))
    assert texts(str(tmp_path / "news.txt.gz")) == ["Tom flew."]


def test_json_lines_hold_documents(tmp_path: Path) -> None:
    path = tmp_path / "news.jsonl"
    path.write_text('{"id": "a", "text": "Tom flew."}\n{"text": "Ann sang.", "entities": []}\n', "utf-8")
    assert [(document.id, document.text) for document in read_texts(str(path))] == [
        ("a", "Tom flew."),
        (None, "Ann sang."),
    ]


def test_standard_input_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lines(io.BytesIO):
        asked = 0

        def __next__(self) -> bytes:
            self.asked += 1
            return super().__next__()

    lines = Lines(b"Tom\n\nAnn")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(lines))
    documents = read_texts("-", by_line=True)
    assert next(documents).text == "Tom"
    assert lines.asked == 1
    assert [document.text for document in documents] == ["", "Ann"]


def test_standard_input_may_be_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Tom\nÅse\n".encode())))
    assert texts("-") == ["Tom\nÅse"]


@pytest.mark.parametrize("name", ["missing.txt", "missing.jsonl", "folder/missing.json.gz", "."])
def test_a_missing_file_is_not_taken_for_a_text(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="Fix"):
        texts(name)


def test_bad_bytes_are_told_with_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Tom\n\xff\n")))
    with pytest.raises(DataError, match="standard input, line 2"):
        texts("-", by_line=True)


def test_a_pipe_is_not_taken_for_a_text() -> None:
    with pytest.raises(DataError, match=r"pipe or a device.*give - for standard input"):
        texts("/dev/null")
