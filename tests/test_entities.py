import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Corpus, Document, Entity, EntityType, OnomaError


@given(st.text(min_size=1), st.data())
def test_from_spans_keeps_text_and_offsets_together(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    (entity,) = Document.from_spans(text, [(start, end, "x")]).entities
    assert text[entity.start : entity.end] == entity.text


def test_document_keeps_entities_in_order():
    document = Document.from_spans("Tom met Ann", [(8, 11, "person"), (0, 3, "person")])
    assert [entity.text for entity in document.entities] == ["Tom", "Ann"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EntityType("  "), "needs a name"),
        (lambda: EntityType("drug", threshold=1.5), "between 0 and 1"),
        (lambda: EntityType("drug", examples="aspirin"), "list of strings"),
        (lambda: Entity(3, 3, "", "x"), "start < end"),
        (lambda: Entity(0, 3, "To", "x"), "has 2"),
        (lambda: Entity(0, 3, "Tom", ""), "empty label"),
        (lambda: Entity(0, 3, "Tom", "x", float("nan")), "not a number"),
        (lambda: Document("Tim", (Entity(0, 3, "Tom", "x"),)), "reads 'Tim'"),
        (lambda: Document.from_spans("Tom", [(0, 9, "x")]), "outside of the text"),
        (lambda: Document.from_spans("Tom", [(0, 3, "x")], annotated=["y"]), "not listed in 'annotated': x"),
        (lambda: Document("Tom is", words=((0, 3), (2, 6))), "out of order"),
        (lambda: Corpus("c", [Document.from_spans("Tom", [(0, 3, "x")])], (EntityType("y"),)), "outside of its inventory"),
        (lambda: Corpus("c", [], (EntityType("y"), EntityType("y"))), "twice"),
    ],
)
def test_validation_says_what_is_wrong(make, message):
    with pytest.raises(OnomaError, match=message):
        make()


def test_corpus_takes_its_inventory_from_mentions_and_annotated_labels():
    corpus = Corpus("c", [Document.from_spans("Tom", [(0, 3, "person")], annotated=["person", "city"]), Document("x")])
    assert corpus.labels == ("city", "person")
    assert corpus.annotated(corpus.documents[1]) == {"city", "person"}
    assert Corpus("c", [], (EntityType("a"),)).annotated(Document("x", annotated=frozenset())) == frozenset()


def test_relabel_changes_mentions_and_annotated_labels():
    document = Document.from_spans("Tom", [(0, 3, "PER")], annotated=["PER", "LOC"]).relabel({"PER": "person"})
    assert document.labels == {"person"}
    assert document.annotated == {"person", "LOC"}
