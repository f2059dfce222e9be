"""Detection of formats by content and extension, reading, writing and conversion."""

from __future__ import annotations

from pathlib import Path

import pytest

from onoma import DataError, Document, OnomaError
from onoma.data.formats import FORMATS, convert, detect, read, write

DOCUMENTS = [
    Document("Nothing here."),
    Document.from_spans("Ann met Bo in Rome.", [(0, 3, "person"), (8, 10, "person"), (14, 18, "city")]),
]


def test_formats_have_stable_names() -> None:
    assert list(FORMATS) == ["jsonl", "tokens", "conll", "brat", "doccano", "gliner", "spacy", "pubtator"]
    assert all(name == form.name for name, form in FORMATS.items())


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["a.jsonl", "a.JSON", "a.txt", "a.data.gz", "a"])
def test_the_content_determines_the_format_to_read(tmp_path: Path, format: str, name: str) -> None:
    write(DOCUMENTS, tmp_path / name, format)
    assert detect(tmp_path / name) == format


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.jsonl", "jsonl"),
        ("a.ndjson.xz", "jsonl"),
        ("a.json.gz", "gliner"),
        ("a.conll", "conll"),
        ("a.BIO", "conll"),
        ("a.tsv", "conll"),
        ("a.spacy", "spacy"),
        ("a.pubtator", "pubtator"),
        ("folder", "brat"),
    ],
)
def test_the_extension_determines_the_format_to_write(tmp_path: Path, name: str, format: str) -> None:
    assert detect(tmp_path / name, writing=True) == format
    assert write(DOCUMENTS, tmp_path / name) == 2
    assert detect(tmp_path / name) == format


def test_an_existing_folder_is_written_as_brat(tmp_path: Path) -> None:
    (tmp_path / "v1.0").mkdir()
    assert detect(tmp_path / "v1.0", writing=True) == "brat"


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.conll", "a.spacy", "a.pubtator", "a.jsonl.gz"])
def test_an_empty_file_has_no_documents(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert list(read(tmp_path / name)) == []


@pytest.mark.parametrize("content", [b"", b"Just some prose.\n", b"\x00" * 100, b'{"other": "keys"}'])
def test_the_error_for_an_unknown_format_lists_all_formats(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot be detected.*Fix: name the format: jsonl, tokens, conll"):
        read(tmp_path / "a.txt")


def test_folders_missing_files_and_unknown_names_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"this is a folder.*give the file"):
        detect(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        detect(tmp_path / "missing.jsonl")
    with pytest.raises(DataError, match=r"no format has the extension '\.xlsx'.*\.conll.*--to: .*pubtator"):
        write([], tmp_path / "a.xlsx")
    with pytest.raises(OnomaError, match=r"no format 'xml'.*pubtator"):
        read(tmp_path, "xml")


def test_a_failed_conversion_leaves_no_files(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "good", "entities": []}\n{"text": 3}\n')
    for name in ("b.conll", "b", "b.spacy", "b.json"):
        with pytest.raises(DataError, match=r"a\.jsonl, line 2"):
            convert(source, tmp_path / name)
    assert list(tmp_path.iterdir()) == [source]


def test_documents_are_read_one_by_one(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.json", "a.conll", "a.pubtator"):
        write(DOCUMENTS, tmp_path / name)
        with open(tmp_path / name, "ab") as file:
            file.write(b"\xff\xff\n")
        documents = read(tmp_path / name)
        if name != "a.json":
            assert next(documents).text == DOCUMENTS[0].text
        with pytest.raises(DataError):
            list(documents)
