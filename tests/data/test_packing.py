"""Short documents as one longer one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Corpus, Document, EntityType
from onoma.data.packing import BETWEEN, pack

SENTENCES = [
    Document.from_spans("Tom sang.", [(0, 3, "person")]),
    Document.from_spans("Nobody came.", []),
    Document.from_spans("Ann left Oslo.", [(0, 3, "person"), (9, 13, "city")]),
]


def test_mentions_move_with_their_sentence() -> None:
    packed = pack(Corpus("c", SENTENCES))
    assert len(packed) == 1
    (one,) = packed
    assert one.text == "Tom sang.\nNobody came.\nAnn left Oslo."
    assert [(e.start, e.text, e.label) for e in one.entities] == [
        (0, "Tom", "person"),
        (23, "Ann", "person"),
        (32, "Oslo", "city"),
    ]


def test_the_corpus_keeps_its_name_and_types() -> None:
    types = (EntityType("person", "a human being"), EntityType("city"), EntityType("river"))
    packed = pack(Corpus("c", SENTENCES, types))
    assert packed.name == "c"
    assert packed.types == types


def test_documents_annotated_for_other_types_stay_apart() -> None:
    partly = Document.from_spans("Ann left.", [(0, 3, "person")], annotated=["person"])
    packed = pack(Corpus("c", [*SENTENCES, partly, partly, *SENTENCES]))
    assert [one.annotated for one in packed] == [None, frozenset({"person"}), None]
    assert packed.documents[1].text == "Ann left.\nAnn left."


def test_a_document_over_the_limit_stays_whole() -> None:
    long = Document("word " * 50)
    packed = pack(Corpus("c", [SENTENCES[0], long, SENTENCES[0]]), characters=40)
    assert [one.text for one in packed] == [SENTENCES[0].text, long.text, SENTENCES[0].text]


def test_nothing_becomes_nothing() -> None:
    assert len(pack(Corpus("c", []))) == 0


@given(st.lists(st.sampled_from(SENTENCES), max_size=30), st.integers(1, 80))
def test_packing_loses_nothing_and_keeps_the_limit(documents: list[Document], characters: int) -> None:
    packed = pack(Corpus("c", documents, (EntityType("person"), EntityType("city"))), characters)
    assert BETWEEN.join(one.text for one in packed) == BETWEEN.join(one.text for one in documents)
    before = Counter((e.text, e.label) for one in documents for e in one.entities)
    assert Counter((e.text, e.label) for one in packed for e in one.entities) == before
    longest = max((len(one.text) for one in documents), default=0)
    assert all(len(one.text) <= max(characters, longest) for one in packed)


@pytest.mark.parametrize("characters", [20, 21, 22])
def test_the_limit_is_used(characters: int) -> None:
    ten = Document("0123456789")
    packed = pack(Corpus("c", [ten, ten]), characters)
    assert len(packed) == (1 if characters >= 21 else 2)
