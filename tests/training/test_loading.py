"""What recipes do to corpora when they are read."""

from __future__ import annotations

import pytest

from onoma import Corpus, Document, EntityType, OnomaError
from onoma.data import Inventory
from onoma.training.loading import with_broader
from tiny import document

TYPES = (EntityType("poet"), EntityType("painter"), EntityType("city", "a large town"))
BROADER = {"person": ["poet", "painter"]}


def mentions(one: Document) -> list[tuple[str, str]]:
    return sorted((entity.text, entity.label) for entity in one.entities)


def test_mentions_of_narrow_types_become_mentions_of_the_broader_one_too() -> None:
    texts = [document("[poet|Ann] met [painter|Tom] in [city|Oslo] ."), document("Nobody came .")]
    corpus = with_broader(Corpus("art", texts, TYPES), BROADER)
    assert [mentions(one) for one in corpus] == [
        [("Ann", "person"), ("Ann", "poet"), ("Oslo", "city"), ("Tom", "painter"), ("Tom", "person")],
        [],
    ]
    assert corpus.types[:3] == TYPES
    assert corpus.types[3:] == (EntityType("person", Inventory.load().types["person"].description),)
    assert [one.annotated for one in corpus] == [None, None]  # all types of the corpus, so the new one as well


def test_a_type_may_have_several_broader_ones_and_a_mention_is_there_once() -> None:
    types = (*TYPES, EntityType("person", "somebody"))
    texts = [document("[person|[poet|Ann]] and [person|Tom] .")]
    corpus = with_broader(Corpus("art", texts, types), {**BROADER, "artist of words": ["poet"]})
    expected = [("Ann", "artist of words"), ("Ann", "person"), ("Ann", "poet"), ("Tom", "person")]
    assert mentions(next(iter(corpus))) == expected
    assert corpus.types == (*types, EntityType("artist of words"))  # what the corpus says of its types stays


@pytest.mark.parametrize(
    ("annotated", "known", "found"),
    [
        (["poet", "painter"], {"poet", "painter", "person"}, [("Ann", "person"), ("Ann", "poet")]),
        (["poet"], {"poet"}, [("Ann", "poet")]),  # painters may be there unmarked: nothing is said of persons
        (["poet", "person"], {"poet", "person"}, [("Ann", "person"), ("Ann", "poet")]),
        (["city", "poet", "painter"], {"city", "poet", "painter", "person"}, [("Ann", "person"), ("Ann", "poet")]),
    ],
)
def test_a_broader_type_is_known_only_where_all_narrower_ones_are(
    annotated: list[str], known: set[str], found: list[tuple[str, str]]
) -> None:
    partly = Document.from_spans("Ann sang .", [(0, 3, "poet")], annotated=annotated)
    (changed,) = with_broader(Corpus("art", [partly], (*TYPES, EntityType("person"))), BROADER)
    assert changed.annotated == known
    assert mentions(changed) == found


def test_a_narrow_type_that_the_corpus_does_not_have_is_an_error() -> None:
    with pytest.raises(OnomaError, match=r"corpus 'art' has no type 'sculptor'.*'broader' in the recipe"):
        with_broader(Corpus("art", [], TYPES), {"person": ["poet", "sculptor"]})


def test_without_broader_types_a_corpus_stays_as_it_is() -> None:
    corpus = Corpus("art", [document("[poet|Ann] sang .")], TYPES)
    assert with_broader(corpus, {}) is corpus
