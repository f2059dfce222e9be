import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Corpus, Document, Entity, EntityType, OnomaError
from onoma.entities import parse_marks


@given(st.text(min_size=1), st.data())
def test_from_spans_keeps_text_and_offsets_together(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    (entity,) = Document.from_spans(text, [(start, end, "x")]).entities
    assert text[entity.start : entity.end] == entity.text


def test_the_entities_of_a_document_are_sorted():
    document = Document.from_spans("Tom met Ann", [(8, 11, "person"), (0, 3, "person")])
    assert [entity.text for entity in document.entities] == ["Tom", "Ann"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EntityType("  "), "needs a name"),
        (lambda: EntityType("drug", threshold=1.5), "between 0 and 1"),
        (lambda: EntityType("drug", examples="aspirin"), "list of strings"),
        (lambda: EntityType("drug", threshold="high"), "between 0 and 1"),
        (lambda: EntityType("drug", examples=[1]), "list of strings"),
        (lambda: Entity(3, 3, "", "x"), "start < end"),
        (lambda: Entity("0", 3, "Tom", "x"), "must be integers, got start='0', end=3"),
        (lambda: Entity(0, True, "T", "x"), "must be integers, got start=0, end=True"),
        (lambda: Entity(0.0, 3.0, "Tom", "x"), "must be integers, got start=0.0"),
        (lambda: Entity(0, 3, ["T", "o", "m"], "x"), "text of the mention 0-3 must be a string"),
        (lambda: Entity(0, 3, "Tom", 3), "label of the mention 'Tom' must be a string, got 3"),
        (lambda: Entity(0, 3, "Tom", "x", "high"), "not a number: 'high'"),
        (lambda: Document(None), "text of a document must be a string, got None"),
        (lambda: Document.from_spans(None, [(0, 3, "x")]), "must be a string, got None"),
        (lambda: Document.from_spans("Tom", [("0", 3, "x")]), "must be integers, got start='0'"),
        (lambda: Document.from_spans("Tom", [(0.0, 3.0, "x")]), "must be integers, got start=0.0"),
        (lambda: Entity(0, 3, "To", "x"), "has 2"),
        (lambda: Entity(0, 3, "Tom", ""), "empty label"),
        (lambda: Entity(0, 3, "Tom", "x", float("nan")), "not a number"),
        (lambda: Document("Tim", (Entity(0, 3, "Tom", "x"),)), "whose text there is 'Tim'"),
        (lambda: Document.from_spans("Tom", [(0, 9, "x")]), "outside the text"),
        (lambda: Document.from_spans("Tom", [(0, 3, "x")], annotated=["y"]), "not listed in 'annotated': x"),
        (lambda: Document("Tom is", words=((0, 3), (2, 6))), "out of order"),
        (
            lambda: Corpus("c", [Document.from_spans("Tom", [(0, 3, "x")])], (EntityType("y"),)),
            "outside its inventory",
        ),
        (lambda: Corpus("c", [], (EntityType("y"), EntityType("y"))), "twice"),
    ],
)
def test_bad_values_are_explained(make, message):
    with pytest.raises(OnomaError, match=message):
        make()


def test_numbers_of_numpy_are_accepted():
    document = Document.from_spans("Tom", [(np.int32(0), np.int64(3), "x")])
    assert document.entities == (Entity(0, 3, "Tom", "x", np.float32(1)),)


def test_the_repr_of_a_corpus_is_short():
    documents = [Document.from_spans("Tom" * 99, [(0, 3, "person")], annotated=["person", "city"])] * 500
    assert repr(Corpus("trips", documents)) == "Corpus('trips', 500 documents, types: city, person)"
    many = Corpus("many", [], tuple(EntityType(str(number)) for number in range(10)))
    assert repr(many) == "Corpus('many', 0 documents, types: 0, 1, 2, 3, 4, 5, 6, 7 and 2 more)"
    assert repr(Corpus("none", [])) == "Corpus('none', 0 documents, types: none)"


def test_the_repr_of_a_document_is_short():
    short = Document.from_spans("Tom flew to Paris.", [(0, 3, "person"), (12, 17, "city")], id="a")
    assert repr(short) == "Document('Tom flew to Paris.', id='a', entities: Tom (person), Paris (city))"
    assert repr(Document("")) == "Document('', entities: none)"
    text = "Tom " * 1000
    long = Document.from_spans(text, [(start, start + 3, "x") for start in range(0, 4000, 4)])
    assert len(repr(long)) < 250
    assert "…', 4,000 characters, entities: Tom (x), " in repr(long)
    assert repr(long).endswith(" and 992 more)")


