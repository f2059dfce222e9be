from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.data.statistics import Lengths, Overlaps, count_overlaps, describe
from onoma.entities import Corpus, Document, Entity, EntityType


def entity(start: int, end: int, label: str = "x") -> Entity:
    return Entity(start, end, "." * (end - start), label)


def test_figures_of_a_small_corpus() -> None:
    documents = [
        Document.from_spans("Ann Lee flew to New York City.", [(0, 7, "person"), (16, 29, "city"), (16, 24, "state")]),
        Document.from_spans("Oslo!", [(0, 4, "city")]),
        Document("Nothing here."),
    ]
    types = tuple(EntityType(name) for name in ("person", "state", "city", "river"))
    statistics = describe(Corpus("trips", documents, types))
    assert statistics.name == "trips"
    assert (statistics.documents, statistics.documents_without_mention) == (3, 1)
    assert statistics.characters == 30 + 5 + 13
    assert statistics.words == 8 + 2 + 3
    assert statistics.mentions == 4
    assert [(one.name, one.mentions, one.share) for one in statistics.types] == [
        ("city", 2, 0.5),
        ("person", 1, 0.25),
        ("state", 1, 0.25),
        ("river", 0, 0.0),
    ]
    assert (statistics.document_length.mean, statistics.document_length.median) == (pytest.approx(13 / 3), 3)
    assert statistics.document_length.max == 8
    assert (statistics.mention_length.mean, statistics.mention_length.max) == (2, 3)
    assert (statistics.nested_pairs, statistics.crossing_pairs, statistics.same_span_pairs) == (1, 0, 0)
    assert statistics.split_words == 0


def test_mention_edge_inside_of_a_word() -> None:
    inside = Document.from_spans("The IL2gene works.", [(4, 7, "protein")])
    assert describe(Corpus("bio", [inside])).split_words == 1


def test_words_of_the_source_are_counted_and_checked_against_our_own() -> None:
    text = "The IL2 gene"
    words = [(0, 3), (4, 6), (6, 7), (8, 12)]
    statistics = describe(Corpus("bio", [Document.from_spans(text, [(4, 6, "protein")], words=words)]))
    assert statistics.words == 4
    assert statistics.split_words == 1


def test_mention_of_white_space_has_no_words() -> None:
    statistics = describe(Corpus("odd", [Document.from_spans("a  b", [(1, 3, "gap")])]))
    assert statistics.mentions == 1
    assert statistics.mention_length.max == 0


def test_empty_corpus() -> None:
    statistics = describe(Corpus("void", []))
    assert (statistics.documents, statistics.words, statistics.mentions, statistics.types) == (0, 0, 0, ())
    assert statistics.document_length == Lengths(0, 0, 0, 0, 0)


def test_corpus_method_and_plain_values() -> None:
    corpus = Corpus("trips", [Document.from_spans("Oslo!", [(0, 4, "city")])])
    values = json.loads(json.dumps(corpus.statistics().to_dict()))
    assert values["types"] == [{"name": "city", "mentions": 1, "share": 1.0}]
    assert values["document_length"]["max"] == 2


def test_percentiles() -> None:
    lengths = Lengths.of(range(1, 102))
    assert lengths == Lengths(mean=51, median=51, p90=91, p99=100, max=101)


def count_slowly(entities: list[Entity]) -> Overlaps:
    nested = crossing = same_span = 0
    for a, b in combinations(entities, 2):
        if (a.start, a.end) == (b.start, b.end):
            same_span += 1
        elif (a.start <= b.start and b.end <= a.end) or (b.start <= a.start and a.end <= b.end):
            nested += 1
        elif a.start < b.end and b.start < a.end:
            crossing += 1
    return Overlaps(nested, crossing, same_span)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5)), max_size=12))
def test_overlaps_as_by_comparing_all_pairs(spans: list[tuple[int, int]]) -> None:
    entities = [entity(start, start + length) for start, length in spans]
    assert count_overlaps(entities) == count_slowly(entities)


def test_many_mentions_take_no_quadratic_time() -> None:
    entities = [entity(start, start + 3) for start in range(200_000)]
    assert count_overlaps(entities) == Overlaps(0, 199_999 + 199_998, 0)
