"""Documents in chunks: the way from texts to windows, and from proposals back to the entities of each document.

The words of all documents of a chunk stand on one line. Spans of different documents never touch there, so
tokens, windows, stitching and the choice between overlapping spans are each done once for the whole chunk,
however many documents it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.backends.base import Backend
from onoma.batches import bucket, collate, slice_windows
from onoma.config import ModelConfig
from onoma.decoding import Overlap, Proposals, above, select, stitch, to_choose_by
from onoma.entities import Entity
from onoma.errors import OnomaError
from onoma.subwords import Pieces
from onoma.text import Spans, Windows, cut_windows, segment, sentence_starts, split_at
from onoma.word_tokens import WordTokens

Integers = NDArray[np.int64]

MOST_CHARACTERS = 2_000_000
"""In a chunk; a single document may have more."""
MOST_TOKENS = 16_384
"""In a batch, with its padding."""
_TOGETHER = 65_536  # words that are held as strings at a time


@dataclass(frozen=True, slots=True)
class Line:
    """The words of documents in a row, each with its offsets in its own document."""

    texts: Sequence[str]
    words: Spans
    begins: Integers  # the number of the first word of each document, and at the end that of all words

    @classmethod
    def of(cls, texts: Sequence[str], words: Sequence[Spans]) -> Line:
        """Put documents, given as texts and the offsets of their words, in a row."""
        begins = np.concatenate([[0], np.cumsum([len(each) for each in words])]).astype(np.int64)
        return cls(texts, np.concatenate([np.zeros((0, 2), np.int32), *words]), begins)

    def document(self, word: Integers) -> Integers:
        """The number of the document that words belong to."""
        return np.searchsorted(self.begins, word, side="right") - 1

    def words_of(self, document: int) -> Spans:
        """The offsets of the words of one document."""
        return self.words[self.begins[document] : self.begins[document + 1]]


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a model proposes for a chunk of documents: spans of words on the line."""

    line: Line
    proposals: Proposals

    def above(self, threshold: float) -> Proposed:
        """Only what reaches a threshold."""
        return Proposed(self.line, above(self.proposals, threshold))

    def entities(
        self, labels: Sequence[str], overlap: Overlap = "flat", several_labels: bool = False
    ) -> list[list[Entity]]:
        """The entities of each document, out of proposals that have all reached their thresholds.

        `labels` are in the order of the alphabet, which decides between equal scores.
        """
        first, last, kind = self.proposals.first, self.proposals.last, self.proposals.type
        score = self.proposals.score
        best = to_choose_by(score, kind, labels)
        kept = select(first, last + 1, kind, best, overlap=overlap, several_labels=several_labels)
        words = self.line.words
        columns = (
            self.line.document(first[kept]),
            words[first[kept], 0],
            words[last[kept], 1],
            kind[kept],
            score[kept],
        )
        texts = self.line.texts
        found: list[list[Entity]] = [[] for _ in texts]
        for document, start, end, label, value in zip(*(column.tolist() for column in columns), strict=True):
            found[document].append(Entity(start, end, texts[document][start:end], labels[label], value))
        return found


def chunks(texts: Iterable[str], most_texts: int) -> Iterator[list[str]]:
    """Texts in their order, so many at a time that a chunk fits into memory."""
    chunk: list[str] = []
    characters = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise OnomaError(f"texts must be strings, but number {number} is {type(text).__name__}: {text!r:.80}")
        chunk.append(text)
        characters += len(text)
        if len(chunk) >= most_texts or characters >= MOST_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


@dataclass(frozen=True, slots=True)
class Prepared:
    """Texts cut into windows for a model; the same ones can be given to it again and again."""

    line: Line
    windows: Windows
    parts: list[Pieces]


