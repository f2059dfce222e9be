"""Joining of short documents."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Corpus, Document, EntityType
from onoma.data.joining import SEPARATOR, join_documents

SENTENCES = [
    Document.from_spans("Tom sang.", [(0, 3, "person")]),
    Document.from_spans("Nobody came.", []),
    Document.from_spans("Ann left Oslo.", [(0, 3, "person"), (9, 13, "city")]),
]


def test_mentions_keep_their_text_in_the_joined_document() -> None:
    (joined,) = join_documents(Corpus("c", SENTENCES))
    assert joined.text == "Tom sang.\nNobody came.\nAnn left Oslo."
    assert [(e.start, e.text, e.label) for e in joined.entities] == [
        (0, "Tom", "person"),
        (23, "Ann", "person"),
        (32, "Oslo", "city"),
    ]


def test_the_corpus_keeps_its_name_and_types() -> None:
    types = (EntityType("person", "a human being"), EntityType("city"), EntityType("river"))
    joined = join_documents(Corpus("c", SENTENCES, types))
    assert joined.name == "c"
    assert joined.types == types


def test_documents_with_different_annotated_labels_are_not_joined() -> None:
    partial = Document.from_spans("Ann left.", [(0, 3, "person")], annotated=["person"])
    joined = join_documents(Corpus("c", [*SENTENCES, partial, partial, *SENTENCES]))
    assert [one.annotated for one in joined] == [None, frozenset({"person"}), None]
    assert joined.documents[1].text == "Ann left.\nAnn left."


def test_a_document_over_the_limit_is_not_cut() -> None:
    long = Document("word " * 50)
    joined = join_documents(Corpus("c", [SENTENCES[0], long, SENTENCES[0]]), max_characters=40)
    assert [one.text for one in joined] == [SENTENCES[0].text, long.text, SENTENCES[0].text]


def test_an_empty_corpus_stays_empty() -> None:
    assert len(join_documents(Corpus("c", []))) == 0


@given(st.lists(st.sampled_from(SENTENCES), max_size=30), st.integers(1, 80))
def test_joining_loses_nothing_and_respects_the_limit(documents: list[Document], max_characters: int) -> None:
    joined = join_documents(Corpus("c", documents, (EntityType("person"), EntityType("city"))), max_characters)
    assert SEPARATOR.join(one.text for one in joined) == SEPARATOR.join(one.text for one in documents)
    before = Counter((e.text, e.label) for one in documents for e in one.entities)
    assert Counter((e.text, e.label) for one in joined for e in one.entities) == before
    longest = max((len(one.text) for one in documents), default=0)
    assert all(len(one.text) <= max(max_characters, longest) for one in joined)


@pytest.mark.parametrize("max_characters", [20, 21, 22])
def test_the_separator_counts_towards_the_limit(max_characters: int) -> None:
    ten = Document("0123456789")
    joined = join_documents(Corpus("c", [ten, ten]), max_characters)
    assert len(joined) == (1 if max_characters >= 21 else 2)
