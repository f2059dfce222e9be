"""Statistics of a corpus: sizes, types, lengths, and how its mentions overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from onoma.data.overlaps import count_overlaps
from onoma.entities import Corpus
from onoma.text.alignment import align


@dataclass(frozen=True, slots=True)
class TypeCount:
    """The number of mentions of one type, and their share of all mentions."""

    name: str
    mentions: int
    share: float


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths in words: mean, percentiles and maximum."""

    mean: float
    median: float
    p90: float
    p99: float
    max: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Lengths:
        """Summarise lengths; all values are 0 if there are none."""
        values = np.asarray(lengths if len(lengths) else [0])
        median, p90, p99 = np.percentile(values, [50, 90, 99])
        return cls(float(values.mean()), float(median), float(p90), float(p99), int(values.max()))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a corpus; see `describe`.

    `words` counts the words of the source if it gives them, else those of `onoma.text.segment`. `split_words` counts
    the words of `onoma.text.segment` in which a mention starts or ends.
    """

    name: str
    documents: int
    documents_without_mention: int
    characters: int
    words: int
    mentions: int
    types: tuple[TypeCount, ...]
    document_length: Lengths
    mention_length: Lengths
    nested_pairs: int
    crossing_pairs: int
    same_span_pairs: int
    split_words: int

    def to_dict(self) -> dict[str, Any]:
        """All values as plain Python values, ready for JSON."""
        return asdict(self)


def describe(corpus: Corpus) -> Statistics:
    """Compute the statistics of a corpus.

    >>> from onoma.entities import Document
    >>> one = Document.from_spans("Tom Thumb flew to Paris.", [(0, 9, "person"), (18, 23, "city")])
    >>> statistics = describe(Corpus("tales", [one]))
    >>> statistics.words, statistics.mentions, statistics.mention_length.max
    (6, 2, 2)
    """
    document_lengths: list[int] = []
    mention_lengths: list[int] = []
    labels: Counter[str] = Counter()
    nested = crossing = same_span = split_words = 0
    for document in corpus:
        alignment = align(document)
        document_lengths.append(len(alignment.words))
        first, last = alignment.mentions.T
        mention_lengths.extend(np.where(first < 0, 0, last - first + 1).tolist())  # first < 0: a mention without words
        labels.update(entity.label for entity in document.entities)
        pairs = count_overlaps(document.entities)
        nested, crossing, same_span = nested + pairs.nested, crossing + pairs.crossing, same_span + pairs.same_span
        if document.words is not None and document.entities:
            alignment = align(replace(document, words=None))
        split_words += alignment.splits
    return Statistics(
        name=corpus.name,
        documents=len(corpus),
        documents_without_mention=sum(not document.entities for document in corpus),
        characters=sum(len(document.text) for document in corpus),
        words=sum(document_lengths),
        mentions=labels.total(),
        types=_type_counts(corpus.labels, labels),
        document_length=Lengths.of(document_lengths),
        mention_length=Lengths.of(mention_lengths),
        nested_pairs=nested,
        crossing_pairs=crossing,
        same_span_pairs=same_span,
        split_words=split_words,
    )


def _type_counts(names: Iterable[str], mentions: Counter[str]) -> tuple[TypeCount, ...]:
    """All types of the inventory, the most frequent ones first."""
    total = max(mentions.total(), 1)
    counts = (TypeCount(name, mentions[name], mentions[name] / total) for name in names)
    return tuple(sorted(counts, key=lambda count: (-count.mentions, count.name)))
