"""Loading the corpora of a recipe: broader types and partial annotation."""

from __future__ import annotations

import pytest

from onoma import Corpus, Document, EntityType, OnomaError
from onoma.data import Inventory
from onoma.training.corpora import restrict_annotation, with_broader_types
from tiny import document

TYPES = (EntityType("poet"), EntityType("painter"), EntityType("city", "a large town"))
BROADER = {"person": ["poet", "painter"]}


def mentions(one: Document) -> list[tuple[str, str]]:
    return sorted((entity.text, entity.label) for entity in one.entities)


def test_mentions_of_narrow_types_become_mentions_of_the_broader_one_as_well() -> None:
    texts = [document("[poet|Ann] met [painter|Tom] in [city|Oslo] ."), document("Nobody came .")]
    corpus = with_broader_types(Corpus("art", texts, TYPES), BROADER)
    assert [mentions(one) for one in corpus] == [
        [("Ann", "person"), ("Ann", "poet"), ("Oslo", "city"), ("Tom", "painter"), ("Tom", "person")],
        [],
    ]
    assert corpus.types[:3] == TYPES
    assert corpus.types[3:] == (EntityType("person", Inventory.load().types["person"].description),)
    assert [one.annotated for one in corpus] == [None, None]  # None: all types of the corpus, including the new one


def test_a_type_may_have_several_broader_ones_and_mentions_are_not_duplicated() -> None:
    types = (*TYPES, EntityType("person", "somebody"))
    texts = [document("[person|[poet|Ann]] and [person|Tom] .")]
    corpus = with_broader_types(Corpus("art", texts, types), {**BROADER, "artist of words": ["poet"]})
    expected = [("Ann", "artist of words"), ("Ann", "person"), ("Ann", "poet"), ("Tom", "person")]
    assert mentions(next(iter(corpus))) == expected
    assert corpus.types == (*types, EntityType("artist of words"))  # the corpus's own descriptions are kept


@pytest.mark.parametrize(
    ("annotated", "known", "found"),
    [
        (["poet", "painter"], {"poet", "painter", "person"}, [("Ann", "person"), ("Ann", "poet")]),
        (["poet"], {"poet"}, [("Ann", "poet")]),  # painters may be unmarked, so persons are unknown
        (["poet", "person"], {"poet", "person"}, [("Ann", "person"), ("Ann", "poet")]),
        (["city", "poet", "painter"], {"city", "poet", "painter", "person"}, [("Ann", "person"), ("Ann", "poet")]),
    ],
)
def test_a_broader_type_is_known_only_where_all_narrower_ones_are(
    annotated: list[str], known: set[str], found: list[tuple[str, str]]
) -> None:
    partly = Document.from_spans("Ann sang .", [(0, 3, "poet")], annotated=annotated)
    (changed,) = with_broader_types(Corpus("art", [partly], (*TYPES, EntityType("person"))), BROADER)
    assert changed.annotated == known
    assert mentions(changed) == found


def test_an_unknown_narrow_type_is_an_error() -> None:
    with pytest.raises(OnomaError, match=r"corpus 'art' has no type 'sculptor'.*'broader_types' in the recipe"):
        with_broader_types(Corpus("art", [], TYPES), {"person": ["poet", "sculptor"]})


def test_without_broader_types_a_corpus_is_not_changed() -> None:
    corpus = Corpus("art", [document("[poet|Ann] sang .")], TYPES)
    assert with_broader_types(corpus, {}) is corpus


def test_documents_are_annotated_for_types_that_occur_with_their_own() -> None:
    films = [document("[film|Alien] by [director|Scott] ."), document("[film|Jaws] in Oslo .")]
    trips = [
        document("To [city|Rome] on [day|Monday] ."),
        document("On [day|Friday] with [film|Jaws] ."),
        document("Hi ."),
    ]
    corpus = restrict_annotation(Corpus("talk", [*films, *trips]))
    found = [set(one.annotated or ()) for one in corpus]
    assert found == [{"film", "director"}, {"film", "director", "day"}, {"city", "day"}, {"film", "day"}, set()]
