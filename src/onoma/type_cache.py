"""The rows of numbers that types become: encoded once, then kept in memory and, if wanted, on disk."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from onoma.backends.base import Backend
from onoma.data.files import atomic_write_bytes
from onoma.entities import EntityType

Row = NDArray[np.float32]

MOST_ROWS = 20_000
"""Rows kept in memory; those not asked for the longest go first."""


class TypeCache:
    """Gives the rows of types, from memory, from a folder, or from the backend. Threads may share it."""

    def __init__(self, backend: Backend, folder: str | os.PathLike[str] | None = None) -> None:
        self.backend = backend
        self.folder = None if folder is None else Path(folder)
        self._rows: OrderedDict[str, Row] = OrderedDict()
        self._looking, self._encoding = Lock(), Lock()

    def rows(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """One row a type, in their order."""
        keys = [self.backend.type_key(one) for one in types]
        keyed = dict(zip(keys, types, strict=True))
        found = self._look_up(keyed)
        if len(found) < len(keyed):
            with self._encoding:  # another thread may be at work on the same types: then wait for it
                found |= self._look_up(keyed.keys() - found.keys())
                missing = {key: one for key, one in keyed.items() if key not in found}
                found |= self._keep(self._read(missing) if self.folder else {})
                missing = {key: one for key, one in missing.items() if key not in found}
                found |= self._keep(self._encode(missing))
        return np.stack([found[key] for key in keys])

    def _look_up(self, keys: Iterable[str]) -> dict[str, Row]:
        with self._looking:
            found = {key: self._rows[key] for key in keys if key in self._rows}
            for key in found:
                self._rows.move_to_end(key)
        return found

    def _keep(self, rows: dict[str, Row]) -> dict[str, Row]:
        with self._looking:
            self._rows.update(rows)
            while len(self._rows) > MOST_ROWS:
                self._rows.popitem(last=False)
        return rows

    def _encode(self, missing: Mapping[str, EntityType]) -> dict[str, Row]:
        if not missing:
            return {}
        rows = dict(zip(missing, self.backend.encode_types(list(missing.values())), strict=True))
        if self.folder is not None:
            for key, row in rows.items():
                with atomic_write_bytes(self._path(key)) as file:
                    np.save(file, row, allow_pickle=False)
        return rows

    def _read(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows that lie in the folder; a file that cannot be read counts as missing and is written again."""
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
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()}.npy"


def model_digest(folder: str | os.PathLike[str], backend: str) -> str:
    """Stands for the weights and the tokenizer of a model, and for what runs them: rows depend on all of these."""
    digest = hashlib.sha256(backend.encode())
    for path in sorted(Path(folder).iterdir()):
        if path.suffix in (".onnx", ".safetensors") or path.name == "tokenizer.json":
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]
