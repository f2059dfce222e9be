"""Reading and writing files: plain or compressed, with errors that name file and line, and atomic writes.

Lines end at "\\n" only; "\\r", "\\x85" and "\\u2028" are ordinary characters of the text.

What a file can do to memory is bounded: see `max_bytes`.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from onoma.errors import DataError, OnomaError, TooLargeError

if TYPE_CHECKING:
    from os import PathLike

    AnyPath = str | PathLike[str]

COMPRESSIONS = (".xz", ".gz")
"""Files whose names end with one of these are decompressed on reading and compressed on writing."""

STANDARD_STREAM = "-"
STREAM_NAMES = ("/dev/std", "/dev/fd/", "/proc/self/fd/")
"""Open file descriptors of the process; some of them may point to a regular file."""

FILE_SIGNATURES = {
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive or an Office document (docx, xlsx, pptx, odt)",
    b"\xd0\xcf\x11\xe0": "an old Office document (doc, xls, ppt)",
    b"{\\rtf": "an RTF document",
    b"\x1f\x8b": "a gzip file without the suffix .gz",
    b"\xfd7zXZ\x00": "an xz file without the suffix .xz",
    b"BZh": "a bzip2 file",
    b"(\xb5/\xfd": "a Zstandard file",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"\x7fELF": "a program",
    b"SQLite format 3": "an SQLite database",
    b"PAR1": "a Parquet file",
}
"""The first bytes of files that people take for text by mistake."""

MAX_MEGABYTES = "ONOMA_MAX_MEGABYTES"
"""The environment variable with the limit of `max_bytes`, in megabytes."""
DEFAULT_MAX_MEGABYTES = 256
USUAL_EXPANSION = 100
"""No usual text becomes so many times as large when it is decompressed."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAVE_AS_UTF8 = "save the file as UTF-8"


def max_bytes() -> int:
    """The most bytes that a line may have, or that a small compressed file may expand to.

    Larger compressed files may expand to `USUAL_EXPANSION` times their size.
    """
    value = os.environ.get(MAX_MEGABYTES) or str(DEFAULT_MAX_MEGABYTES)
    if not (value.isascii() and value.isdigit() and 0 < len(value) < 10 and int(value)):
        raise OnomaError(f"{MAX_MEGABYTES} must be a number of megabytes, got {value!r:.80}")
    return int(value) * 1_000_000


def max_expanded_bytes(compressed: int) -> int:
    """The most bytes that a compressed file of some size may expand to."""
    return max(max_bytes(), USUAL_EXPANSION * compressed)


def too_large(message: str, path: AnyPath, line: int | None = None) -> TooLargeError:
    """The error for a file that exceeds one of these limits."""
    fix = f"check the file; if it is as it should be, set {MAX_MEGABYTES} to more than {max_bytes() // 1_000_000}"
    return TooLargeError(message, path=path, line=line, fix=fix)


def plain_suffix(path: AnyPath) -> str:
    """The extension in lower case, without the suffix of a compression.

    >>> plain_suffix("corpus/Train.JSONL.xz")
    '.jsonl'
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def describe_binary(head: bytes) -> str | None:
    """The kind of file that starts with these bytes, if it is a well-known kind that is not UTF-8 text.

    >>> describe_binary(b"%PDF-1.7 ...")
    'a PDF document'
    """
    for signature, kind in FILE_SIGNATURES.items():
        if head.startswith(signature):
            return kind
    return "a binary file" if b"\0" in head else None


def refuse_binary(path: AnyPath) -> None:
    """Raise an error if a file is of a well-known binary kind, even if its bytes are valid UTF-8."""
    if _compression(Path(path)):
        return
    with reading_errors(Path(path)), open(path, "rb") as file:
        kind = describe_binary(file.read(512))
    if kind is not None:
        fix = "save or export it as UTF-8 text (.txt) or as JSON lines, and give that file"
        raise DataError(f"this is {kind}, not UTF-8 text", path=path, fix=fix)


def _not_utf8(path: Path, reason: str, line: int | None = None) -> DataError:
    """The error for a file that is not UTF-8; it names the kind of file if that is known."""
    try:
        refuse_binary(path)
    except DataError as error:
        return error
    return DataError(
        f"the {'file' if line is None else 'line'} is not UTF-8 ({reason})", path=path, line=line, fix=_SAVE_AS_UTF8
    )


def _compression(path: Path) -> str:
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Raise one DataError for whatever goes wrong with a missing or damaged file."""
    try:
        yield
    except OnomaError:
        raise
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, fix="check the path") from None
    except IsADirectoryError:
        raise DataError("this is a folder, a file is needed here", path=path, fix="name a file in it") from None
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        fix = "create or download the file again; if it is not compressed, remove the suffix from its name"
        raise DataError(f"the compressed file is damaged or truncated ({error})", path=path, fix=fix) from None
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error.reason) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path=path, fix="check the file") from None


