"""Files in and out: compression, line ends, damage, and output that appears complete or not at all."""

from __future__ import annotations

import gzip
import lzma
import os
from pathlib import Path

import pytest

from onoma.data.files import (
    atomic_folder,
    atomic_write,
    atomic_write_bytes,
    open_text,
    plain_suffix,
    read_bytes,
    read_lines,
    require_replaceable,
)
from onoma.errors import DataError

ODD = "a\rb\x85c\u2028d\x0be"


@pytest.mark.parametrize("name", ["plain.txt", "packed.txt.xz", "packed.txt.gz", "PACKED.TXT.XZ"])
def test_text_comes_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    with atomic_write(tmp_path / name) as file:
        file.write(f"{ODD}\r\nsecond\n\nlast")
    assert list(read_lines(tmp_path / name)) == [(1, ODD + "\r"), (2, "second"), (3, ""), (4, "last")]
    with open_text(tmp_path / name) as file:
        assert file.read() == f"{ODD}\r\nsecond\n\nlast"


def test_a_compressed_name_makes_a_compressed_file(tmp_path: Path) -> None:
    for name, module in [("a.txt.xz", lzma), ("a.txt.gz", gzip)]:
        with atomic_write(tmp_path / name) as file:
            file.write("hello")
        assert module.decompress((tmp_path / name).read_bytes()) == b"hello"  # type: ignore[attr-defined]


def test_gzip_output_depends_on_the_content_alone(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with atomic_write_bytes(tmp_path / name) as file:
            file.write(b"same")
    content = (tmp_path / "a.gz").read_bytes()
    assert content == (tmp_path / "b.gz").read_bytes()
    assert content[4:8] == bytes(4)  # the time of writing


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "mark.txt"
    path.write_bytes("\ufeffone\ntwo".encode())
    assert list(read_lines(path)) == [(1, "one"), (2, "two")]
    with open_text(path) as file:
        assert file.read() == "one\ntwo"


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.jsonl", ".jsonl"), ("a.b.JSONL.XZ", ".jsonl"), ("a.gz", ""), ("a", ""), (".hidden", ""), ("a.b/c", "")],
)
def test_the_plain_suffix_is_that_before_the_compression(name: str, suffix: str) -> None:
    assert plain_suffix(name) == suffix


def _damaged(folder: Path, name: str) -> Path:
    path = folder / name
    content = "".join(f"line {number}\n" for number in range(5000)).encode()
    match name:
        case "cut.xz":
            path.write_bytes(lzma.compress(content)[:-20])
        case "cut.gz":
            path.write_bytes(gzip.compress(content)[:-20])
        case "empty.xz":
            path.touch()
        case "plain.xz" | "plain.gz":
            path.write_bytes(content)
        case "rotten.xz" | "rotten.gz":
            packed = bytearray((lzma if name.endswith("xz") else gzip).compress(content))
            packed[len(packed) // 2] ^= 0xFF
            path.write_bytes(packed)
        case "folder":
            path.mkdir()
    return path


@pytest.mark.parametrize(
    "name",
    [
        "cut.xz",
        "cut.gz",
        "empty.xz",
        "plain.xz",
        "plain.gz",
        "rotten.xz",
        "rotten.gz",
        "folder",
        "missing",
        "missing.xz",
    ],
)
def test_a_file_that_cannot_be_read_is_one_error_with_its_name(tmp_path: Path, name: str) -> None:
    path = _damaged(tmp_path, name)
    for read in (lambda: list(read_lines(path)), lambda: read_bytes(path)):
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.path == path
        assert caught.value.fix


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"good\n" * 3000 + b"caf\xe9\n" + b"good\n" * 3000)
    with pytest.raises(DataError) as caught:
        list(read_lines(path))
    assert caught.value.line == 3001
    with pytest.raises(DataError), open_text(path) as file:
        file.read()


def stop_halfway(path: Path) -> None:
    with atomic_write(path) as file:
        file.write("new")
        raise KeyboardInterrupt


def fail_halfway(path: Path) -> None:
    with atomic_folder(path) as folder:
        (folder / "a").write_text("half")
        raise RuntimeError


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz", "out.txt.xz"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with atomic_write(path) as file:
        file.write("old")
    old = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        stop_halfway(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a" / "b" / "c.txt") as file:
        file.write("x")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "x"


def test_what_cannot_be_written_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="folder"), atomic_write(tmp_path) as file:
        file.write("x")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"), atomic_write(tmp_path / "file" / "x.txt") as file:
        file.write("x")
    with pytest.raises(DataError, match="surrogate"), atomic_write(tmp_path / "y.txt") as file:
        file.write("\ud800")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_folder_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with pytest.raises(RuntimeError):
        fail_halfway(target)
    assert not any(tmp_path.iterdir())
    target.mkdir()  # an empty one may be filled
    with atomic_folder(target) as folder:
        (folder / "a").write_text("whole")
    assert (target / "a").read_text() == "whole"
    with pytest.raises(DataError, match="exists already"), atomic_folder(target):
        pass


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "data.bin", tmp_path / "link.txt"
    link.symlink_to(target)
    for content in ("new", "newer"):  # at first there is nothing behind the link
        with atomic_write(link) as file:
            file.write(content)
        assert link.is_symlink()
        assert target.read_text() == content
    (tmp_path / "folder").symlink_to(tmp_path / "store" / "folder")
    with atomic_folder(tmp_path / "folder") as folder:
        (folder / "a").touch()
    assert (tmp_path / "store" / "folder" / "a").exists()
    assert (tmp_path / "folder").is_symlink()


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def test_pipes_and_devices_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # never a true device here: if the check failed, root would replace it for the whole machine
    (tmp_path / "link").symlink_to(pipe(tmp_path))
    monkeypatch.chdir(tmp_path)
    for target in ("pipe", tmp_path / "link", "-"):
        for write in (atomic_write, atomic_folder):
            with pytest.raises(DataError, match=r"pipe or a device.*name of a file, such as out\.jsonl"), write(target):
                pass
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1", "/dev/null"])
def test_devices_and_open_files_are_known_by_name(name: str) -> None:
    with pytest.raises(DataError, match="pipe or a device"):
        require_replaceable(name)
    require_replaceable("/dev/shm/out.jsonl")


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    for source in (Path("/dev/null"), Path("-"), pipe(tmp_path)):
        with pytest.raises(DataError, match=r"pipe or a device.*save what it gives to a file first"):
            read_bytes(source)
