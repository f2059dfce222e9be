"""Warnings about doubtful labels."""

from __future__ import annotations

import pytest

from onoma.data.quality import MAX_EXAMPLE_LENGTH, MAX_EXAMPLES, Example, LabelWarning, check, text_key
from onoma.entities import Corpus, Document, EntityType

Spans = list[tuple[int, int, str]]


def document(text: str, spans: Spans | None = None, annotated: set[str] | None = None) -> Document:
    return Document.from_spans(text, spans or [], annotated=annotated)


def warnings_of(rare: int = 0, **splits: list[Document]) -> dict[str, LabelWarning]:
    corpora = {split: Corpus("songs", documents) for split, documents in splits.items()}
    return {warning.code: warning for warning in check(corpora, rare=rare)}


CLEAN = document("Ann sings in Oslo.", [(0, 3, "person"), (13, 17, "city")])
ANOTHER = document("Bob hums in Rome.", [(0, 3, "person"), (12, 16, "city")])


def test_a_clean_corpus_has_no_warnings() -> None:
    assert warnings_of(train=[CLEAN], test=[ANOTHER]) == {}


def test_copies_within_a_split_and_in_another_split_are_reported() -> None:
    shouted = document("ANN  SINGS IN OSLO.", [(0, 3, "person"), (14, 18, "city")])
    found = warnings_of(train=[CLEAN, ANOTHER, shouted], dev=[], test=[CLEAN])
    assert found["duplicate-documents"].count == 1
    assert found["duplicate-documents"].examples == (Example("train", 2, "ANN SINGS IN OSLO."),)
    assert found["leaked-documents"].count == 1
    assert found["leaked-documents"].examples[0].split == "test"
    assert "conflicting-copies" not in found


def test_copies_with_different_labels_conflict() -> None:
    found = warnings_of(train=[CLEAN, document("ann sings in oslo.", [(0, 3, "person")])])
    assert found["conflicting-copies"].count == 1
    assert found["conflicting-copies"].examples[0].text == "ann sings in oslo."


def test_copies_conflict_only_in_labels_annotated_in_both() -> None:
    first = document("Ann sings.", [(0, 3, "person")], {"person"})
    second = document("Ann sings.", [(4, 9, "deed")], {"deed"})
    third = document("Ann sings.", [], {"person", "deed"})
    assert "conflicting-copies" not in warnings_of(train=[first, second])
    assert warnings_of(train=[first, third])["conflicting-copies"].count == 1


@pytest.mark.parametrize(("left", "right"), [("Große Oper", "GROSSE  OPER"), ("İz", "i̇z"), ("a\u3000b", "AB")])
def test_the_text_key_ignores_case_and_white_space(left: str, right: str) -> None:
    assert text_key(left) == text_key(right)
    assert text_key(left) != text_key(left + ".")


def test_copies_agree_although_case_folding_changes_their_length() -> None:
    found = warnings_of(train=[document("Straße X", [(7, 8, "name")]), document("STRASSE X", [(8, 9, "name")])])
    assert set(found) == {"duplicate-documents"}


def test_repeated_mentions_are_reported() -> None:
    found = warnings_of(train=[document("Ann sings.", [(0, 3, "person"), (0, 3, "person"), (0, 3, "person")])])
    assert found["duplicate-mentions"].count == 2
    assert found["duplicate-mentions"].examples[0].text == "Ann"
    assert "nested-mentions" not in found


def test_white_space_and_unbalanced_brackets_at_edges_are_reported() -> None:
    texts = [(0, 4, "a"), (5, 10, "b"), (5, 11, "c"), (11, 16, "d")]
    found = warnings_of(train=[document("Ann (Oslo) soon)", texts)])
    assert found["edge-space"].count == 2
    assert found["edge-space"].examples[0].text == "'Ann '"
    assert found["unbalanced-brackets"].count == 3
    assert [example.text for example in found["unbalanced-brackets"].examples] == ["Oslo)", "Oslo)", "soon)"]


def test_balanced_brackets_are_not_reported() -> None:
    spans = [(0, 9, "x"), (2, 9, "y"), (0, 3, "z")]
    assert "unbalanced-brackets" not in warnings_of(train=[document("(a) b (c)", spans)])


def test_nested_and_crossing_mentions_are_reported() -> None:
    text = "New York City Hall"
    found = warnings_of(
        train=[
            document(text, [(0, 13, "city"), (4, 18, "hall"), (0, 8, "state"), (0, 8, "place")]),
            document("Rome Open", [(0, 9, "event"), (0, 4, "city")]),
        ]
    )
    assert found["nested-mentions"].count == 4
    assert found["nested-mentions"].examples[0].text == "New York City (city) / New York (place)"
    assert found["crossing-mentions"].count == 3
    assert found["crossing-mentions"].examples[0].index == 0
    assert "(hall)" in found["crossing-mentions"].examples[0].text


def test_a_string_with_an_unusual_label_is_reported() -> None:
    paris = [document(f"Paris {n}", [(0, 5, "city")]) for n in range(3)]
    found = warnings_of(train=paris, test=[document("Paris sang", [(0, 5, "person")]), ANOTHER])
    assert found["conflicting-labels"].count == 1
    assert found["conflicting-labels"].examples[0].text == "Paris: city 3, person 1"
    assert found["conflicting-labels"].examples[0].split == "test"


def test_several_labels_on_one_span_do_not_conflict() -> None:
    fine = document("Paris 1", [(0, 5, "city"), (0, 5, "capital")])
    assert "conflicting-labels" not in warnings_of(train=[fine, document("Paris 2", [(0, 5, "city")])])


def test_labels_that_are_not_annotated_do_not_conflict() -> None:
    cities = [document(f"Paris {n}", [(0, 5, "city")], {"city"}) for n in range(2)]
    singer = document("Paris sings", [(0, 5, "person")], {"person"})
    assert "conflicting-labels" not in warnings_of(train=[*cities, singer])
    surely = document("Paris hums", [(0, 5, "person")], {"person", "city"})
    assert warnings_of(train=[*cities, surely])["conflicting-labels"].count == 1


def test_rare_and_missing_types_are_reported() -> None:
    types = tuple(EntityType(name) for name in ("person", "city", "river"))
    train = Corpus("songs", [CLEAN, ANOTHER], types)
    test = Corpus("songs", [document("Eve yawns.", [(0, 3, "person")])], types)
    found = {warning.code: warning for warning in check({"train": train, "test": test}, rare=3)}
    assert (found["rare-types"].count, found["missing-types"].count) == (2, 1)
    assert found["rare-types"].message == "types with fewer than 3 mentions: river (0), city (2)"
    assert found["missing-types"].message == "types of other splits without a mention in 'test': city"


def test_a_split_without_mentions_is_one_warning() -> None:
    found = warnings_of(train=[CLEAN], blind=[document("Who knows?")])
    assert set(found) == {"unlabelled-split"}
    assert "'blind'" in found["unlabelled-split"].message


def test_examples_are_limited_in_number_and_length() -> None:
    found = warnings_of(train=[document("la " * 100)] * 10)["duplicate-documents"]
    assert found.count == 9
    assert len(found.examples) == MAX_EXAMPLES
    assert all(len(example.text) == MAX_EXAMPLE_LENGTH and example.text.endswith("…") for example in found.examples)


def test_a_long_document_does_not_take_quadratic_time() -> None:
    text = "ab " * 50_000
    spans = [(3 * n, 3 * n + 4 if n < 49_999 else 3 * n + 2, "x") for n in range(50_000)]
    assert warnings_of(train=[document(text, spans)])["crossing-mentions"].count == 49_999
