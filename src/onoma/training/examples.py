"""Training examples: windows of documents with their gold spans, tokenised once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Corpus, Document
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.inputs.tokenizer import WordTokenIds, WordTokenizer
from onoma.text.alignment import align, mention_words
from onoma.text.words import Spans

Integers = NDArray[np.int64]

_DOCUMENTS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Example:
    """A window for training."""

    tokens: WordTokenIds
    gold: Integers  # (mentions, 3): first word, last word, number of the type
    known: Integers  # numbers of the types whose annotation is complete here
    corpus: int
    text: str = ""  # of the document
    words: Spans = field(default_factory=lambda: np.zeros((0, 2), np.int32))  # offsets of the words in the text
    hard_negatives: Integers | None = None  # (spans, 2): spans that look like mentions but are none
    masked: Integers | None = None  # (spans, 2): spans that are neither mentions nor negatives
    complete: bool = True  # whether all types of the corpus are annotated here


@dataclass(frozen=True, slots=True)
class ExampleCounts:
    """What became of documents and mentions, for the metrics of a run."""

    windows: int
    dropped_windows: int  # without a mention, or without any annotated type
    mentions: int
    split_words: int  # words inside which a mention starts or ends
    cut_mentions: int  # longer than the overlap, and cut by the edge of every window
    simulated_missing: int = 0  # mentions that were dropped on purpose
    added_mentions: int = 0  # by relabelling
    removed_mentions: int = 0  # by relabelling
    excluded_documents: int = 0  # that are evaluated as well
    masked_spans: int = 0  # neither mentions nor negatives


def make_examples(
    corpora: Sequence[Corpus],
    type_numbers: dict[str, int],
    tokenizer: WordTokenizer,
    *,
    max_tokens: int,
    overlap: int,
    drop_empty: bool,
) -> tuple[list[Example], ExampleCounts]:
    """Cut corpora into training windows, with the same words and windows as in extraction."""
    examples: list[Example] = []
    dropped = mentions = splits = cut = 0
    for number, corpus in enumerate(corpora):
        all_types = np.array(sorted(type_numbers[name] for name in corpus.labels), np.int64)
        for documents in _chunks(corpus.documents):
            alignments = [align(replace(document, words=None)) for document in documents]
            packed = PackedTexts.pack([one.text for one in documents], [one.words for one in alignments])
            windowed = WindowedTexts.cut(packed, tokenizer, max_tokens, overlap)
            gold = [
                _gold(document, windowed.packed.words_of(place), type_numbers)
                for place, document in enumerate(documents)
            ]
            seen = [np.zeros(len(rows), np.bool_) for rows in gold]
            known = [
                all_types
                if document.annotated is None
                else np.array(sorted(type_numbers[name] for name in document.annotated), np.int64)
                for document in documents
            ]
            for place, start, end, tokens, words in _windows(windowed):
                inside = (gold[place][:, 0] >= start) & (gold[place][:, 1] < end)
                seen[place] |= inside
                if (drop_empty and not inside.any()) or not len(known[place]):
                    dropped += 1
                    continue
                rows = gold[place][inside] - np.array([start, start, 0])
                complete = len(known[place]) == len(all_types)
                text = documents[place].text
                examples.append(Example(tokens, rows, known[place], number, text, words, complete=complete))
            mentions += sum(map(len, gold))
            splits += sum(alignment.splits for alignment in alignments)
            cut += sum(int(np.count_nonzero(~one)) for one in seen)
    return examples, ExampleCounts(len(examples), dropped, mentions, splits, cut)


def _gold(document: Document, words: Spans, type_numbers: dict[str, int]) -> Integers:
    """The mentions of a document as rows (first word, last word, type)."""
    edges = np.array([(one.start, one.end) for one in document.entities], np.int32).reshape(-1, 2)
    kinds = np.array([type_numbers[one.label] for one in document.entities], np.int64)
    spans = mention_words(words, edges[:, 0], edges[:, 1]).astype(np.int64)
    rows = np.concatenate([spans, kinds[:, None]], axis=1)
    return rows[rows[:, 0] >= 0]


def _windows(texts: WindowedTexts) -> Iterable[tuple[int, int, int, WordTokenIds, Spans]]:
    """The document of each window, its first word and the one behind its last, its tokens, and the offsets of words."""
    packed, counts = texts.packed, np.diff(texts.token_edges).astype(np.int32)
    documents = packed.text_of(texts.windows.start).tolist()
    for document, start, end in zip(documents, texts.windows.start.tolist(), texts.windows.end.tolist(), strict=True):
        ids = texts.token_ids[texts.token_edges[start] : texts.token_edges[end]]
        first = int(packed.edges[document])
        yield document, start - first, end - first, WordTokenIds(ids, counts[start:end]), packed.words[start:end]


def _chunks(documents: Sequence[Document]) -> Iterable[Sequence[Document]]:
    size = _DOCUMENTS_AT_ONCE
    return (documents[start : start + size] for start in range(0, len(documents), size))
