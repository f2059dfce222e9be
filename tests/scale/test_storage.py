"""Paths and URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from onoma.errors import DataError, OnomaError
from onoma.scale.storage import find_files, name_suffixes, open_input, open_output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.jsonl", "a.jsonl", "deep/er/c.jsonl", "deep/d.csv", "_e.jsonl", ".f.jsonl"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(name, encoding="utf-8")
    return tmp_path / "data"


@pytest.mark.parametrize("prefix", ["", "file://", "local://"])  # a path, pyarrow, fsspec
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", ["a.jsonl", "b.jsonl", "deep/d.csv", "deep/er/c.jsonl"]),
        ("/a.jsonl", ["a.jsonl"]),
        ("/[ab].jsonl", ["a.jsonl", "b.jsonl"]),
        ("/*/*.csv", ["deep/d.csv"]),
        ("/deep/**/*.jsonl", ["deep/er/c.jsonl"]),
    ],
)
def test_files_are_found_by_path_pattern_and_url(folder: Path, prefix: str, pattern: str, expected: list[str]) -> None:
    found = find_files(f"{prefix}{folder}{pattern}")
    assert [file.name.partition("/data/")[2] for file in found] == expected
    for file in found:
        with open_input(file.name) as opened:
            assert len(opened.read()) == file.bytes


@pytest.mark.parametrize("name", ["missing.jsonl", "*.xyz", "file:///missing/*.jsonl"])
def test_a_missing_file_is_an_error(name: str) -> None:
    with pytest.raises(DataError, match="no such file"):
        find_files(name)


def test_a_url_with_a_password_is_refused() -> None:
    with pytest.raises(OnomaError, match="environment"):
        find_files("s3://key:secret@bucket/a.jsonl")


def test_suffixes_of_urls_and_compressed_files() -> None:
    assert name_suffixes("s3://bucket/a.jsonl.gz?endpoint_override=host") == (".jsonl", ".gz")
    assert name_suffixes("C:\\data\\A.CSV") == (".csv", "")


@pytest.mark.parametrize("prefix", ["", "file://", "local://"])
def test_files_of_the_output_appear_when_they_are_complete(tmp_path: Path, prefix: str) -> None:
    folder = open_output(f"{prefix}{tmp_path}/new")
    assert folder.names() == set()
    with folder.write("inner/a.jsonl.gz") as file:
        file.write(b"content")
        assert "a.jsonl.gz" not in folder.names("inner")
    with open_input(f"{tmp_path}/new/inner/a.jsonl.gz") as opened:
        assert opened.read() == b"content"
    with pytest.raises(TypeError), folder.write("inner/a.jsonl.gz") as file:
        file.writelines([b"half of the", None])
    assert folder.names("inner") == {"a.jsonl.gz"}
    folder.remove("inner")
    folder.remove("inner")
    assert folder.names("inner") == set()


@pytest.mark.parametrize("url", ["memory://in/a.jsonl", "simplecache::memory://in/a.jsonl"])
def test_a_storage_that_other_processes_cannot_see_is_refused(url: str) -> None:
    for opened in (find_files, open_output):
        with pytest.raises(DataError, match=r"other processes cannot see this storage\. Fix: "):
            opened(url)  # type: ignore[operator]


def test_a_file_without_a_time_is_known_by_its_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    class Timeless(fs.FSSpecHandler):  # type: ignore[misc]
        def _create_file_info(self, path: str, info: dict[str, object]) -> fs.FileInfo:
            return super()._create_file_info(path, {name: value for name, value in info.items() if name != "mtime"})

    monkeypatch.setattr(fs, "FSSpecHandler", Timeless)
    versions = [find_files(f"local://{folder}/a.jsonl")[0].version]
    for content in ("A.jsonl", "a.jsonl"):
        (folder / "a.jsonl").write_text(content, encoding="utf-8")
        versions.append(find_files(f"local://{folder}/a.jsonl")[0].version)
    assert versions[0] == versions[2] != versions[1]
