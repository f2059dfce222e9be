"""Files and folders on disks and in object stores: paths, and URLs such as s3://bucket/key through pyarrow or fsspec.

Nothing here needs pyarrow as long as all names are paths.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import hashlib
import io
import lzma
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from onoma.errors import DataError, OnomaError
from onoma.files import atomic_write_bytes, reading_errors

COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst")
"""Files whose names end with one of these are decompressed on reading."""

_WILDCARD, _URL_WILDCARD = re.compile(r"[*?\[]"), re.compile(r"[*\[]")
_PART = ".part"  # suffix of files that are being written
_HASHED_BYTES = 1 << 16  # of each end of a file whose time of modification is not known
_LOCAL_SCHEMES = ("file", "local")
_PROCESS_SCHEMES = {"memory", "mock"}  # storages of which every process has its own
_ARROW_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")


def require(module: str, purpose: str) -> Any:
    """Import an optional library, or say how to install it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = (error.name or module).partition(".")[0]
        raise OnomaError(f'{purpose} needs {name}. Fix: pip install "onoma[ray]"') from error


def is_url(name: str) -> bool:
    """Whether a name is a URL and not a path.

    >>> is_url("s3://bucket/news/*.parquet"), is_url("C:/news.parquet")
    (True, False)
    """
    return "://" in name


def name_suffixes(name: str) -> tuple[str, str]:
    """The extension of a file in lower case and the suffix of its compression; each may be empty.

    >>> name_suffixes("s3://bucket/News.JSONL.zst")
    ('.jsonl', '.zst')
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(name.partition("?")[0].replace("\\", "/")).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return (suffixes[-1] if suffixes else ""), compression


class InputFile(NamedTuple):
    """A file to read."""

    name: str  # path or URL
    bytes: int
    version: str  # changes with the content: the time of modification, or a hash of both ends


def file_key(name: str) -> str:
    """The same for all names of a file or folder: relative and absolute paths, symbolic links, file:// URLs."""
    if not is_url(name):
        return os.path.realpath(name)
    if name.partition("://")[0].lower() in _LOCAL_SCHEMES:
        return os.path.realpath(open_filesystem(name)[1])
    return name.rstrip("/")


def is_inside(key: str, folder: str) -> bool:
    """Whether a file is in a folder, both given by their keys."""
    return key.startswith(folder + ("/" if is_url(folder) else os.sep))


def find_files(source: str) -> list[InputFile]:
    """The files that a path, a folder, a pattern with wildcards or a URL stands for, sorted by name.

    Files in folders whose names start with "." or "_" are left out, as other programs do.
    """
    found = _find_urls(source) if is_url(source) else _find_paths(source)
    if not found:
        fix = "check the path; put patterns with * in quotes, so that the shell leaves them as they are"
        raise DataError("there is no such file", path=source, fix=fix)
    return sorted(found)


def _find_paths(source: str) -> list[InputFile]:
    if os.path.isdir(source):
        paths = glob.glob(os.path.join(glob.escape(source), "**"), recursive=True)
        paths = [path for path in paths if not _is_hidden(os.path.relpath(path, source))]
    elif os.path.exists(source) or not _WILDCARD.search(source):
        paths = [source]
    else:
        paths = glob.glob(source, recursive=True)
    found = [(path, os.stat(path)) for path in paths if os.path.isfile(path)]
    return [InputFile(path, status.st_size, str(status.st_mtime_ns)) for path, status in found]


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in Path(path).parts)


def _find_urls(source: str) -> list[InputFile]:
    """The same for URLs; a pattern may have * and [...] in any part of its path."""
    fs = require("pyarrow.fs", "a URL")
    url, _, query = source.partition("?")
    options = f"?{query}" if query else ""
    pattern = _URL_WILDCARD.search(url)
    base = url[: pattern.start()].rpartition("/")[0] if pattern else url.rstrip("/")
    system, path = open_filesystem(base + options)
    with input_errors(source):
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            return [_describe_url(source, system, info)]
        infos = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    found = []
    for info in infos:
        inner = info.path.removeprefix(path).lstrip("/")
        wanted = _matches(inner, url[len(base) + 1 :]) if pattern else not _is_hidden(inner)
        if wanted and info.type == fs.FileType.File:
            with input_errors(source):
                found.append(_describe_url(f"{base}/{inner}{options}", system, info))
    return found


def _describe_url(url: str, system: Any, info: Any) -> InputFile:
    if info.mtime_ns is not None:
        return InputFile(url, info.size, str(info.mtime_ns))
    with system.open_input_file(info.path) as file:
        ends = [file.read_at(min(_HASHED_BYTES, info.size), start) for start in (0, max(0, info.size - _HASHED_BYTES))]
    return InputFile(url, info.size, hashlib.sha256(b"".join(ends)).hexdigest()[:32])


def _matches(path: str, pattern: str) -> bool:
    """As in `glob`: only ** stands for any number of folders."""
    if "**" in pattern:
        return fnmatchcase(path, pattern.replace("**/", "*"))
    return path.count("/") == pattern.count("/") and fnmatchcase(path, pattern)


