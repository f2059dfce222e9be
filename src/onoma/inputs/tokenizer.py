"""From words to the sub-word tokens of an encoder, with the `tokenizers` library alone."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, normalizers

from onoma.errors import DataError, OnomaError
from onoma.locks import ForkSafeLock
from onoma.text.width import fold_width

PLAIN_SIGNS = {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u2014": "-", "\u2026": "."}
"""Typographic signs, and the plain ones that can replace them."""
SHAPE_BITS = 20
"""With word shapes, a token id has the shape of its word in the bits from this one on."""
TOKEN_MASK = (1 << SHAPE_BITS) - 1
WORD_SHAPES = ("lower", "capitalised", "upper", "mixed")
"""How a word is written; a word without letters that have two cases counts as lower."""
MAX_CACHED_WORDS = 200_000
"""When the cache holds more words, it starts anew."""

_WORDS_PER_CALL = 32_768  # bounds memory: the tokenizer's own result is many times as large as the token ids
_WORDS_PER_SEQUENCE = 2_048
_SURROGATE = re.compile("[\ud800-\udfff]")  # tokenizers do not accept unpaired surrogates


@dataclass(frozen=True, slots=True)
class WordTokenIds:
    """The token ids of a sequence of words, and how many tokens each word has (at least one)."""

    ids: NDArray[np.int32]
    counts: NDArray[np.int32]


class WordTokenizer:
    """An encoder's tokenizer, read from `tokenizer.json`. It is thread-safe.

    Words are tokenised one by one, so the tokens of a word do not depend on its neighbours, and the tokens of words
    that were seen before come from a cache. Full-width letters and digits are read as half-width ones.

    With `word_shapes`, the tokens of words also say how the word is written, for encoders that read all letters as
    lower-case ones: id + (shape << SHAPE_BITS).
    """

    def __init__(self, tokenizer: Tokenizer, word_shapes: bool = False) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # a label "[CLS]" is text, not the encoder's first token
        self.tokenizer, self.word_shapes = tokenizer, word_shapes
        special = tokenizer.encode("").ids
        if len(special) not in (1, 2):
            raise OnomaError(f"the tokenizer must add one token at each end of a text, it adds {len(special)} in all")
        self.pad = self._special_token("[PAD]", "<pad>")
        # T5 has no first token; padding takes its place, as in front of its decoder
        self.cls, self.sep = special if len(special) == 2 else (self.pad, *special)
        self.unk = self._special_token("[UNK]", "<unk>")
        self.mask = self._special_token("[MASK]", "<mask>", "[UNK]", "<unk>")  # not all encoders have a mask token
        self._lock = ForkSafeLock()
        self._clear_cache()

    @classmethod
    def load(cls, folder: str | os.PathLike[str], word_shapes: bool = False) -> WordTokenizer:
        """Read the tokenizer of a model folder."""
        path = Path(folder) / "tokenizer.json"
        if not path.is_file():
            raise OnomaError(f"{folder} has no tokenizer.json. Fix: save the encoder's fast tokenizer there")
        fix = "save or download the model again"
        try:
            loaded = cls(Tokenizer.from_file(str(path)), word_shapes)
            loaded.encode(["a word", "\u16a0\U00010380"])  # Runic and Ugaritic letters: few tokenizers know them
            return loaded
        except OnomaError as error:
            raise DataError(str(error), path=path, fix=fix) from None
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise  # an interruption; panics of the library are not exceptions either
            raise DataError(f"the tokenizer is damaged ({error!s:.200})", path=path, fix=fix) from None

    def _special_token(self, *names: str) -> int:
        for name in names:
            index = self.tokenizer.token_to_id(name)
            if index is not None:
                return int(index)
        raise OnomaError(f"the tokenizer has none of the tokens {', '.join(names)}")

    def tokenize(self, words: Sequence[str]) -> WordTokenIds:
        """The tokens of words."""
        with self._lock:
            if len(self._numbers) > MAX_CACHED_WORDS:
                self._clear_cache()
            self._add_to_cache([word for word in set(words) if word not in self._numbers])
            numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
            ids, (starts, counts) = self._ids, self._places
            starts, counts = starts[numbers], counts[numbers]
        shifts = starts - (np.cumsum(counts, dtype=np.int64) - counts)
        return WordTokenIds(ids[np.arange(counts.sum(dtype=np.int64)) + np.repeat(shifts, counts)], counts)

    def encode(self, texts: Sequence[str], max_tokens: int = 128) -> list[list[int]]:
        """The tokens of whole texts such as type descriptions, with special tokens, truncated at `max_tokens`."""
        encoded = [encoding.ids for encoding in self.tokenizer.encode_batch(_readable(texts))]
        return [ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], self.sep] for ids in encoded]

    def _clear_cache(self) -> None:
        self._numbers: dict[str, int] = {}  # word -> its place in the arrays
        self._ids = np.zeros(0, np.int32)  # tokens of all cached words, concatenated
        self._places = np.zeros(0, np.int64), np.zeros(0, np.int32)  # of each word: its first token, their number

    def _add_to_cache(self, words: Sequence[str]) -> None:
        if not words:
            return
        parts = [self._tokenize(words[i : i + _WORDS_PER_CALL]) for i in range(0, len(words), _WORDS_PER_CALL)]
        counts = np.concatenate([part.counts for part in parts])
        starts = np.cumsum(counts, dtype=np.int64) - counts + len(self._ids)
        first = len(self._places[0])
        # in this order, a fork at any moment leaves a usable cache to the child
        self._ids = np.concatenate([self._ids, *(part.ids for part in parts)])
        self._places = np.concatenate([self._places[0], starts]), np.concatenate([self._places[1], counts])
        self._numbers.update(zip(words, range(first, first + len(words)), strict=True))

    def _tokenize(self, words: Sequence[str]) -> WordTokenIds:
        clean = _readable(words)
        sequences = [clean[i : i + _WORDS_PER_SEQUENCE] for i in range(0, len(clean), _WORDS_PER_SEQUENCE)]
        encodings = self.tokenizer.encode_batch(sequences, is_pretokenized=True, add_special_tokens=False)
        ids, counts = [], []
        for encoding, sequence in zip(encodings, sequences, strict=True):
            tokens = np.array(encoding.ids, np.int32)
            word = np.array(encoding.word_ids, np.int64)
            count = np.bincount(word, minlength=len(sequence)).astype(np.int32)
            empty = np.flatnonzero(count == 0)  # control characters, for example, have no token
            ids.append(np.insert(tokens, np.searchsorted(word, empty), self.unk))
            count[empty] = 1
            counts.append(count)
        found = WordTokenIds(np.concatenate(ids), np.concatenate(counts))
        if self.word_shapes:
            shapes = np.fromiter(map(_shape, clean), np.int32, len(clean))
            found = replace(found, ids=found.ids | np.repeat(shapes << SHAPE_BITS, found.counts))
        return found


def _shape(word: str) -> int:
    """The number of a word's shape in `WORD_SHAPES`."""
    if word == word.lower():
        return 0
    if word[:1].isupper() and word[1:] == word[1:].lower():
        return 1
    return 2 if word == word.upper() else 3


def _readable(texts: Sequence[str]) -> list[str]:
    return [fold_width(_SURROGATE.sub("\ufffd", text)) for text in texts]


def normalize_unknown_signs(tokenizer: Tokenizer) -> bool:
    """Let a tokenizer replace signs that it does not know by similar ones that it knows; whether it was changed.

    Some Chinese encoders know lower-case letters only, but their tokenizers do not lower-case, so that every word with
    a capital letter becomes unknown; and they know straight quotes only, where texts have curly ones.
    """
    unknown = tokenizer.token_to_id("[UNK]") if tokenizer.token_to_id("[UNK]") is not None else -1

    def knows(sign: str) -> bool:
        return unknown not in tokenizer.encode(sign, add_special_tokens=False).ids

    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(sign, plain) for sign, plain in PLAIN_SIGNS.items() if not knows(sign) and knows(plain)
    ]
    if knows("a") and not knows("A"):
        steps.append(normalizers.Lowercase())
    if steps:
        own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
        tokenizer.normalizer = normalizers.Sequence([*steps, *own])
    return bool(steps)
