"""Training examples: windows of documents with their gold spans, tokenised once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from onoma.batches import slice_windows
from onoma.entities import Corpus, Document
from onoma.subwords import Pieces, Subwords
from onoma.text import align, cut_windows, sentence_starts

_TOGETHER = 512  # documents tokenised in one call


@dataclass(frozen=True, slots=True)
class Example:
    """A window for training."""

    pieces: Pieces
    gold: NDArray[np.int64]  # (mentions, 3): first word, last word, number of the type
    known: NDArray[np.int64]  # numbers of the types whose annotation is complete here
    corpus: int
    hard: NDArray[np.int64] | None = None  # (spans, 2): spans that are no mention but look like one


@dataclass(frozen=True, slots=True)
class ExampleCounts:
    """What became of the mentions, for the log."""

    windows: int
    dropped_windows: int  # without a mention, or without a type of which anything is known
    mentions: int
    split_words: int  # words that a mention began or ended in
    cut_mentions: int  # longer than the overlap and cut by a window's edge in every window


def make_examples(
    corpora: Sequence[Corpus],
    type_numbers: dict[str, int],
    subwords: Subwords,
    *,
    max_tokens: int,
    overlap: int,
    drop_empty: bool,
) -> tuple[list[Example], ExampleCounts]:
    """Cut corpora into training windows. Words come from our own segmenter, as in use."""
    examples: list[Example] = []
    dropped = mentions = splits = cut = 0
    for number, corpus in enumerate(corpora):
        everything = np.array(sorted(type_numbers[name] for name in corpus.labels), np.int64)
        for together in _chunks(corpus.documents, _TOGETHER):
            documents = [replace(document, words=None) for document in together]
            alignments = [align(document) for document in documents]
            texts = zip((document.text for document in documents), (one.words for one in alignments), strict=True)
            for document, alignment, pieces in zip(documents, alignments, subwords.split(texts), strict=True):
                known = everything
                if document.annotated is not None:
                    known = np.array(sorted(type_numbers[name] for name in document.annotated), np.int64)
                kinds = np.array([type_numbers[entity.label] for entity in document.entities], np.int64)
                gold = np.concatenate([alignment.mentions.astype(np.int64), kinds[:, None]], axis=1)
                gold = gold[gold[:, 0] >= 0]
                windows = cut_windows(
                    pieces.counts, max_tokens - 2, overlap, sentence_starts(document.text, alignment.words)
                )
                seen = np.zeros(len(gold), np.bool_)
                parts = zip(slice_windows(pieces, windows), windows.start, windows.end, strict=True)
                for part, start, end in parts:
                    inside = (gold[:, 0] >= start) & (gold[:, 1] < end)
                    seen |= inside
                    if (drop_empty and not inside.any()) or not len(known):
                        dropped += 1
                        continue
                    examples.append(Example(part, gold[inside] - [start, start, 0], known, number))
                mentions += len(gold)
                splits += alignment.splits
                cut += int(np.count_nonzero(~seen))
    return examples, ExampleCounts(len(examples), dropped, mentions, splits, cut)


def _chunks(items: Sequence[Document], size: int) -> Iterable[Sequence[Document]]:
    return (items[start : start + size] for start in range(0, len(items), size))
