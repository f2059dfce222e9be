"""Files in and out: plain or compressed, errors that name the file and the line, and no half-written output.

A line ends at "\\n" and nowhere else: "\\r", "\\x85" and "\\u2028" are characters of the text.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, cast

from onoma.errors import DataError, OnomaError

if TYPE_CHECKING:
    from os import PathLike

    AnyPath = str | PathLike[str]

COMPRESSIONS = (".xz", ".gz")
"""A file with one of these at the end of its name is decompressed when read and compressed when written."""

STANDARD_STREAM = "-"
STREAM_NAMES = ("/dev/std", "/dev/fd/", "/proc/self/fd/")
"""The open files of the process, which may lead to a regular file, too."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAVE_AS_UTF8 = "save the file as UTF-8"


def plain_suffix(path: AnyPath) -> str:
    """The extension that tells the format, in lower case: that before a compression.

    >>> plain_suffix("corpus/Train.JSONL.xz")
    '.jsonl'
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _compression(path: Path) -> str:
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


@contextmanager
def _reading_errors(path: Path) -> Iterator[None]:
    """Turn whatever a missing or damaged file raises into one DataError."""
    try:
        yield
    except OnomaError:
        raise
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, fix="check the path") from None
    except IsADirectoryError:
        raise DataError("this is a folder, a file is needed here", path=path, fix="name a file in it") from None
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        fix = "make or download the file again; if it is not compressed, take the suffix off its name"
        raise DataError(f"the compressed file is damaged or cut off ({error})", path=path, fix=fix) from None
    except UnicodeDecodeError as error:
        raise DataError(f"the file is not UTF-8 ({error.reason})", path=path, fix=_SAVE_AS_UTF8) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path=path, fix="check the file") from None


def _decompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    match _compression(path):
        case ".xz":
            return cast(IO[bytes], lzma.open(raw))
        case ".gz":
            return cast(IO[bytes], gzip.open(raw))
    return raw


def require_storage(path: AnyPath) -> None:
    """Refuse to read pipes and devices: files are read twice, first to tell their format."""
    if str(path) == STANDARD_STREAM or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
        message = "this is not a file but a pipe or a device, which can be read only once"
        raise DataError(message, path=path, fix="save what it gives to a file first, and name that file")


@contextmanager
def open_bytes(path: AnyPath) -> Iterator[IO[bytes]]:
    """Open a plain or compressed file for reading; what goes wrong inside of the block is a DataError."""
    path = Path(path)
    require_storage(path)
    with _reading_errors(path), open(path, "rb") as raw, _decompressed(raw, path) as file:
        yield file


@contextmanager
def open_text(path: AnyPath) -> Iterator[TextIO]:
    """Open a plain or compressed UTF-8 file for reading, without any change to its line ends."""
    with open_bytes(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as text:
        yield text


def read_bytes(path: AnyPath) -> bytes:
    """All bytes of a plain or compressed file."""
    with open_bytes(path) as file:
        return file.read()


def read_lines(path: AnyPath) -> Iterator[tuple[int, str]]:
    """The lines of a plain or compressed file with their numbers from 1, without the "\\n" at their ends."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
            try:
                yield number, line.removesuffix(b"\n").decode("utf-8")
            except UnicodeDecodeError as error:
                message = f"the line is not UTF-8 (byte {error.start + 1}: {error.reason})"
                raise DataError(message, path=path, line=number, fix=_SAVE_AS_UTF8) from None


@contextmanager
def _writing_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OnomaError:
        raise
    except UnicodeEncodeError as error:
        message = f"half of a surrogate pair cannot be written as UTF-8 ({error.object[error.start]!a})"
        raise DataError(message, path=path, fix="mend the text that holds it") from None
    except OSError as error:
        fix = "check that the folder can be written to and that the disk is not full"
        raise DataError(f"cannot be written ({error.strerror or error})", path=path, fix=fix) from None


def require_replaceable(path: AnyPath) -> None:
    """Refuse to write to pipes and devices: a new file would take their place."""
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    if special or str(path) == STANDARD_STREAM or str(path).startswith(STREAM_NAMES):
        message = "this is not a file but a pipe or a device; output is written to a file, whole or not at all"
        raise DataError(message, path=path, fix="give the name of a file, such as out.jsonl")


@contextmanager
def _replacing(named: Path) -> Iterator[Path]:
    """A temporary name in the same folder that takes the place of what is named when the block ends well."""
    with _writing_errors(named):
        path = Path(os.path.realpath(named))  # a link stays, and what it leads to is written
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{secrets.token_hex(8)}.part")
        try:
            yield temporary
            os.replace(temporary, path)
        except BaseException:
            if temporary.is_dir():
                shutil.rmtree(temporary, ignore_errors=True)
            else:
                temporary.unlink(missing_ok=True)
            raise


def _compressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    match _compression(path):
        case ".xz":
            return cast(IO[bytes], lzma.open(raw, "wb"))
        case ".gz":  # no name and no time in the header: the same documents make the same bytes
            return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
    return raw


@contextmanager
def atomic_write_bytes(path: AnyPath) -> Iterator[IO[bytes]]:
    """Write a file, compressed if its name says so, that appears complete or not at all."""
    path = Path(path)
    require_replaceable(path)
    if path.is_dir():
        raise DataError("this is a folder, a file is to be written", path=path, fix="give the name of a file")
    with _replacing(path) as temporary, open(temporary, "xb") as raw, _compressed(raw, path) as file:
        yield file


@contextmanager
def atomic_write(path: AnyPath) -> Iterator[TextIO]:
    """Write a UTF-8 text file, compressed if its name says so, that appears complete or not at all."""
    with atomic_write_bytes(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
        yield text


@contextmanager
def atomic_folder(path: AnyPath) -> Iterator[Path]:
    """Fill a new folder that appears complete or not at all."""
    path = Path(path)
    require_replaceable(path)
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise DataError("exists already", path=path, fix="name a new folder, or remove this one")
    with _replacing(path) as temporary:
        temporary.mkdir()
        yield temporary
