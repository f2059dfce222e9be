from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from onoma import DataError
from onoma.data.texts import read_sources, read_texts


def texts(source: str, *, by_line: bool = False) -> list[str]:
    return [document.text for document in read_texts(source, by_line=by_line).documents]


@pytest.mark.parametrize("text", ["Tom flew to Paris.", "", "a" * 100_000, "nul \0", "see notes.txt", "Inc.", "a/b"])
def test_a_source_that_is_not_a_file_is_the_text(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert texts(text) == [text]


def test_a_plain_file_is_one_document_or_one_per_line(tmp_path: Path) -> None:
    path = tmp_path / "news.txt"
    path.write_bytes("Tom\r\nflew.\n\nÅse".encode())
    assert texts(str(path)) == ["Tom\r\nflew.\n\nÅse"]
    assert texts(str(path), by_line=True) == ["Tom\r", "flew.", "", "Åse"]


def test_compressed_files_are_decompressed(tmp_path: Path) -> None:
    (tmp_path / "news.txt.gz").write_bytes(gzip.compress(b"Tom flew."))
    assert texts(str(tmp_path / "news.txt.gz")) == ["Tom flew."]


def test_json_lines_contain_documents(tmp_path: Path) -> None:
    path = tmp_path / "news.jsonl"
    path.write_text('{"id": "a", "text": "Tom flew."}\n{"text": "Ann sang.", "entities": []}\n', "utf-8")
    assert [(document.id, document.text) for document in read_texts(str(path)).documents] == [
        ("a", "Tom flew."),
        (None, "Ann sang."),
    ]


def test_standard_input_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lines(io.BytesIO):
        asked = 0

        def readline(self, size: int | None = -1) -> bytes:
            self.asked += 1
            return super().readline(size)

    lines = Lines(b"Tom\n\nAnn")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(lines))
    documents = read_texts("-", by_line=True).documents
    assert next(documents).text == "Tom"
    assert lines.asked == 1
    assert [document.text for document in documents] == ["", "Ann"]


def test_standard_input_is_one_document_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Tom\nÅse\n".encode())))
    assert texts("-") == ["Tom\nÅse"]


@pytest.mark.parametrize("name", ["missing.txt", "missing.jsonl", "folder/missing.json.gz", "."])
def test_the_name_of_a_missing_file_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="Fix"):
        texts(name)


def test_invalid_bytes_are_reported_with_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Tom\n\xff\n")))
    with pytest.raises(DataError, match="standard input, line 2"):
        texts("-", by_line=True)


def test_a_device_is_refused() -> None:
    with pytest.raises(DataError, match=r"pipe or a device.*give - for standard input"):
        texts("/dev/null")


def test_the_number_of_characters_is_known_before_reading_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "news.txt").write_text("Åse flew.", "utf-8")
    assert read_texts("Tom flew.").characters == 9
    assert read_texts(str(tmp_path / "news.txt")).characters == 9
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Tom\nflew.\n")))
    assert read_texts("-").characters == 9
    assert read_texts("-", by_line=True).characters is None
    assert read_texts(str(tmp_path / "news.txt"), by_line=True).characters is None


@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("paper.pdf", b"%PDF-1.7 all of it is valid UTF-8", "a PDF document"),
        ("letter.docx", b"PK\x03\x04\x14\x00\x06\x00", "an Office document"),
        ("news.txt", "\ufeffTom flew.".encode("utf-16-be"), "text in UTF-16"),
        ("data.bin", b"Tom\0flew", "a binary file"),
    ],
)
def test_binary_files_are_refused_with_the_kind_of_file(
    tmp_path: Path, name: str, content: bytes, kind: str, by_line: bool
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{kind}.*, not UTF-8 text\. Fix: save or export it as UTF-8 text"):
        texts(str(tmp_path / name), by_line=by_line)


@pytest.mark.parametrize("content", [b"%PDF-1.7 \xe2\xe3\n", b"%PDF-1.7 all of it is valid UTF-8\n"])
def test_binary_standard_input_is_refused_with_the_kind_of_file(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(DataError, match=r"standard input: this is a PDF document, not UTF-8 text\. Fix"):
        texts("-")


@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize("unit", [b"x", b"short lines\n"])
def test_standard_input_without_end_is_refused(by_line: bool, unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONOMA_MAX_MEGABYTES", "1")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(unit * (3_000_000 // len(unit)))))
    if by_line and unit.endswith(b"\n"):  # each line is a document of its own
        assert len(texts("-", by_line=True)) == 3_000_000 // len(unit)
        return
    with pytest.raises(DataError, match=r"standard input.* more than 1,000,000 .*ONOMA_MAX_MEGABYTES"):
        texts("-", by_line=by_line)


def test_closed_standard_input_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match=r"standard input is closed\. Fix: "):
        texts("-")


def located(*sources: str, by_line: bool = False) -> list[tuple[str, int, str]]:
    return [(one.file, one.number, one.document.text) for one in read_sources(sources, by_line=by_line).documents]


def test_documents_of_several_files_have_names_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("Tom flew.\nAnn sang.")
    Path("b.jsonl").write_text('{"text": "Oslo", "file": "own"}\n{"text": "Lima"}\n')
    assert located("a.txt", "b.jsonl") == [
        ("a.txt", 1, "Tom flew.\nAnn sang."),
        ("b.jsonl", 1, "Oslo"),
        ("b.jsonl", 2, "Lima"),
    ]
    assert located("a.txt", "a.txt", by_line=True)[1:3] == [("a.txt", 2, "Ann sang."), ("a.txt", 1, "Tom flew.")]
    documents = list(read_sources(["a.txt", "b.jsonl"]).documents)
    assert [one.document.meta["file"] for one in documents] == ["a.txt", "own", "b.jsonl"]  # keys of a record stay
    assert [one.name for one in documents] == ["a.txt", "b.jsonl:1", "b.jsonl:2"]


def test_one_source_may_be_a_text_a_file_or_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("Tom flew.")
    assert located("Ann sang.") == [("", 1, "Ann sang.")]
    assert located("a.txt") == [("a.txt", 1, "Tom flew.")]
    assert not next(read_sources(["a.txt"]).documents).document.meta
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Tom\nAnn\n")))
    assert located("-", by_line=True) == [("-", 1, "Tom"), ("-", 2, "Ann")]


@pytest.mark.parametrize("other", ["flew", "to Paris", "", "-", "missing.txt"])
def test_several_sources_must_all_be_files(other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("Tom flew.")
    with pytest.raises(DataError, match=r"there is no such file\. Fix: check the path"):
        read_sources(["a.txt", other])  # before anything is read


def test_all_files_are_checked_before_the_first_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Tom flew.")
    (tmp_path / "b.txt").write_bytes(b"%PDF-1.7")
    with pytest.raises(DataError, match="PDF"):
        read_sources([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")])
    with pytest.raises(DataError, match="this is a folder"):
        read_sources([str(tmp_path / "a.txt"), str(tmp_path)])
