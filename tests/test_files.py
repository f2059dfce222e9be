"""Reading and writing of files: compression, line ends, damaged files, atomic writes."""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onoma.errors import DataError, OnomaError, TooLargeError
from onoma.files import (
    FILE_SIGNATURES,
    MAX_MEGABYTES,
    atomic_folder,
    atomic_path,
    atomic_write,
    atomic_write_bytes,
    describe_binary,
    max_bytes,
    max_expanded_bytes,
    open_text,
    plain_suffix,
    read_bytes,
    read_lines,
    refuse_binary,
    require_replaceable,
)

ODD = "a\rb\x85c\u2028d\x0be"


@pytest.mark.parametrize("name", ["plain.txt", "packed.txt.xz", "packed.txt.gz", "PACKED.TXT.XZ"])
def test_text_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    with atomic_write(tmp_path / name) as file:
        file.write(f"{ODD}\r\nsecond\n\nlast")
    assert list(read_lines(tmp_path / name)) == [(1, ODD + "\r"), (2, "second"), (3, ""), (4, "last")]
    with open_text(tmp_path / name) as file:
        assert file.read() == f"{ODD}\r\nsecond\n\nlast"


def test_the_suffix_selects_the_compression(tmp_path: Path) -> None:
    for name, module in [("a.txt.xz", lzma), ("a.txt.gz", gzip)]:
        with atomic_write(tmp_path / name) as file:
            file.write("hello")
        assert module.decompress((tmp_path / name).read_bytes()) == b"hello"  # type: ignore[attr-defined]


def test_gzip_output_depends_only_on_the_content(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with atomic_write_bytes(tmp_path / name) as file:
            file.write(b"same")
    content = (tmp_path / "a.gz").read_bytes()
    assert content == (tmp_path / "b.gz").read_bytes()
    assert content[4:8] == bytes(4)  # the time of writing


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "mark.txt"
    path.write_bytes("\ufeffone\ntwo".encode())
    assert list(read_lines(path)) == [(1, "one"), (2, "two")]
    with open_text(path) as file:
        assert file.read() == "one\ntwo"


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.jsonl", ".jsonl"), ("a.b.JSONL.XZ", ".jsonl"), ("a.gz", ""), ("a", ""), (".hidden", ""), ("a.b/c", "")],
)
def test_the_plain_suffix_excludes_the_compression(name: str, suffix: str) -> None:
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
def test_a_file_that_cannot_be_read_is_a_data_error_with_its_path(tmp_path: Path, name: str) -> None:
    path = _damaged(tmp_path, name)
    for read in (lambda: list(read_lines(path)), lambda: read_bytes(path)):
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.path == path
        assert caught.value.fix


def test_the_error_names_the_line_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"good\n" * 3000 + b"caf\xe9\n" + b"good\n" * 3000)
    with pytest.raises(DataError) as caught:
        list(read_lines(path))
    assert caught.value.line == 3001
    with pytest.raises(DataError), open_text(path) as file:
        file.read()


def interrupt_while_writing(path: Path) -> None:
    with atomic_write(path) as file:
        file.write("new")
        raise KeyboardInterrupt


