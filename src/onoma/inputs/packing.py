"""Packed texts: the words of many texts as one sequence, their tokens, and the windows that an encoder reads.

Words of different texts never lie in one window, so tokenisation, windows, stitching and overlap resolution are done
once for all texts together, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.entities import Entity
from onoma.errors import OnomaError
from onoma.inputs.batches import Batch, collate
from onoma.inputs.tokenizer import WordTokenIds, WordTokenizer
from onoma.text.sentences import sentence_starts
from onoma.text.windows import Windows, cut_windows
from onoma.text.words import Spans, segment, split_at

Integers = NDArray[np.int64]

MAX_CHUNK_CHARACTERS = 100_000
"""Characters of the texts that are read together; a single text may have more."""
SPECIAL_TOKENS = 2
"""Tokens that an encoder adds to each window, one at each end."""

_WORDS_AT_ONCE = 65_536  # words that are held as strings at the same time


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """The words of texts, one text after the other, each word with its character offsets in its own text."""

    texts: Sequence[str]
    words: Spans  # (words, 2)
    edges: Integers  # (texts + 1,): the first word of each text, and at the end the number of words

    @classmethod
    def pack(cls, texts: Sequence[str], words: Sequence[Spans] | None = None) -> PackedTexts:
        """Pack texts; `words` are the offsets of their words if they are known already."""
        if words is None:
            words = [segment(text) for text in texts]
        edges = np.concatenate([[0], np.cumsum([len(each) for each in words])]).astype(np.int64)
        return cls(texts, np.concatenate([np.zeros((0, 2), np.int32), *words]), edges)

    def text_of(self, word: Integers) -> Integers:
        """The index of the text that each word belongs to."""
        return np.searchsorted(self.edges, word, side="right") - 1

    def words_of(self, text: int) -> Spans:
        """The offsets of the words of one text."""
        return self.words[self.edges[text] : self.edges[text + 1]]

    def strings(self, start: int, end: int) -> list[str]:
        """The words from `start` to `end` as strings."""
        strings: list[str] = []
        text = int(self.text_of(np.array(start)))
        while text < len(self.texts) and self.edges[text] < end:
            source, first = self.texts[text], int(self.edges[text])
            words = self.words[max(start, first) : min(end, int(self.edges[text + 1]))]
            strings += [source[begin:stop] for begin, stop in words.tolist()]
            text += 1
        return strings

    def offsets(self, proposals: Proposals) -> tuple[Integers, Integers, Integers]:
        """The text, start and end of proposals in packed words."""
        start, end = self.words[proposals.first, 0], self.words[proposals.last, 1]
        return self.text_of(proposals.first), start.astype(np.int64), end.astype(np.int64)

    def entities(self, decoded: Proposals, labels: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text, given decoded proposals in packed words."""
        columns = (*self.offsets(decoded), decoded.type, decoded.score)
        entities: list[list[Entity]] = [[] for _ in self.texts]
        for text, start, end, kind, score in zip(*(column.tolist() for column in columns), strict=True):
            entities[text].append(Entity(start, end, self.texts[text][start:end], labels[kind], score))
        return entities


