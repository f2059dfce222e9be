"""The words and sentences of a whole corpus as columns, to find the lengths of mentions and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Document
from onoma.evaluation.columns import Integers
from onoma.evaluation.comparison import Comparison, Mentions
from onoma.text.alignment import document_words
from onoma.text.sentences import sentence_starts
from onoma.text.words import Spans


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Words and sentences, with offsets in all texts joined into one string, as in `Mentions`."""

    word_start: Integers
    word_end: Integers
    sentence_start: Integers
    sentence_words: Integers  # number of words in each sentence

    @classmethod
    def of(cls, comparison: Comparison) -> Units:
        """The words and sentences of the documents of a comparison."""
        documents = comparison.corpus.documents
        words = [document_words(document) for document in documents]
        sentences = [_sentences(*pair) for pair in zip(documents, words, strict=True)]
        shifts = comparison.offsets[:-1]
        return cls(
            _join([each[:, 0] for each in words], shifts),
            _join([each[:, 1] for each in words], shifts),
            _join([start for start, _ in sentences], shifts),
            _join([counts for _, counts in sentences], np.zeros_like(shifts)),
        )

    def mention_words(self, mentions: Mentions) -> Integers:
        """The number of words that each mention overlaps."""
        started = np.searchsorted(self.word_start, mentions.end, side="left")  # words that start before its end
        ended = np.searchsorted(self.word_end, mentions.start, side="right")  # words that end before its start
        return (started - ended).astype(np.int64)

    def sentence_lengths(self, mentions: Mentions) -> Integers:
        """The number of words in the sentence in which each mention starts."""
        return self.sentence_words[np.searchsorted(self.sentence_start, mentions.start, side="right") - 1]


def _sentences(document: Document, words: Spans) -> tuple[Integers, Integers]:
    """The start and the number of words of each sentence of a document; the first sentence starts at offset 0."""
    firsts = sentence_starts(document.text, words)
    starts = np.concatenate([[0], words[firsts[1:], 0]])
    counts = np.diff(np.append(firsts, len(words))) if len(words) else np.zeros(1)
    return starts.astype(np.int64), counts.astype(np.int64)


def _join(columns: Sequence[NDArray[np.integer]], shifts: Integers) -> Integers:
    """The columns of all documents as one column, each with the shift of its document added."""
    sizes = np.fromiter(map(len, columns), np.int64, len(columns))
    return np.concatenate([np.empty(0, np.int64), *columns]).astype(np.int64) + np.repeat(shifts, sizes)