def prepare(texts: Sequence[str], tokens: WordTokens, config: ModelConfig) -> Prepared:
    """Cut texts into words, tokens and windows."""
    budget = config.max_tokens - 2  # without the first and last token
    line, pieces = tokenise(texts, tokens, budget)
    windows = line_windows(line, pieces.counts, budget, config.overlap)
    return Prepared(line, windows, list(slice_windows(pieces, windows)))


def propose(
    prepared: Prepared, backend: Backend, types: NDArray[np.float32], limits: NDArray[np.float32], batch_size: int
) -> Proposed:
    """Run a model over windows, in batches of similar length; `limits` are the thresholds of the types."""
    parts, floor = prepared.parts, float(limits.min())
    nothing = np.zeros(0, np.int64)
    found = [Proposals(nothing, nothing, nothing, nothing, np.zeros(0, np.float32))]
    for batch in bucket([len(part.ids) + 2 for part in parts], batch_size * backend.batches_together, MOST_TOKENS):
        proposals = backend.propose(collate([parts[window] for window in batch], backend.subwords), types, floor)
        proposals = above(proposals, limits[proposals.type])
        found.append(stitch(proposals._replace(window=batch[proposals.window]), prepared.windows))
    return Proposed(prepared.line, Proposals(*(np.concatenate(column) for column in zip(*found, strict=True))))


def tokenise(texts: Sequence[str], tokens: WordTokens, budget: int) -> tuple[Line, Pieces]:
    """The words of texts and their tokens; a word with more tokens than a window holds is cut into several words."""
    line = Line.of(texts, [segment(text) for text in texts])
    pieces = _split(line, tokens)
    while len(pieces.counts) and pieces.counts.max() > budget:
        line = _halve(line, pieces.counts > budget)
        pieces = _split(line, tokens)
    return line, pieces


def line_windows(line: Line, counts: NDArray[np.int32], budget: int, overlap: int) -> Windows:
    """Windows over the words of the line, none of which holds words of two documents."""
    tokens = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[line.begins]
    need = np.diff(tokens)
    short = (need > 0) & (need <= budget)
    starts, ends = [line.begins[:-1][short]], [line.begins[1:][short]]
    for document in np.flatnonzero(need > budget).tolist():
        begin, words = int(line.begins[document]), line.words_of(document)
        own = counts[begin : begin + len(words)]
        windows = cut_windows(own, budget, overlap, sentence_starts(line.texts[document], words))
        starts.append(windows.start + begin)
        ends.append(windows.end + begin)
    start = np.concatenate(starts)
    order = np.argsort(start)
    return Windows(start[order], np.concatenate(ends)[order])


def _split(line: Line, tokens: WordTokens) -> Pieces:
    """The tokens of all words; only a limited number of words is held as strings at a time."""
    ids, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for start in range(0, len(line.words), _TOGETHER):
        pieces = tokens.split(_strings(line, start, start + _TOGETHER))
        ids.append(pieces.ids)
        counts.append(pieces.counts)
    return Pieces(np.concatenate(ids), np.concatenate(counts))


def _strings(line: Line, start: int, end: int) -> list[str]:
    """The words from `start` to `end` of the line."""
    strings: list[str] = []
    document = int(line.document(np.array(start)))
    while document < len(line.texts) and line.begins[document] < end:
        text, begin = line.texts[document], int(line.begins[document])
        own = line.words[max(start, begin) : min(end, int(line.begins[document + 1]))]
        strings += [text[first:after] for first, after in own.tolist()]
        document += 1
    return strings


def _halve(line: Line, long: NDArray[np.bool_]) -> Line:
    """The line with some of its words cut in the middle."""
    if (np.diff(line.words[long]) < 2).any():
        raise OnomaError("a single character has more tokens than a window of this model holds: raise its max_tokens")
    words = []
    for document in range(len(line.texts)):
        own = line.words_of(document)
        chosen = own[long[line.begins[document] : line.begins[document + 1]]]
        words.append(split_at(own, chosen.sum(axis=1) // 2))
    return Line.of(line.texts, words)
