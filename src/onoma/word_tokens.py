"""The tokens of words, remembered: most words of a text have been seen before, and are then only looked up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from onoma.subwords import Pieces, Subwords

MOST_WORDS = 200_000
"""Words that are remembered; when there are more, remembering starts anew."""
_TOGETHER = 32_768  # words handed to the tokenizer at once: its own result is many times as large as the token ids
_HALF_PAIR = re.compile("[\ud800-\udfff]")  # half of a surrogate pair is no character that a tokenizer takes


class WordTokens:
    """A tokenizer with a memory. Words are tokenised each by itself, so the words around one do not matter.

    Threads may share it.
    """

    def __init__(self, subwords: Subwords) -> None:
        self.subwords = subwords
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[str, int] = {}
        self._ids = np.zeros(0, np.int32)  # of all words known, in a row
        self._starts = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int32)

    def split(self, words: Sequence[str]) -> Pieces:
        """The tokens of words."""
        with self._lock:
            if len(self._numbers) > MOST_WORDS:
                self._forget()
            self._learn([word for word in set(words) if word not in self._numbers])
            numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
            ids, starts, counts = self._ids, self._starts[numbers], self._counts[numbers]
        shifts = starts - (np.cumsum(counts, dtype=np.int64) - counts)
        return Pieces(ids[np.arange(counts.sum(dtype=np.int64)) + np.repeat(shifts, counts)], counts)

    def _learn(self, words: Sequence[str]) -> None:
        if not words:
            return
        pieces = [self._tokenise(words[start : start + _TOGETHER]) for start in range(0, len(words), _TOGETHER)]
        counts = np.concatenate([piece.counts for piece in pieces])
        starts = np.cumsum(counts, dtype=np.int64) - counts + len(self._ids)
        self._numbers.update(zip(words, range(len(self._starts), len(self._starts) + len(words)), strict=True))
        self._ids = np.concatenate([self._ids, *(piece.ids for piece in pieces)])
        self._starts = np.concatenate([self._starts, starts])
        self._counts = np.concatenate([self._counts, counts])

    def _tokenise(self, words: Sequence[str]) -> Pieces:
        ends = np.cumsum([len(word) for word in words], dtype=np.int32)
        starts = np.concatenate([np.zeros(1, np.int32), ends[:-1]])
        text = _HALF_PAIR.sub("\ufffd", "".join(words))
        spans: NDArray[np.int32] = np.stack([starts, ends], axis=1)
        return self.subwords.split([(text, spans)])[0]