def test_the_repr_of_a_type_has_what_is_given():
    assert repr(EntityType("drug")) == "EntityType('drug')"
    full = EntityType("drug", "a medicine", ("aspirin",), 0.0)
    assert repr(full) == "EntityType('drug', description='a medicine', examples=('aspirin',), threshold=0.0)"
    assert eval(repr(full)) == full


def test_the_default_inventory_has_all_labels_of_mentions_and_annotations():
    corpus = Corpus("c", [Document.from_spans("Tom", [(0, 3, "person")], annotated=["person", "city"]), Document("x")])
    assert corpus.labels == ("city", "person")
    assert corpus.annotated(corpus.documents[1]) == {"city", "person"}
    assert Corpus("c", [], (EntityType("a"),)).annotated(Document("x", annotated=frozenset())) == frozenset()


def test_an_entity_as_plain_values():
    entity = Entity(0, 3, "Tom", "person", 0.5)
    assert entity.to_dict() == {"start": 0, "end": 3, "text": "Tom", "label": "person", "score": 0.5}
    assert Entity(**json.loads(json.dumps(entity.to_dict()))) == entity
    assert list(entity.to_dict()) == ["start", "end", "text", "label", "score"]


@pytest.mark.parametrize(
    ("entity_type", "text"),
    [
        (EntityType("drug"), "drug"),
        (EntityType("drug", "a medicine"), "drug: a medicine"),
        (EntityType("drug", "a medicine", ("aspirin", "heparin")), "drug: a medicine, such as aspirin, heparin"),
        (EntityType("drug", examples=("aspirin",), threshold=0.4), "drug, such as aspirin"),
    ],
)
def test_a_type_as_one_line_of_text(entity_type, text):
    assert entity_type.as_text() == text


def test_ids_may_be_integers_and_other_fields_are_kept():
    document = Document.from_spans("Tom", [(0, 3, "PER")], id=7, meta={"source": "news"})
    assert (document.id, document.meta) == (7, {"source": "news"})
    renamed = replace(document, entities=())
    assert (renamed.id, renamed.meta) == (7, {"source": "news"})
    assert hash(document) == hash(Document.from_spans("Tom", [(0, 3, "PER")], id=7, meta={"source": ["news"]}))


@pytest.mark.parametrize(
    ("example", "text", "mentions"),
    [
        ("take [[40 mg]] daily", "take 40 mg daily", ["40 mg"]),
        ("[[a]][[b]]", "ab", ["a", "b"]),
        ("[[ 40 mg ]] daily", " 40 mg  daily", ["40 mg"]),
        (r"if \[[ -f [[x]] \]]; then", "if [[ -f x ]]; then", ["x"]),
        ("每天[[40毫克]]", "每天40毫克", ["40毫克"]),
        ("no mark [at all]", "no mark [at all]", []),
    ],
)
def test_marks_of_examples_are_parsed(example: str, text: str, mentions: list[str]) -> None:
    found, spans = parse_marks(example)
    assert (found, [found[start:end] for start, end in spans]) == (text, mentions)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("take [[40 mg daily", "has [[ without ]]"),
        ("take 40 mg]] daily", "has ]] without [["),
        ("[[take [[40 mg]]]] daily", "has [[ inside of [["),
        ("take [[ ]] daily", "empty mark"),
    ],
)
def test_wrong_marks_are_refused(example: str, message: str) -> None:
    with pytest.raises(OnomaError, match=re.escape(message)):
        EntityType("dose", examples=["aspirin", example])


@given(st.lists(st.tuples(st.text("ab ", min_size=1), st.booleans()), max_size=8))
def test_marks_can_be_put_around_any_words(parts: list[tuple[str, bool]]) -> None:
    parts = [(part, marked and bool(part.strip())) for part, marked in parts]
    example = "".join(f"[[{part}]]" if marked else part for part, marked in parts)
    text, spans = parse_marks(example)
    assert text == "".join(part for part, _ in parts)
    assert [text[start:end] for start, end in spans] == [part.strip() for part, marked in parts if marked]


def test_models_read_examples_without_marks_and_marked_ones_are_documents() -> None:
    dose = EntityType("dose", "an amount", examples=["5 ml", "take [[40 mg]] daily"])
    assert dose.as_text() == "dose: an amount, such as 5 ml"
    (document,) = dose.marked_examples
    assert document.annotated == {"dose"}
    assert [(one.text, one.label) for one in document.entities] == [("40 mg", "dose")]
