"""Lexicons: lists of words, all of whose occurrences in texts are found.

Words and texts are folded: traditional and simplified characters, full and half width, upper and lower case make no
difference. Words may overlap, and they need not start or end at word boundaries.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onoma.errors import DataError, OnomaError
from onoma.files import max_expanded_bytes, plain_suffix, read_lines, refuse_binary
from onoma.text.chinese import code_points, fold_chinese, folding_table
from onoma.text.hashes import Integers
from onoma.text.trie import MAX_LENGTH, WordTrie

AnyPath = str | PathLike[str]

BLOCK = 1 << 17
"""Characters that are searched together: several texts, or a part of a long one."""
MIN_LENGTH = 2

_ONE_PER_LINE = "write one word per line, alone or before a tab and its frequency"
_DOWNLOAD_AGAIN = "save or download the model again"
_FREQUENCY = re.compile(r" \d+(?: [A-Za-z]+)?$")  # and part of speech, as in jieba's dictionary
_SNIFFED = 1000
"""Lines that decide whether words are followed by frequencies."""
_STRUCTURED = (".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".xml", ".html", ".npy")
_NOTICES = ("LICENSE", "LICENCE", "NOTICE", "README")


class Matches(NamedTuple):
    """Places where words were found, sorted by text, start and end; start and end are characters, end exclusive."""

    text: Integers
    start: Integers
    end: Integers
    word: Integers


class Lexicon:
    """Different words of 2 to 64 characters, numbered in the order in which they were given.

    >>> lexicon = Lexicon(["南京", "南京市", "市长", "长江", "长江大桥"])
    >>> found = lexicon.find(["南京市長江大橋"])
    >>> [(start, lexicon[word]) for start, word in zip(found.start.tolist(), found.word.tolist())]
    [(0, '南京'), (0, '南京市'), (2, '市长'), (3, '长江'), (3, '长江大桥')]
    """

    def __init__(self, words: Iterable[str]) -> None:
        """Fold words and index them; repeated words and single characters are left out."""
        self._index([word for word in dict.fromkeys(fold_words(words)) if len(word) >= MIN_LENGTH])

    def _index(self, words: Sequence[str]) -> None:
        """Index folded words."""
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        if lengths.max(initial=0) > MAX_LENGTH:
            raise OnomaError(_too_long(words[int(lengths.argmax())]))
        self._joined = "\n".join(words)
        self._starts = np.cumsum(lengths + 1) - lengths - 1
        self._longest = int(lengths.max(initial=MIN_LENGTH))
        codes = code_points(self._joined)
        letters = np.unique(codes[codes != ord("\n")])
        numbers = np.zeros(int(letters.max(initial=0)) + 1, np.int64)
        numbers[letters] = np.arange(1, len(letters) + 1)
        self._trie = WordTrie(numbers[codes], self._starts, lengths)
        table = folding_table(True, True)
        self._characters = np.where(table < len(numbers), numbers.take(table, mode="clip"), 0).astype(np.int32)

    @classmethod
    def read(cls, paths: AnyPath | Iterable[AnyPath]) -> Lexicon:
        """Read one or several files, plain, .gz or .xz, or folders of .txt files.

        A file has one word per line. What follows a tab is ignored; so is a number after a space, if most lines have
        one, and a part of speech after the number, as in jieba's dictionary.
        """
        given = [paths] if isinstance(paths, str | PathLike) else list(paths)
        files = chain.from_iterable(_files(Path(path)) for path in given)
        return cls(chain.from_iterable(map(_read_words, files)))

    def to_bytes(self) -> bytes:
        """The content of an artifact: the folded words, one per line, compressed by xz."""
        try:
            content = self._joined.encode()
        except UnicodeEncodeError:
            raise OnomaError("a word of the lexicon has an unpaired surrogate. Fix: remove it") from None
        return lzma.compress(content, preset=6)

    @classmethod
    def from_bytes(cls, content: bytes, path: AnyPath | None = None) -> Lexicon:
        """The lexicon with this content; `path` is named by errors.

        The words keep their numbers, even if words are folded in another way since they were stored.
        """
        try:
            joined = _decompress(content).decode()
        except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
            raise DataError(f"this is not a lexicon ({error})", path=path, fix=_DOWNLOAD_AGAIN) from None
        words = joined.split("\n") if joined else []
        lengths = set(map(len, words))
        if lengths and not MIN_LENGTH <= min(lengths) <= max(lengths) <= MAX_LENGTH:
            message = f"the words of a lexicon have from {MIN_LENGTH} to {MAX_LENGTH} characters, one has not"
            raise DataError(message, path=path, fix=_DOWNLOAD_AGAIN)
        lexicon = cls.__new__(cls)
        lexicon._index(words)
        if lexicon._trie.count() != len(words):
            raise DataError("the lexicon has repeated words", path=path, fix=_DOWNLOAD_AGAIN)
        return lexicon

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(f"the lexicon has the words 0 to {len(self) - 1}, got {number}")
        start = int(self._starts[number])
        end = self._joined.find("\n", start)
        return self._joined[start : end if end >= 0 else None]

    @property
    def words(self) -> tuple[str, ...]:
        """All words. They are made anew each time, because they take ten times as much memory as the lexicon."""
        return tuple(self._joined.split("\n")) if self._joined else ()

    def find(self, texts: Sequence[str]) -> Matches:
        """All words in texts, overlapping ones too."""
        empty = np.empty(0, np.int64)
        found = [Matches(empty, empty, empty, empty)]
        found += [self._find(block) for block in _blocks(texts, self._longest - 1)]
        return Matches(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def _find(self, block: Sequence[_Part]) -> Matches:
        joined = "\n".join([part.content for part in block])
        start, end, word = self._trie.find(self._characters.take(code_points(joined)).astype(np.int64))
        text, offset, own, place = np.array([part[1:] for part in block], np.int64).T
        place = np.cumsum(place + 1) - place - 1
        part = np.searchsorted(place, start, side="right") - 1
        rows = np.flatnonzero(start - place[part] < own[part])  # others belong to the next part of the text
        part = part[rows]
        shift = offset[part] - place[part]
        return Matches(text[part], start[rows] + shift, end[rows] + shift, word[rows])


def fold_words(words: Iterable[str]) -> list[str]:
    """The words as lexicons contain them."""
    given = list(words)
    folded = fold_chinese("\n".join(given), case=True).split("\n") if given else []
    if len(folded) != len(given):
        raise OnomaError("a word of a lexicon has a line break. Fix: give one word at a time")
    return folded


class _Part(NamedTuple):
    """A part of a text. The words that start in its first `own` characters are found in it."""

    content: str
    text: int
    offset: int
    own: int
    length: int


def _blocks(texts: Iterable[str], margin: int) -> Iterator[list[_Part]]:
    """Parts of texts that are searched together."""
    block: list[_Part] = []
    size = 0
    for number, text in enumerate(texts):
        for start in range(0, len(text), BLOCK):
            content = text[start : start + BLOCK + margin]
            if size + len(content) > BLOCK and block:
                yield block
                block, size = [], 0
            block.append(_Part(content, number, start, min(BLOCK, len(text) - start), len(content)))
            size += len(content) + 1
    if block:
        yield block


def _files(path: Path) -> list[Path]:
    """The files of a folder, or the file itself."""
    if not path.is_dir():
        return [path]
    texts = (file for file in sorted(path.iterdir()) if plain_suffix(file) == ".txt" and file.is_file())
    files = [file for file in texts if not any(notice in file.name.upper() for notice in _NOTICES)]
    if not files:
        raise DataError("the folder has no word lists", path=path, fix="name a file, or a folder with .txt files")
    return files


def _read_words(path: Path) -> Iterator[str]:
    if plain_suffix(path) in _STRUCTURED:
        raise DataError("this is not a plain list of words", path=path, fix=_ONE_PER_LINE)
    refuse_binary(path)
    lines = ((number, line.partition("\t")[0].strip()) for number, line in read_lines(path))
    lines = ((number, word) for number, word in lines if word)
    head = list(islice(lines, _SNIFFED))
    if not head:
        raise DataError("the list has no words", path=path, fix=_ONE_PER_LINE)
    with_frequencies = 2 * sum(bool(_FREQUENCY.search(word)) for _, word in head) > len(head)
    for number, word in chain(head, lines):
        if with_frequencies:
            word = _FREQUENCY.sub("", word)
        if len(word) > MAX_LENGTH:
            raise DataError(_too_long(word), path=path, line=number, fix=_ONE_PER_LINE)
        yield word


def _too_long(word: str) -> str:
    return f"a word has at most {MAX_LENGTH} characters, {word[:20]!r}... has {len(word)}"


def _decompress(content: bytes) -> bytes:
    """The decompressed content, which must be complete and not too large."""
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    expanded = decompressor.decompress(content, max_expanded_bytes(len(content)))
    if not decompressor.eof or decompressor.unused_data:
        raise EOFError("it is truncated, or expands to too many bytes")
    return expanded
