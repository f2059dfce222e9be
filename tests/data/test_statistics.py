"""Statistics of corpora."""

from __future__ import annotations

import json

import pytest

from onoma.data import describe
from onoma.data.statistics import Lengths
from onoma.entities import Corpus, Document, EntityType


def test_statistics_of_a_small_corpus() -> None:
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


def test_a_mention_that_starts_or_ends_inside_a_word_splits_it() -> None:
    inside = Document.from_spans("The IL2gene works.", [(4, 7, "protein")])
    assert describe(Corpus("bio", [inside])).split_words == 1


def test_words_of_the_source_are_counted_and_splits_of_the_segmenter() -> None:
    text = "The IL2 gene"
    words = [(0, 3), (4, 6), (6, 7), (8, 12)]
    statistics = describe(Corpus("bio", [Document.from_spans(text, [(4, 6, "protein")], words=words)]))
    assert statistics.words == 4
    assert statistics.split_words == 1


def test_a_mention_of_white_space_has_no_words() -> None:
    statistics = describe(Corpus("odd", [Document.from_spans("a  b", [(1, 3, "gap")])]))
    assert statistics.mentions == 1
    assert statistics.mention_length.max == 0


def test_an_empty_corpus_has_zero_everywhere() -> None:
    statistics = describe(Corpus("void", []))
    assert (statistics.documents, statistics.words, statistics.mentions, statistics.types) == (0, 0, 0, ())
    assert statistics.document_length == Lengths(0, 0, 0, 0, 0)


def test_the_dictionary_is_ready_for_json() -> None:
    corpus = Corpus("trips", [Document.from_spans("Oslo!", [(0, 4, "city")])])
    values = json.loads(json.dumps(describe(corpus).to_dict()))
    assert values["types"] == [{"name": "city", "mentions": 1, "share": 1.0}]
    assert values["document_length"]["max"] == 2


def test_percentiles() -> None:
    lengths = Lengths.of(range(1, 102))
    assert lengths == Lengths(mean=51, median=51, p90=91, p99=100, max=101)
