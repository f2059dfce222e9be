"""Examples of errors in context."""

from __future__ import annotations

from hypothesis import given

from evaluation.strategies import entities, quick, scored
from onoma import Corpus, Document, Entity, EntityType
from onoma.evaluation import Comparison
from onoma.evaluation.errors import CONTEXT, find_errors
from onoma.evaluation.pairs import error_kinds, pair_mentions

Case = tuple[Corpus, list[list[Entity]]]
TEXT = "Tom flew to New York with Ann."


def test_an_error_has_both_mentions_their_context_and_the_score() -> None:
    corpus = Corpus("tiny", [Document("nothing"), Document.from_spans(TEXT, [(12, 20, "city")])], (EntityType("city"),))
    predicted = [[], [Entity(16, 20, "York", "city", 0.75)]]
    (error,) = find_errors(Comparison.between(corpus, predicted), predicted)
    assert (error.kind, error.document, error.label) == ("start", 2, "city")
    assert error.predicted is not None
    assert error.predicted.score == 0.75
    assert [tuple(part) for part in error.segments()] == [
        ("Tom flew to ", False, False, False),
        ("New ", True, False, False),
        ("York", True, True, False),
        (" with Ann.", False, False, False),
    ]


def test_other_mentions_of_the_context_and_the_id_of_the_document_are_known() -> None:
    spans = [(0, 3, "person"), (12, 20, "city"), (26, 29, "person")]
    corpus = Corpus("tiny", [Document.from_spans(TEXT, spans, id="news-7")])
    predicted = [[Entity(0, 3, "Tom", "person"), Entity(12, 20, "New York", "city")]]
    (error,) = find_errors(Comparison.between(corpus, predicted), predicted)
    assert (error.kind, error.id) == ("missed", "news-7")
    assert [one.text for one in error.others] == ["Tom", "New York"]
    assert [part.text for part in error.segments() if part.in_other] == ["Tom", "New York"]
    assert [part.text for part in error.segments() if part.in_gold] == ["Ann"]


def test_a_long_text_is_cut_around_the_error() -> None:
    text = "x" * 500 + " Oslo " + "y" * 500
    corpus = Corpus("long", [Document.from_spans(text, [(501, 505, "city")])])
    (error,) = find_errors(Comparison.between(corpus, [[]]), [[]])
    assert (error.start, len(error.context), error.is_cut) == (501 - CONTEXT, 2 * CONTEXT + 4, True)
    assert next(part.text for part in error.segments() if part.in_gold) == "Oslo"


def test_a_context_is_cut_between_words() -> None:
    text = "some words " * 30 + "Oslo" + " more words" * 30
    corpus = Corpus("long", [Document.from_spans(text, [(330, 334, "city")])])
    (error,) = find_errors(Comparison.between(corpus, [[]]), [[]])
    assert set(error.context.split()) == {"some", "words", "Oslo", "more"}
    assert CONTEXT < len(error.context) <= 2 * CONTEXT + 4


def test_a_few_errors_have_all_kinds_and_types() -> None:
    text = "a " * 50 + "Oslo"
    invented = [(2 * place, 2 * place + 1, "person") for place in range(50)]
    corpus = Corpus(
        "many", [Document.from_spans(text, [(100, 104, "city")])], (EntityType("city"), EntityType("person"))
    )
    predicted = [entities(text, invented)]
    found = find_errors(Comparison.between(corpus, predicted), predicted, limit=3)
    assert sorted(one.kind for one in found) == ["invented", "invented", "missed"]
    assert found == find_errors(Comparison.between(corpus, predicted), predicted, limit=3)
    assert find_errors(Comparison.between(corpus, predicted), predicted, limit=0) == []


@quick
@given(scored())
def test_the_segments_of_all_errors_are_their_context_and_mark_the_mentions(case: Case) -> None:
    corpus, predicted = case
    comparison = Comparison.between(corpus, predicted)
    found = find_errors(comparison, predicted)
    assert len(found) == error_kinds(pair_mentions(comparison)).errors
    for error in found:
        parts = list(error.segments())
        assert "".join(part.text for part in parts) == error.context
        for mention, field in ((error.gold, "in_gold"), (error.predicted, "in_predicted")):
            marked = "".join(part.text for part in parts if getattr(part, field))
            assert marked == (mention.text if mention else "")
