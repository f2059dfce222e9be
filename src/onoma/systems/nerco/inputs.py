"""What a batch contributes to the lattice: its word nodes, and the rows of the vector table that they are made of."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onoma.errors import DataError
from onoma.inputs.batches import Batch
from onoma.models.folder import ModelFolder
from onoma.systems.nerco.lattice import WordNodes, pad_nodes, word_nodes
from onoma.systems.nerco.options import LEXICON_FILE, VECTOR_NAMES_FILE
from onoma.systems.nerco.word_vectors import Composition, compose
from onoma.text.lexicon import Lexicon

Integers = NDArray[np.int64]

LONGEST_NODE = 16
"""Words (characters) of the longest lexicon word that becomes a node."""


@dataclass(frozen=True, slots=True, eq=False)
class LatticeInputs:
    """A lexicon, and the names of the vectors that its words are composed of; row r of names is row r + 1 of the table.

    Row 0 of the table is zero, so that it can be used as padding.
    """

    lexicon: Lexicon
    names: Sequence[str]
    composition: Composition
    max_nodes: int

    @classmethod
    def build(cls, lexicon: Lexicon, names: Sequence[str], max_nodes: int) -> LatticeInputs:
        """Find the rows of each lexicon word."""
        return cls(lexicon, names, compose(lexicon, names, np.empty((len(names), 0), np.float32)), max_nodes)

    def used_rows(self) -> Integers:
        """The vectors that some lexicon word needs."""
        return np.unique(self.composition.rows).astype(np.int64)

    def arrays(self, batch: Batch) -> dict[str, Integers]:
        """The arguments of the model: first and last word of each node, the rows of its vector, and their numbers."""
        nodes = word_nodes(self.lexicon, batch, self.max_nodes)
        nodes = WordNodes(*(column[nodes.last - nodes.first < LONGEST_NODE] for column in nodes))
        first, last, word, counts = pad_nodes(nodes, len(batch.words))
        return {"node_first": first, "node_last": last, "node_rows": self._rows(word, counts), "nodes": counts}

    def _rows(self, word: Integers, counts: Integers) -> Integers:
        """The rows of the vectors of nodes, padded with 0: (windows, nodes, rows)."""
        rows, edges = self.composition
        start, number = edges[word].astype(np.int64), (edges[word + 1] - edges[word]).astype(np.int64)
        number[np.arange(word.shape[1]) >= counts[:, None]] = 0
        place = np.arange(int(number.max(initial=1)))
        exists = place < number[..., None]
        found = np.zeros(exists.shape, np.int64)
        found[exists] = rows[(start[..., None] + place)[exists]] + 1
        return found

    def to_artifacts(self) -> dict[str, bytes]:
        """The files of a model folder."""
        return {
            LEXICON_FILE: self.lexicon.to_bytes(),
            VECTOR_NAMES_FILE: lzma.compress("\n".join(self.names).encode("utf-8")),
        }

    @classmethod
    def load(cls, folder: ModelFolder, max_nodes: int, rows: int) -> LatticeInputs:
        """Read the files of a model folder; `rows` is the number of vectors of the model."""
        lexicon, names = (_read(folder.path / name) for name in (LEXICON_FILE, VECTOR_NAMES_FILE))
        inputs = cls.build(
            Lexicon.from_bytes(lexicon, folder.path / LEXICON_FILE), _decode_names(names, folder.path), max_nodes
        )
        if len(inputs.names) != rows:
            message = f"there are {len(inputs.names)} names, but config.json says {rows} vectors"
            raise DataError(message, path=folder.path / VECTOR_NAMES_FILE, fix=_FIX)
        return inputs


_FIX = "save or download the model again"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"this file of the lattice cannot be read ({error.strerror})", path=path, fix=_FIX) from error


def _decode_names(content: bytes, folder: Path) -> tuple[str, ...]:
    try:
        text = lzma.decompress(content).decode("utf-8")
    except (lzma.LZMAError, UnicodeDecodeError, EOFError) as error:
        path = folder / VECTOR_NAMES_FILE
        raise DataError(f"this is not a compressed list of words ({error})", path=path, fix=_FIX) from error
    return tuple(text.split("\n")) if text else ()
