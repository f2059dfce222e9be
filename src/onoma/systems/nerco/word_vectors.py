"""Pretrained word vectors, and those of lexicon words: their own, or the mean of the vectors of their characters.

The mean is kept as the rows of the table that it is taken over, so that the table can be trained, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.errors import DataError, OnomaError
from onoma.files import open_bytes, read_lines
from onoma.text.chinese import code_points
from onoma.text.lexicon import Lexicon, fold_words

Floats = NDArray[np.float32]
Rows = NDArray[np.int32]

VECTORS_FILE, WORDS_FILE = "vectors.npy", "words.txt"
_FIX = f"give a folder with {VECTORS_FILE}, of shape (words, size), and {WORDS_FILE}, one word per line"
_CODE_POINTS = 0x110000


class WordVectors(NamedTuple):
    """Words and their vectors."""

    names: tuple[str, ...]
    vectors: Floats  # (words, size)


class Composition(NamedTuple):
    """The rows of a table whose mean is the vector of each lexicon word: `rows[edges[word] : edges[word + 1]]`."""

    rows: Rows
    edges: Rows  # (lexicon words + 1,)


def load_word_vectors(folder: str | PathLike[str]) -> WordVectors:
    """Read the word vectors in a folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError("there is no such folder", path=folder, fix=_FIX)
    vectors = _read_array(folder / VECTORS_FILE)
    names = tuple(name for _, name in read_lines(folder / WORDS_FILE))
    if len(names) != len(vectors):
        message = f"there are {len(names)} words, but {VECTORS_FILE} has {len(vectors)} vectors"
        raise DataError(message, path=folder / WORDS_FILE, fix=_FIX)
    return WordVectors(names, vectors)


def _read_array(path: Path) -> Floats:
    with open_bytes(path) as file:
        try:
            array = np.load(file, allow_pickle=False)
        except (ValueError, EOFError, MemoryError) as error:
            raise DataError(f"this is not an array ({error})", path=path, fix=_FIX) from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind != "f":
        raise DataError("this is not a table of numbers", path=path, fix=_FIX)
    vectors = array.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise DataError("some numbers are not finite", path=path, fix=_FIX)
    return vectors


def compose(lexicon: Lexicon, names: Sequence[str], vectors: Floats) -> Composition:
    """Find the rows of each lexicon word: its own, else those of its characters, or none.

    Args:
        names: the word of each vector. They are folded as lexicon words are; of equal ones, the first counts.
        vectors: (names, size)
    """
    if len(names) != len(vectors):
        raise OnomaError(f"there are {len(names)} names for {len(vectors)} vectors. Fix: give one name per vector")
    row_of = _rows_by_name(names)
    words = lexicon.words
    own = np.array([row_of.get(word, -1) for word in words], np.int32)
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    word = np.repeat(np.arange(len(words)), lengths)  # of each character
    rows = _rows_by_character(row_of)[code_points("".join(words))]
    rows[own[word] >= 0] = -1
    with_own = np.flatnonzero(own >= 0)
    rows[(np.cumsum(lengths) - lengths)[with_own]] = own[with_own]  # in the place of the first character
    known = rows >= 0
    edges = np.append(0, np.cumsum(np.bincount(word[known], minlength=len(words))))
    return Composition(rows[known], edges.astype(np.int32))


def _rows_by_name(names: Sequence[str]) -> dict[str, int]:
    """The row of each folded name; names that are folded already come first."""
    folded = fold_words(names)
    row_of: dict[str, int] = {}
    for changed in (False, True):
        for row, (name, other) in enumerate(zip(names, folded, strict=True)):
            if (name != other) == changed:
                row_of.setdefault(other, row)
    return row_of


def _rows_by_character(row_of: dict[str, int]) -> Rows:
    """The row of each code point, or -1."""
    table = np.full(_CODE_POINTS, -1, np.int32)
    single = {name: row for name, row in row_of.items() if len(name) == 1}
    table[code_points("".join(single))] = list(single.values())
    return table


def mean_vectors(table: Floats, rows: Rows, edges: Rows, word: NDArray[np.integer]) -> Floats:
    """The vectors of lexicon words (n, size): the means of their rows, zero for words without rows."""
    start, counts = edges[word], edges[word + 1] - edges[word]
    total = np.zeros((len(word), table.shape[1]), np.float32)
    for place in range(int(counts.max(initial=0))):  # at most as often as a word has characters
        longer = np.flatnonzero(counts > place)
        total[longer] += table[rows[start[longer] + place]]
    return np.asarray(total / np.maximum(counts, 1)[:, None].astype(np.float32))