class _Expanded(io.RawIOBase):
    """A decompressed file, which must not become too large."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path
        self.limit, self.size = max_expanded_bytes(os.path.getsize(path)), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.file.read(len(buffer))
        buffer[: len(content)] = content
        self.size += len(content)
        if self.size > self.limit:
            raise too_large(f"the file expands to more than {self.limit:,} bytes", self.path)
        return len(content)

    def close(self) -> None:
        self.file.close()
        super().close()


def _decompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    openers: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}
    open_compressed = openers.get(_compression(path))
    return io.BufferedReader(_Expanded(open_compressed(raw), path), 1 << 17) if open_compressed else raw


def _invalid_name(path: AnyPath) -> DataError:
    return DataError("the name of a file cannot contain a NUL character", path=repr(str(path)), fix="check the path")


def require_storage(path: AnyPath) -> None:
    """Refuse pipes and devices: files are read twice, the first time to detect their format."""
    if "\0" in str(path):
        raise _invalid_name(path)
    if str(path) == STANDARD_STREAM or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
        message = "this is not a file but a pipe or a device, which can be read only once"
        raise DataError(message, path=path, fix="save its content to a file and give that file")


@contextmanager
def open_bytes(path: AnyPath) -> Iterator[IO[bytes]]:
    """Open a plain or compressed file for reading; errors inside the block become a DataError."""
    path = Path(path)
    require_storage(path)
    with reading_errors(path), open(path, "rb") as raw, _decompressed(raw, path) as file:
        yield file


@contextmanager
def open_text(path: AnyPath) -> Iterator[TextIO]:
    """Open a plain or compressed UTF-8 file for reading; line ends stay as they are."""
    with open_bytes(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as text:
        yield text


def read_bytes(path: AnyPath) -> bytes:
    """All bytes of a plain or compressed file."""
    with open_bytes(path) as file:
        return file.read()


def read_lines(path: AnyPath) -> Iterator[tuple[int, str]]:
    """The lines of a plain or compressed file, numbered from 1, without the trailing "\\n"."""
    with open_bytes(path) as file:
        for number, line in bounded_lines(file, path):
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
            try:
                yield number, line.removesuffix(b"\n").decode("utf-8")
            except UnicodeDecodeError as error:
                raise _not_utf8(Path(path), f"byte {error.start + 1}: {error.reason}", line=number) from None


def bounded_lines(file: IO[bytes], path: AnyPath) -> Iterator[tuple[int, bytes]]:
    """The lines of an open file, numbered from 1; an error for a line that is too long to be held in memory."""
    limit, number = max_bytes(), 0
    while line := file.readline(limit + 1):
        number += 1
        if len(line) > limit:
            raise too_large(f"the line has more than {limit:,} bytes", path, number)
        yield number, line


@contextmanager
def _writing_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OnomaError:
        raise
    except UnicodeEncodeError as error:
        message = f"an unpaired surrogate cannot be written as UTF-8 ({error.object[error.start]!a})"
        raise DataError(message, path=path, fix="remove it from the text") from None
    except OSError as error:
        fix = "check that the folder can be written to and that the disk is not full"
        raise DataError(f"cannot be written ({error.strerror or error})", path=path, fix=fix) from None


def require_replaceable(path: AnyPath) -> None:
    """Refuse to write to pipes and devices: the atomic rename would replace them by a file."""
    if "\0" in str(path):
        raise _invalid_name(path)
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    if special or str(path) == STANDARD_STREAM or str(path).startswith(STREAM_NAMES):
        message = "this is not a file but a pipe or a device; output is written atomically, which needs a file"
        raise DataError(message, path=path, fix="give a file name, such as out.jsonl")


@contextmanager
def atomic_path(target: AnyPath, *, durable: bool = False) -> Iterator[Path]:
    """A temporary path beside the target, which is renamed to it when the block succeeds and removed when it fails.

    For libraries that write files or folders themselves; `atomic_write` and `atomic_folder` are built on it. A durable
    file is on the disk before it is renamed, so that it is complete even after a power failure.
    """
    with _writing_errors(Path(target)):
        path = Path(os.path.realpath(target))  # symbolic links are followed, not replaced
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.lstat()  # a name that is too long is an error now, not when all is written
        temporary = path.with_name(f".{secrets.token_hex(8)}.part")
        try:
            yield temporary
            if os.path.isfile(path):
                _copy_access(path, temporary)
            if durable:
                _flush_to_disk(temporary)
            os.replace(temporary, path)
        except BaseException:
            if temporary.is_dir():
                shutil.rmtree(temporary, ignore_errors=True)
            else:
                temporary.unlink(missing_ok=True)
            raise


def _flush_to_disk(path: Path) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _copy_access(source: Path, target: Path) -> None:
    """Give a file the mode and, if that is allowed, the owner of another one."""
    known = source.stat()
    with suppress(OSError, AttributeError):  # Windows has no chown
        os.chown(target, known.st_uid, known.st_gid)
    os.chmod(target, stat.S_IMODE(known.st_mode))


def _compressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    match _compression(path):
        case ".xz":
            return cast(IO[bytes], lzma.open(raw, "wb"))
        case ".gz":  # no name and no time in the header, so that equal documents give equal bytes
            return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
    return raw


@contextmanager
def atomic_write_bytes(path: AnyPath, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """Write a file atomically, compressed if its name ends with .xz or .gz; see `atomic_path`."""
    path = Path(path)
    require_replaceable(path)
    if os.path.isdir(path):
        raise DataError("this is a folder, but a file is to be written", path=path, fix="give a file name")
    mode = 0o600 if os.path.exists(path) else 0o666  # the mode of a file that is replaced is set when all is written
    with (
        atomic_path(path, durable=durable) as temporary,
        open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as raw,
        _compressed(raw, path) as file,
    ):
        yield file


@contextmanager
def atomic_write(path: AnyPath) -> Iterator[TextIO]:
    """Write a UTF-8 text file atomically, compressed if its name ends with .xz or .gz."""
    with atomic_write_bytes(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
        yield text


@contextmanager
def atomic_folder(path: AnyPath) -> Iterator[Path]:
    """Create a new folder that appears when it is complete, or not at all."""
    path = Path(path)
    require_replaceable(path)
    if os.path.exists(path) and not os.path.isdir(path):
        raise DataError("this is a file, but a folder is to be written", path=path, fix="give a new folder")
    with _writing_errors(path):
        if os.path.isdir(path) and os.listdir(path):
            raise DataError("the folder exists already", path=path, fix="give a new folder, or remove this one")
    with atomic_path(path) as temporary:
        temporary.mkdir()
        yield temporary
