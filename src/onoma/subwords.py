"""From words to the sub-word tokens of an encoder, with `tokenizers` alone.

Words are tokenised one document at a time and only once; windows are then slices of the result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, normalizers

from onoma.errors import OnomaError
from onoma.text.words import Spans

PLAIN = {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u2014": "-", "\u2026": "."}
"""Signs that print uses, and plain ones for them."""

_PIECE = 2048  # words handed to the tokenizer at once, so that a huge document is never held as strings


@dataclass(frozen=True, slots=True)
class Pieces:
    """The tokens of a run of words: `ids` in a row, and how many of them each word has (at least one)."""

    ids: NDArray[np.int32]
    counts: NDArray[np.int32]


class Subwords:
    """An encoder's tokenizer, read from `tokenizer.json`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self.tokenizer = tokenizer
        edges = tokenizer.encode("").ids
        if len(edges) != 2:
            raise OnomaError(f"the tokenizer should put one token at each end of a text, it puts {len(edges)} in all")
        self.first, self.last = edges
        self.pad = self._special("[PAD]", "<pad>")
        self.unknown = self._special("[UNK]", "<unk>")
        self.masked = self._special("[MASK]", "<mask>", "[UNK]", "<unk>")  # not every encoder has learned by masking

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Subwords:
        """Read the tokenizer of a model folder."""
        path = Path(folder) / "tokenizer.json"
        if not path.is_file():
            raise OnomaError(f"{folder} has no tokenizer.json; save the tokenizer of the encoder there as a fast one")
        return cls(Tokenizer.from_file(str(path)))

    def _special(self, *names: str) -> int:
        for name in names:
            index = self.tokenizer.token_to_id(name)
            if index is not None:
                return int(index)
        raise OnomaError(f"the tokenizer has none of the tokens {', '.join(names)}")

    def split(self, documents: Iterable[tuple[str, Spans]]) -> list[Pieces]:
        """The tokens of documents given as texts and word offsets."""
        documents = list(documents)
        parts: list[list[str]] = []
        sizes = []
        for text, words in documents:
            strings = [text[start:end] for start, end in words.tolist()]
            pieces = [strings[i : i + _PIECE] for i in range(0, len(strings), _PIECE)]
            parts += pieces
            sizes.append(len(pieces))
        encodings = iter(self.tokenizer.encode_batch(parts, is_pretokenized=True, add_special_tokens=False))
        lengths = iter(len(part) for part in parts)
        return [self._collect([(next(encodings), next(lengths)) for _ in range(size)]) for size in sizes]

    def _collect(self, encodings: Sequence[tuple[object, int]]) -> Pieces:
        ids, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for encoding, length in encodings:
            tokens = np.array(encoding.ids, np.int32)  # type: ignore[attr-defined]
            word = np.array(encoding.word_ids, np.int64)  # type: ignore[attr-defined]
            count = np.bincount(word, minlength=length).astype(np.int32) if len(word) else np.zeros(length, np.int32)
            silent = np.flatnonzero(count == 0)  # control characters and the like leave no token
            tokens = np.insert(tokens, np.searchsorted(word, silent), self.unknown)
            count[silent] = 1
            ids.append(tokens)
            counts.append(count)
        return Pieces(np.concatenate(ids), np.concatenate(counts))

    def encode(self, texts: Sequence[str], longest: int = 128) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Whole texts (type descriptions) as padded token ids and their mask, cut at `longest` tokens."""
        return pad_rows(self.encode_rows(texts, longest), self.pad)

    def encode_rows(self, texts: Sequence[str], longest: int = 128) -> list[list[int]]:
        """The same, each text as a list of its own length."""
        encoded = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        return [ids if len(ids) <= longest else [*ids[: longest - 1], self.last] for ids in encoded]


def mend(tokenizer: Tokenizer) -> bool:
    """Let a tokenizer read signs that its vocabulary lacks but has near relatives of; whether anything had to be done.

    Some Chinese encoders have small letters only, yet their tokenizer leaves capital ones as they are, so that every
    word with one becomes unknown; and they have straight quotes only, where texts have curly ones.
    """
    unknown = tokenizer.token_to_id("[UNK]") if tokenizer.token_to_id("[UNK]") is not None else -1

    def read(sign: str) -> bool:
        return unknown not in tokenizer.encode(sign, add_special_tokens=False).ids

    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(sign, plain) for sign, plain in PLAIN.items() if not read(sign) and read(plain)
    ]
    if read("a") and not read("A"):
        steps.append(normalizers.Lowercase())
    if steps:
        own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
        tokenizer.normalizer = normalizers.Sequence([*steps, *own])
    return bool(steps)


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of token ids as one padded array, and its mask."""
    lengths = np.array([len(row) for row in rows], np.int64)
    ids = np.full((len(rows), int(lengths.max(initial=0))), pad, np.int64)
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    ids[mask] = np.concatenate([np.asarray(row, np.int64) for row in rows]) if len(rows) else 0
    return ids, mask.astype(np.int64)
