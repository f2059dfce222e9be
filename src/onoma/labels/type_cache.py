"""A cache of encoded types: each type is encoded once, then kept in memory and, if wanted, on disk."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from onoma.files import atomic_write_bytes

Row = NDArray[np.float32]
Encode = Callable[[list[int]], NDArray[np.float32]]
"""Encodes the types at some places of a list: one row per place."""

MAX_ROWS = 20_000
"""Rows kept in memory; the least recently used are dropped first."""


class TypeCache:
    """The rows of types, by what they depend on (a key): from memory, from a folder, or encoded. It is thread-safe."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._rows: OrderedDict[str, Row] = OrderedDict()
        self._lookup_lock, self._encode_lock = Lock(), Lock()

    def rows(self, keys: Sequence[str], encode: Encode) -> NDArray[np.float32]:
        """One row per key; `encode` is called for the places of those that are not in the cache."""
        places = {key: place for place, key in enumerate(keys)}
        found = self._look_up(places)
        if len(found) < len(places):
            with self._encode_lock:  # if another thread is encoding the same types, its result is used
                found |= self._look_up(places.keys() - found.keys())
                found |= self._keep(self._read(places.keys() - found.keys()) if self.folder else {})
                found |= self._keep(self._encode({key: places[key] for key in places if key not in found}, encode))
        return np.stack([found[key] for key in keys])

    def _look_up(self, keys: Iterable[str]) -> dict[str, Row]:
        with self._lookup_lock:
            found = {key: self._rows[key] for key in keys if key in self._rows}
            for key in found:
                self._rows.move_to_end(key)
        return found

    def _keep(self, rows: dict[str, Row]) -> dict[str, Row]:
        with self._lookup_lock:
            self._rows.update(rows)
            while len(self._rows) > MAX_ROWS:
                self._rows.popitem(last=False)
        return rows

    def _encode(self, missing: Mapping[str, int], encode: Encode) -> dict[str, Row]:
        if not missing:
            return {}
        rows = dict(zip(missing, encode(list(missing.values())), strict=True))
        if self.folder is not None:
            for key, row in rows.items():
                with atomic_write_bytes(self._path(key)) as file:
                    np.save(file, row, allow_pickle=False)
        return rows

    def _read(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows in the folder; a file that cannot be read counts as missing and is written again."""
        rows = {}
        for key in keys:
            try:
                row = np.load(self._path(key), allow_pickle=False)
            except (OSError, ValueError, EOFError):
                continue
            if row.dtype == np.float32 and row.ndim == 1:
                rows[key] = row
        return rows

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass"))  # a label may contain half of a surrogate pair
        return self.folder / f"{digest.hexdigest()}.npy"
