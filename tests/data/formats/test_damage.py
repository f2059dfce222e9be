"""Damaged files: for any bytes, a reader yields documents or raises a DataError, and nothing else."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onoma import DataError, Document
from onoma.data.formats import FORMATS, read, write

FILE_NAMES = {
    "jsonl": "a.jsonl",
    "tokens": "a.jsonl",
    "conll": "a.conll",
    "brat": "a.txt",
    "doccano": "a.jsonl",
    "gliner": "a.json",
    "spacy": "a.spacy",
    "pubtator": "a.pubtator",
}
DOCUMENTS = [
    Document.from_spans("Ann met Bo in\u00a0Rome.", [(0, 3, "person"), (8, 10, "person"), (14, 18, "city")]),
    Document.from_spans("李明住在上海。", [(0, 2, "人名")]),
]
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_all(path: Path, format: str | None) -> list[Document] | DataError:
    try:
        return list(read(path, format))
    except DataError as error:
        return error


def valid_files(folder: Path, format: str) -> Iterator[Path]:
    """The files of a small valid corpus."""
    target = folder / FILE_NAMES[format]
    if format == "brat":
        write(DOCUMENTS, folder / "pairs", format)
        yield from sorted((folder / "pairs").iterdir())
    else:
        write(DOCUMENTS, target, format)
        yield target


@pytest.mark.parametrize("format", FORMATS)
@quick
@given(content=st.binary(max_size=200))
def test_random_bytes_raise_no_other_error(tmp_path: Path, format: str, content: bytes) -> None:
    (tmp_path / FILE_NAMES[format]).write_bytes(content)
    if format == "brat":
        (tmp_path / "a.txt").write_text("some text")
        (tmp_path / "a.ann").write_bytes(content)
    read_all(tmp_path / FILE_NAMES[format], format)


@pytest.mark.parametrize("format", FORMATS)
@quick
@given(data=st.data())
def test_changed_bytes_in_a_valid_file_raise_no_other_error(
    tmp_path_factory: pytest.TempPathFactory, format: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damage")
    path = data.draw(st.sampled_from(list(valid_files(folder, format))))
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 8)))
    path.write_bytes(content[:start] + data.draw(st.binary(max_size=4)) + content[end:])
    read_all(path.parent if format == "brat" else path, format)


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "brat"])
def test_a_truncated_compressed_file_is_reported(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"{FILE_NAMES[format]}.xz"
    write(DOCUMENTS, path, format)
    path.write_bytes(path.read_bytes()[:-10])
    error = read_all(path, format)
    assert isinstance(error, DataError)
    assert "truncated" in str(error)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_null_bytes_is_an_error(tmp_path: Path, format: str) -> None:
    path = tmp_path / FILE_NAMES[format]
    for name in {path, path.with_suffix(".ann")}:
        name.write_bytes(b"\x00" * 10_000)
    assert isinstance(read_all(path, format), DataError)


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "brat"])
def test_folders_and_missing_files_are_errors(tmp_path: Path, format: str) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        error = read_all(path, format)
        assert isinstance(error, DataError)
        assert error.path == path
        assert error.fix


def test_a_suffix_that_does_not_match_the_compression_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.xz").write_text('{"text": "x"}')
    (tmp_path / "b.jsonl").write_bytes(lzma.compress(b'{"text": "x"}'))
    for name in ("a.jsonl.xz", "b.jsonl"):
        with pytest.raises(DataError, match=name):
            list(read(tmp_path / name))


@pytest.mark.parametrize("format", [format for format in FORMATS if format not in ("brat", "spacy")])
def test_a_decompression_bomb_is_an_error_in_every_format(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONOMA_MAX_MEGABYTES", "1")
    write(DOCUMENTS[:1] * 1_000, tmp_path / FILE_NAMES[format], format)
    content = (tmp_path / FILE_NAMES[format]).read_bytes()
    path = tmp_path / f"{FILE_NAMES[format]}.xz"
    path.write_bytes(lzma.compress(content * (2_000_000 // len(content))))
    for read_as in (format, None):
        error = read_all(path, read_as)
        assert isinstance(error, DataError)
        assert "expands to more than 1,000,000 bytes" in str(error)
        assert "ONOMA_MAX_MEGABYTES" in error.fix


def test_a_spacy_file_that_expands_without_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.spacy"
    path.write_bytes(zlib.compress(b"\x82\xa7version" + bytes(20_000_000)))
    monkeypatch.setenv("ONOMA_MAX_MEGABYTES", "1")
    error = read_all(path, None)
    assert isinstance(error, DataError)
    assert "expands to more than" in str(error)


@pytest.mark.parametrize("opening", ["", "[\n"])
def test_a_json_object_without_end_is_an_error(tmp_path: Path, opening: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONOMA_MAX_MEGABYTES", "1")
    path = tmp_path / "a.json"
    path.write_text(f'{opening}{{"text": "{"x" * 5_000_000}')
    error = read_all(path, "jsonl")
    assert isinstance(error, DataError)
    assert "ONOMA_MAX_MEGABYTES" in error.fix
