"""What a corpus holds, in numbers: sizes, types, lengths, and how its mentions overlap."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from onoma.entities import Corpus, Entity
from onoma.text.alignment import align


@dataclass(frozen=True, slots=True)
class TypeCount:
    """The mentions of one type, and their share of all mentions."""

    name: str
    mentions: int
    share: float


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long things are, in words: mean, percentiles and the longest."""

    mean: float
    median: float
    p90: float
    p99: float
    max: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Lengths:
        """Summarise lengths; all zero when there are none."""
        values = np.asarray(lengths if len(lengths) else [0])
        median, p90, p99 = np.percentile(values, [50, 90, 99])
        return cls(float(values.mean()), float(median), float(p90), float(p99), int(values.max()))


class Overlaps(NamedTuple):
    """Pairs of mentions: one inside of the other, over each other's edge, or on the same span."""

    nested: int
    crossing: int
    same_span: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The figures of a corpus, as `describe` makes them.

    `words` are those of the source where it gave any, else Onoma's own; `split_words` counts the words of
    Onoma's own segmentation that have the edge of a mention inside.
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
        """The figures as plain values, ready for JSON."""
        return asdict(self)


def describe(corpus: Corpus) -> Statistics:
    """Count what a corpus holds.

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


def count_overlaps(entities: Iterable[Entity]) -> Overlaps:
    """Count the pairs of mentions that overlap, in one sweep from left to right.

    >>> count_overlaps([Entity(0, 4, "Rome", "city"), Entity(0, 9, "Rome Open", "event")])
    Overlaps(nested=1, crossing=0, same_span=0)
    """
    spans = sorted(((entity.start, entity.end) for entity in entities), key=lambda span: (span[0], -span[1]))
    same_span = sum(count * (count - 1) // 2 for count in Counter(spans).values())
    enclosed = crossing = 0
    open_ends: list[int] = []  # where the mentions that reach over the current start end, in rising order
    for start, end in spans:
        del open_ends[: bisect_right(open_ends, start)]
        shorter = bisect_left(open_ends, end)
        crossing += shorter
        enclosed += len(open_ends) - shorter
        insort(open_ends, end)
    return Overlaps(enclosed - same_span, crossing, same_span)


def _type_counts(names: Iterable[str], mentions: Counter[str]) -> tuple[TypeCount, ...]:
    """Every type of the inventory, the most frequent first."""
    total = max(mentions.total(), 1)
    counts = (TypeCount(name, mentions[name], mentions[name] / total) for name in names)
    return tuple(sorted(counts, key=lambda count: (-count.mentions, count.name)))
