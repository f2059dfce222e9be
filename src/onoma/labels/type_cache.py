"""A cache of encoded types: each type is encoded once, then kept in memory and, if wanted, on disk."""

from __future__ import annotations

import hashlib
import io
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from onoma.files import atomic_write_bytes
from onoma.locks import ForkSafeLock

T = TypeVar("T")
Row = NDArray[np.float32]
Encode = Callable[[list[int]], NDArray[np.float32]]
"""Encodes the types at some places of a list: one row per place."""

MAX_BYTES = 100_000_000
"""Bytes of the rows kept in memory; the least recently used are dropped first."""

_CHECKSUM_BYTES = 32  # at the end of each file
_BYTES_PER_ENTRY = 300  # of a row beside its numbers: its key and Python objects


class TypeCache:
    """The rows of types, by what they depend on (a key): from memory, from a folder, or encoded. It is thread-safe.

    Keys are kept as digests, so that long descriptions take no memory.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._rows: OrderedDict[str, Row] = OrderedDict()
        self._bytes = 0
        self.hits = self.misses = 0
        """Types that were found in memory, and types that were not."""
        self._lookup_lock, self._encode_lock = ForkSafeLock(), ForkSafeLock()

    def rows(self, keys: Sequence[str], encode: Encode) -> NDArray[np.float32]:
        """One row per key; `encode` is called for the places of those that are not in the cache."""
        digests = list(map(_digest, keys))
        places = {digest: place for place, digest in enumerate(digests)}
        found = self._look_up(places)
        self.hits += len(found)
        self.misses += len(places) - len(found)
        if len(found) < len(places):
            with self._encode_lock:  # if another thread is encoding the same types, its result is used
                found |= self._look_up(places.keys() - found.keys())
                found |= self._keep(self._read(places.keys() - found.keys()) if self.folder else {})
                found |= self._keep(self._encode({key: places[key] for key in places if key not in found}, encode))
        return np.stack([found[digest] for digest in digests])

    def _look_up(self, keys: Iterable[str]) -> dict[str, Row]:
        with self._lookup_lock:
            found = {key: self._rows[key] for key in keys if key in self._rows}
            for key in found:
                self._rows.move_to_end(key)
        return found

    def _keep(self, rows: dict[str, Row]) -> dict[str, Row]:
        with self._lookup_lock:
            self._rows.update(rows)
            self._bytes += sum(map(_size, rows.values()))
            while self._bytes > MAX_BYTES:
                self._bytes -= _size(self._rows.popitem(last=False)[1])
        return rows

    def _encode(self, missing: Mapping[str, int], encode: Encode) -> dict[str, Row]:
        if not missing:
            return {}
        encoded = encode(list(missing.values()))
        rows = {key: row.copy() for key, row in zip(missing, encoded, strict=True)}  # a view would keep all of them
        if self.folder is not None:
            for key, row in rows.items():
                with atomic_write_bytes(self._path(key)) as file:
                    file.write(_as_bytes(row))
        return rows

    def _read(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows in the folder; a file that is damaged or cannot be read counts as missing and is written again."""
        rows = {}
        for key in keys:
            try:
                row = _from_bytes(self._path(key).read_bytes())
            except OSError:
                continue
            if row is not None:
                rows[key] = row
        return rows

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}.npy"


class Latest(Generic[T]):
    """The value of the latest key: asking again with an equal key does not make it again. It is thread-safe."""

    def __init__(self) -> None:
        self._entry: tuple[Any, T] | None = None

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """The value of a key, which must not be changed later."""
        entry = self._entry
        if entry is None or entry[0] != key:
            self._entry = entry = key, make()  # replaced as a whole, so no lock is needed
        return entry[1]


def _size(row: Row) -> int:
    return row.nbytes + _BYTES_PER_ENTRY


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _as_bytes(row: Row) -> bytes:
    """A row as a numpy file, with a checksum at the end."""
    buffer = io.BytesIO()
    np.save(buffer, row, allow_pickle=False)
    content = buffer.getvalue()
    return content + hashlib.sha256(content).digest()


def _from_bytes(content: bytes) -> Row | None:
    """The row of a file; None if it is damaged."""
    content, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if hashlib.sha256(content).digest() != checksum:
        return None
    row: Row = np.load(io.BytesIO(content), allow_pickle=False)
    return row if row.dtype == np.float32 and row.ndim == 1 and np.isfinite(row).all() else None