@dataclass(frozen=True, slots=True)
class WindowedTexts:
    """Packed texts with their tokens, cut into windows."""

    packed: PackedTexts
    token_ids: NDArray[np.int32]
    token_edges: Integers  # (words + 1,): the first token of each word, and at the end the number of tokens
    windows: Windows

    @classmethod
    def cut(cls, packed: PackedTexts, tokenizer: WordTokenizer, max_tokens: int, overlap: int) -> WindowedTexts:
        """Tokenise words and cut texts into windows of at most `max_tokens` tokens, special ones included.

        A word with more tokens than a window can hold is split into several words.
        """
        budget = max_tokens - SPECIAL_TOKENS
        tokens = _tokenize(packed, tokenizer)
        while tokens.counts.max(initial=0) > budget:
            packed = _halve(packed, tokens.counts > budget)
            tokens = _tokenize(packed, tokenizer)
        token_edges = np.concatenate([[0], np.cumsum(tokens.counts, dtype=np.int64)])
        return cls(packed, tokens.ids, token_edges, _cut_windows(packed, tokens.counts, token_edges, budget, overlap))

    def lengths(self) -> Integers:
        """The tokens of each window, special ones included."""
        return self.token_edges[self.windows.end] - self.token_edges[self.windows.start] + SPECIAL_TOKENS

    def text_tokens(self) -> Integers:
        """The tokens of each text, without special ones."""
        return np.diff(self.token_edges[self.packed.edges])

    def distinct(self, rows: Integers) -> tuple[Integers, Integers]:
        """Where windows among `rows` stand first that differ from all before, and for each row which of them it equals.

        Windows are equal if they have the same words with the same gaps, wherever they are.
        """
        start, end, packed = self.windows.start[rows], self.windows.end[rows], self.packed
        numbers: dict[tuple[str, bytes], int] = {}
        same = np.empty(len(rows), np.int64)
        for place, (text, first, after) in enumerate(
            zip(packed.text_of(start).tolist(), start.tolist(), end.tolist(), strict=True)
        ):
            words = packed.words[first:after]
            key = packed.texts[text][words[0, 0] : words[-1, 1]], (words - words[0, 0]).tobytes()
            same[place] = numbers.setdefault(key, len(numbers))
        return np.unique(same, return_index=True)[1], same

    def batch(self, rows: Integers, tokenizer: WordTokenizer) -> Batch:
        """Some of the windows as a batch."""
        start, end, packed = self.windows.start[rows], self.windows.end[rows], self.packed
        texts = [packed.texts[text] for text in packed.text_of(start).tolist()]
        offsets = [packed.words[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)]
        return collate(self.token_ids, self.token_edges, start, end, tokenizer, texts, offsets)

    def sections(self, max_tokens: int | None) -> Iterator[tuple[Integers, int]]:
        """Consecutive windows with about `max_tokens` tokens in all, and the first word of the windows behind them."""
        count = len(self.windows)
        section = np.cumsum(self.lengths()) // max_tokens if max_tokens else np.zeros(count, np.int64)
        edges = [0, *(np.flatnonzero(np.diff(section)) + 1).tolist(), count]
        for start, end in pairwise(edges):
            yield np.arange(start, end), int(self.windows.start[end]) if end < count else len(self.packed.words)


def chunk_texts(texts: Iterable[str], max_texts: int) -> Iterator[list[str]]:
    """Texts in their order, in chunks of limited size."""
    chunk: list[str] = []
    characters = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise OnomaError(f"texts must be strings, but number {number} is {type(text).__name__}: {text!r:.80}")
        if chunk and (len(chunk) >= max_texts or characters + len(text) > MAX_CHUNK_CHARACTERS):
            yield chunk
            chunk, characters = [], 0
        chunk.append(text)
        characters += len(text)
    if chunk:
        yield chunk


def _tokenize(packed: PackedTexts, tokenizer: WordTokenizer) -> WordTokenIds:
    """The tokens of all words; only a limited number of words is held as strings at the same time."""
    ids, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for start in range(0, len(packed.words), _WORDS_AT_ONCE):
        tokens = tokenizer.tokenize(packed.strings(start, start + _WORDS_AT_ONCE))
        ids.append(tokens.ids)
        counts.append(tokens.counts)
    return WordTokenIds(np.concatenate(ids), np.concatenate(counts))


def _cut_windows(
    packed: PackedTexts, counts: NDArray[np.int32], token_edges: Integers, budget: int, overlap: int
) -> Windows:
    """Windows over packed words: one per text that fits, several for a longer one."""
    length = np.diff(token_edges[packed.edges])
    fits = (length > 0) & (length <= budget)
    starts, ends = [packed.edges[:-1][fits]], [packed.edges[1:][fits]]
    for text in np.flatnonzero(length > budget).tolist():
        first, words = int(packed.edges[text]), packed.words_of(text)
        own = counts[first : first + len(words)]
        windows = cut_windows(own, budget, overlap, sentence_starts(packed.texts[text], words))
        starts.append(windows.start + first)
        ends.append(windows.end + first)
    start = np.concatenate(starts)
    order = np.argsort(start)
    return Windows(start[order], np.concatenate(ends)[order])


def _halve(packed: PackedTexts, long: NDArray[np.bool_]) -> PackedTexts:
    """The same texts with some words split in the middle."""
    if (np.diff(packed.words[long]) < 2).any():
        raise OnomaError("a single character has more tokens than fit into a window. Fix: raise the model's max_tokens")
    words = []
    for text in range(len(packed.texts)):
        own = packed.words_of(text)
        chosen = own[long[packed.edges[text] : packed.edges[text + 1]]]
        words.append(split_at(own, chosen.sum(axis=1) // 2))
    return PackedTexts.pack(packed.texts, words)
