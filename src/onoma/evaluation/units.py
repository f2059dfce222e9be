"""The words and sentences of a whole corpus as columns, for questions about the length of mentions and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Document
from onoma.evaluation.columns import Integers
from onoma.evaluation.comparison import Comparison, Mentions
from onoma.text.sentences import sentence_starts
from onoma.text.words import Spans, segment


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Words and sentences, with offsets that run through all texts as those of `Mentions` do.

    Words are those of the source where it gives them, else Onoma's.
    """

    word_start: Integers
    word_end: Integers
    sentence_start: Integers
    sentence_words: Integers  # how many words each sentence has

    @classmethod
    def of(cls, comparison: Comparison) -> Units:
        documents = comparison.corpus.documents
        words = [
            segment(document.text) if document.words is None else np.array(document.words, np.int32).reshape(-1, 2)
            for document in documents
        ]
        sentences = [_sentences(*pair) for pair in zip(documents, words, strict=True)]
        begins = comparison.offsets[:-1]
        return cls(
            _join([each[:, 0] for each in words], begins),
            _join([each[:, 1] for each in words], begins),
            _join([start for start, _ in sentences], begins),
            _join([counts for _, counts in sentences], np.zeros_like(begins)),
        )

    def mention_words(self, mentions: Mentions) -> Integers:
        """How many words each mention touches."""
        begun = np.searchsorted(self.word_start, mentions.end, side="left")
        over = np.searchsorted(self.word_end, mentions.start, side="right")
        return (begun - over).astype(np.int64)

    def words_around(self, mentions: Mentions) -> Integers:
        """How many words the sentence has in which each mention begins."""
        return self.sentence_words[np.searchsorted(self.sentence_start, mentions.start, side="right") - 1]


def _sentences(document: Document, words: Spans) -> tuple[Integers, Integers]:
    """Where each sentence of a document begins and how many words it has; the first one begins with the text."""
    firsts = sentence_starts(document.text, words)
    starts = np.concatenate([[0], words[firsts[1:], 0]])
    counts = np.diff(np.append(firsts, len(words))) if len(words) else np.zeros(1)
    return starts.astype(np.int64), counts.astype(np.int64)


def _join(columns: Sequence[NDArray[np.integer]], begins: Integers) -> Integers:
    """One column out of one a document, each moved to where its document begins."""
    sizes = np.fromiter(map(len, columns), np.int64, len(columns))
    return np.concatenate([np.empty(0, np.int64), *columns]).astype(np.int64) + np.repeat(begins, sizes)