def fail_while_filling(path: Path) -> None:
    with atomic_folder(path) as folder:
        (folder / "a").write_text("half")
        raise RuntimeError


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz", "out.txt.xz"])
def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with atomic_write(path) as file:
        file.write("old")
    old = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        interrupt_while_writing(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folders_are_created(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a" / "b" / "c.txt") as file:
        file.write("x")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "x"


def test_writing_errors_are_data_errors(tmp_path: Path) -> None:
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
        fail_while_filling(target)
    assert not any(tmp_path.iterdir())
    target.mkdir()  # an empty folder may be filled
    with atomic_folder(target) as folder:
        (folder / "a").write_text("whole")
    assert (target / "a").read_text() == "whole"
    with pytest.raises(DataError, match="exists already"), atomic_folder(target):
        pass


def fail_with_both(target: Path, *, as_folder: bool) -> None:
    with atomic_path(target) as temporary:
        if as_folder:
            temporary.mkdir()
            (temporary / "half").touch()
        else:
            temporary.write_text("half")
        raise RuntimeError


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_library_can_write_a_file_or_folder_atomically(tmp_path: Path, as_folder: bool) -> None:
    target = tmp_path / "new" / "model"
    with pytest.raises(RuntimeError):
        fail_with_both(target, as_folder=as_folder)
    assert list((tmp_path / "new").iterdir()) == []
    with atomic_path(target) as temporary:
        assert temporary.parent == target.parent
        assert not target.exists()
        temporary.write_text("whole")
    assert target.read_text() == "whole"
    assert list((tmp_path / "new").iterdir()) == [target]


def test_the_target_of_a_link_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "data.bin", tmp_path / "link.txt"
    link.symlink_to(target)
    for content in ("new", "newer"):  # at first the target does not exist
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


def test_pipes_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # no real device: if the check failed, a test run as root would replace it for the whole machine
    (tmp_path / "link").symlink_to(pipe(tmp_path))
    monkeypatch.chdir(tmp_path)
    for target in ("pipe", tmp_path / "link", "-"):
        for write in (atomic_write, atomic_folder):
            with pytest.raises(DataError, match=r"pipe or a device.*file name, such as out\.jsonl"), write(target):
                pass
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1", "/dev/null"])
def test_devices_and_open_file_descriptors_are_recognised_by_name(name: str) -> None:
    with pytest.raises(DataError, match="pipe or a device"):
        require_replaceable(name)
    require_replaceable("/dev/shm/out.jsonl")


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    for source in (Path("/dev/null"), Path("-"), pipe(tmp_path)):
        with pytest.raises(DataError, match=r"pipe or a device.*save its content to a file"):
            read_bytes(source)


@pytest.mark.parametrize(("head", "kind"), FILE_SIGNATURES.items())
def test_known_kinds_of_binary_files_are_described(head: bytes, kind: str) -> None:
    assert describe_binary(head + b"...") == kind


@pytest.mark.parametrize("head", [b"", b"Tom flew.", "Åse 北京\r\n".encode(), b"\xef\xbb\xbfTom", b"{}", b"caf\xe9"])
def test_text_is_not_described_as_binary(head: bytes) -> None:
    assert describe_binary(head) is None


def test_a_null_byte_is_a_sign_of_a_binary_file() -> None:
    assert describe_binary(b"Tom\0") == "a binary file"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.7\n\xe2\xe3\xcf\xd3", "a PDF document"),
        ("\ufeffTom flew.".encode("utf-16-le"), "text in UTF-16"),
        (gzip.compress(b"Tom", mtime=0), "a gzip file without the suffix .gz"),
        (lzma.compress(b"Tom"), "an xz file without the suffix .xz"),
    ],
)
def test_the_error_for_a_file_that_is_not_utf8_names_its_kind(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "news.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"this is {kind}, not UTF-8 text. Fix: save or export"):
        list(read_lines(path))
    with pytest.raises(DataError, match=kind), open_text(path) as file:
        file.read()


def test_binary_files_with_valid_utf8_are_refused_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "paper.txt"
    path.write_text("%PDF-1.7")
    assert list(read_lines(path)) == [(1, "%PDF-1.7")]
    with pytest.raises(DataError, match="a PDF document"):
        refuse_binary(path)
    compressed = tmp_path / "paper.txt.gz"
    compressed.write_bytes(gzip.compress(b"%PDF-1.7"))
    refuse_binary(compressed)  # the compressed bytes say nothing about the content


# --- limits on memory

BOMB_BYTES = 20_000_000


@pytest.fixture
def bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], Path]:
    """Writes a file of millions of equal bytes, compressed if its name says so, where files may have one megabyte."""
    monkeypatch.setenv(MAX_MEGABYTES, "1")

    def write(name: str, unit: bytes) -> Path:
        content = unit * (BOMB_BYTES // len(unit))
        packed = {".xz": lzma.compress, ".gz": gzip.compress}.get(Path(name).suffix, bytes)(content)
        (tmp_path / name).write_bytes(packed)
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", ["a.txt.xz", "a.txt.gz"])
@pytest.mark.parametrize("unit", [b"x", b"short lines\n"])
def test_a_decompression_bomb_is_refused_before_it_fills_the_memory(
    bomb: Callable[[str, bytes], Path], name: str, unit: bytes
) -> None:
    path = bomb(name, unit)
    for read in (lambda: sum(1 for _ in read_lines(path)), lambda: read_bytes(path), lambda: _read_text(path)):
        with (
            little_memory(),
            pytest.raises(TooLargeError, match=r"more than [1-4],\d{3},\d{3} bytes.*Fix: .*ONOMA_MAX_MEGA") as caught,
        ):
            read()
        assert caught.value.path == path


@contextmanager
def little_memory() -> Iterator[None]:
    """The block must need less memory than half of a bomb."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < BOMB_BYTES / 2
    finally:
        tracemalloc.stop()


def _read_text(path: Path) -> str:
    with open_text(path) as file:
        return file.read()


def test_an_endless_line_is_refused_before_it_fills_the_memory(bomb: Callable[[str, bytes], Path]) -> None:
    path = bomb("a.txt", b"x")
    message = r"line 1: the line has more than 1,000,000 bytes.*ONOMA_MAX_MEGABYTES"
    with little_memory(), pytest.raises(TooLargeError, match=message):
        list(read_lines(path))


def test_the_limit_can_be_raised(bomb: Callable[[str, bytes], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = bomb("a.txt.gz", b"x")
    monkeypatch.setenv(MAX_MEGABYTES, "20")
    assert [len(line) for _, line in read_lines(path)] == [BOMB_BYTES]


def test_large_compressed_files_may_expand_as_text_usually_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_MEGABYTES, "1")
    assert max_expanded_bytes(10) == 1_000_000
    assert max_expanded_bytes(10_000_000_000) == 1_000_000_000_000


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "²", "9" * 30])
def test_a_limit_that_is_not_a_number_of_megabytes_is_explained(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_MEGABYTES, value)
    with pytest.raises(OnomaError, match="ONOMA_MAX_MEGABYTES must be a number of megabytes"):
        max_bytes()


# --- access rights and names


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
@pytest.mark.parametrize("name", ["secret.jsonl", "secret.jsonl.gz"])
def test_a_file_that_is_overwritten_keeps_its_mode(tmp_path: Path, mode: int, name: str) -> None:
    path = tmp_path / name
    path.touch()
    path.chmod(mode)
    with atomic_write(path) as file:
        file.write("new")
        (part,) = tmp_path.glob(".*.part")
        assert not stat.S_IMODE(part.stat().st_mode) & 0o077  # nobody else can read the new file meanwhile
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(read_lines(path)) == [(1, "new")]


def test_new_files_have_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with atomic_write(tmp_path / "new") as file:
        file.write("new")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("name", ["n" * 300, "a/" * 3000, "a\0b"])
def test_names_that_no_file_can_have_are_data_errors(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(DataError, match="Fix: "):
        read_bytes(path)
    for write in (atomic_write, atomic_folder):
        with pytest.raises(DataError, match="Fix: "), write(path):
            raise AssertionError("found only when all is written")


def test_a_file_in_place_of_a_folder_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = r"this is a file, but a folder.*Fix: give a new folder"
    with pytest.raises(DataError, match=message), atomic_folder(tmp_path / "file"):
        pass