def open_filesystem(url: str) -> tuple[Any, str]:
    """The pyarrow file system of a URL, and the path in it; other schemes than those of pyarrow go through fsspec."""
    fs = require("pyarrow.fs", "a URL")
    scheme = url.partition("://")[0].lower()
    if urlsplit(url).password:
        fix = "give it in the environment (AWS_SECRET_ACCESS_KEY or the like), because URLs are written to the manifest"
        raise OnomaError(f"a URL must not contain a password. Fix: {fix}")
    if _PROCESS_SCHEMES.intersection(scheme.split("::")):
        fix = "give a path, or the URL of a storage that all processes can reach"
        raise DataError("other processes cannot see this storage", path=url, fix=fix)
    try:
        if scheme in _ARROW_SCHEMES:
            system, path = fs.FileSystem.from_uri(url)
            return system, path
        other, path = require("fsspec.core", f"{scheme}://").url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(other)), path
    except (ImportError, ValueError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(
            f"this URL cannot be opened ({reason})", path=url, fix="check the URL and its access"
        ) from error


@contextmanager
def open_input(name: str, offset: int = 0) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed by its suffix; `offset` is for files that are not compressed."""
    compression = name_suffixes(name)[1]
    with input_errors(name), _open_raw(name) as raw, _decompressed(raw, compression) as file:
        if offset:
            file.seek(offset)
        yield file


@contextmanager
def input_errors(name: str) -> Iterator[None]:
    """Raise one DataError for whatever goes wrong with a file or URL."""
    with reading_errors(cast(Path, name) if is_url(name) else Path(name)):  # a Path would shorten "://"
        yield


def _open_raw(name: str) -> IO[bytes]:
    if not is_url(name):
        return open(name, "rb")
    system, path = open_filesystem(name)
    return cast(IO[bytes], io.BufferedReader(system.open_input_file(path), 1 << 20))


def _decompressed(raw: IO[bytes], compression: str) -> IO[bytes]:
    match compression:
        case ".gz":
            return cast(IO[bytes], gzip.open(raw, "rb"))
        case ".xz":
            return cast(IO[bytes], lzma.open(raw, "rb"))
        case ".bz2":
            return cast(IO[bytes], bz2.open(raw, "rb"))
        case ".zst":
            pyarrow = require("pyarrow", "a .zst file")
            return cast(IO[bytes], io.BufferedReader(pyarrow.CompressedInputStream(raw, "zstd"), 1 << 17))
    return raw


@contextmanager
def output_errors(name: str) -> Iterator[None]:
    """Raise a DataError if a folder cannot be written to."""
    try:
        yield
    except OnomaError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).strip().split("\n")[0]
        fix = "check the path, the permissions and the free space, or give another folder"
        raise DataError(f"the folder cannot be written ({reason:.200})", path=name, fix=fix) from error


class OutputFolder(Protocol):
    """The folder that results are written to. Files appear in it when they are complete."""

    name: str

    def names(self, inner: str = "") -> set[str]:
        """The names of the files in the folder, or in a folder inside it; empty if it does not exist."""

    def write(self, name: str) -> Any:
        """A context manager that yields a binary file, which appears when the block ends without an error."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def remove(self, name: str) -> None:
        """Remove a file or a folder inside, if it exists."""


def open_output(name: str) -> OutputFolder:
    """A folder by its path or URL; it need not exist."""
    return _UrlFolder(name) if is_url(name) else _DiskFolder(name)


class _DiskFolder:
    """A folder on a disk, local or shared."""

    def __init__(self, name: str) -> None:
        if os.path.exists(name) and not os.path.isdir(name):
            raise DataError("this is a file, but a folder is to be written", path=name, fix="give a new folder")
        self.name = os.path.abspath(name)
        self.path = Path(self.name)

    def names(self, inner: str = "") -> set[str]:
        try:
            return set(os.listdir(self.path / inner))
        except (FileNotFoundError, NotADirectoryError):
            return set()

    @contextmanager
    def write(self, name: str) -> Iterator[IO[bytes]]:
        with atomic_write_bytes(self.path / name, durable=True) as file:
            yield file

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            if (self.path / name).is_dir():
                shutil.rmtree(self.path / name, ignore_errors=True)
            else:
                (self.path / name).unlink()


class _UrlFolder:
    """A folder in an object store, or in another storage that pyarrow or fsspec can reach."""

    def __init__(self, name: str) -> None:
        self.name = name.rstrip("/")
        self.system, self.path = open_filesystem(self.name)

    def names(self, inner: str = "") -> set[str]:
        from pyarrow.fs import FileSelector

        base = f"{self.path}/{inner}".rstrip("/")
        with output_errors(self.name):
            infos = self.system.get_file_info(FileSelector(base, allow_not_found=True))
        return {info.base_name for info in infos}

    @contextmanager
    def write(self, name: str) -> Iterator[IO[bytes]]:
        with output_errors(self.name), self._write(name) as file:
            yield file

    @contextmanager
    def _write(self, name: str) -> Iterator[IO[bytes]]:
        target = f"{self.path}/{name}"
        folder, _, last = target.rpartition("/")
        temporary = f"{folder}/.{secrets.token_hex(8)}{_PART}"
        self.system.create_dir(folder, recursive=True)
        try:
            with self.system.open_output_stream(temporary, compression=None) as raw:
                if last.endswith(".gz"):
                    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                        yield cast(IO[bytes], packed)
                else:
                    yield raw
            self.system.move(temporary, target)
        except BaseException:
            with suppress(OSError):
                self.system.delete_file(temporary)
            raise

    def read(self, name: str) -> bytes:
        with self.system.open_input_stream(f"{self.path}/{name}", compression=None) as file:
            content: bytes = file.read()
            return content

    def remove(self, name: str) -> None:
        from pyarrow.fs import FileType

        path = f"{self.path}/{name}"
        match self.system.get_file_info(path).type:
            case FileType.File:
                self.system.delete_file(path)
            case FileType.Directory:
                self.system.delete_dir(path)


def is_unfinished(name: str) -> bool:
    """Whether a file is one that was being written when a process was killed."""
    return name.startswith(".") and name.endswith(_PART)
