"""Marked examples of types: their forms, and the file that keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onoma import Corpus, Document, EntityType, OnomaError
from onoma.labels.examples import EXAMPLES_FILE, ExampleSet, MarkedText

SOME = ["take [[40 mg]] daily", "[[two drops]] or [[5 ml]] at night"]
MARKED = (MarkedText("take 40 mg daily", ((5, 10),)), MarkedText("two drops or 5 ml at night", ((0, 9), (13, 17))))


def test_texts_with_marks_are_examples_of_their_type() -> None:
    examples = ExampleSet.parse({"dose": SOME, "drug": ["take [[aspirin]]"]})
    assert examples.of(EntityType("dose")) == MARKED
    assert examples.of(EntityType("drug")) == (MarkedText("take aspirin", ((5, 12),)),)
    assert examples.of(EntityType("person")) == ()
    assert examples.labels == ("dose", "drug")


def test_documents_are_examples_of_the_types_for_which_they_are_annotated() -> None:
    first = Document.from_spans("Tom in Oslo", [(0, 3, "person"), (7, 11, "city")])
    second = Document.from_spans("Ann in Rome", [(0, 3, "person")], annotated=["person"])
    examples = ExampleSet.parse([first, second])
    assert examples.of(EntityType("city")) == (MarkedText("Tom in Oslo", ((7, 11),)),)  # Rome is unknown, not negative
    assert examples.of(EntityType("person")) == (
        MarkedText("Tom in Oslo", ((0, 3),)),
        MarkedText("Ann in Rome", ((0, 3),)),
    )


def test_a_type_of_a_corpus_without_mentions_has_no_examples() -> None:
    document = Document.from_spans("Tom in Oslo", [(0, 3, "person")])
    examples = ExampleSet.parse(Corpus("news", [document], [EntityType("person"), EntityType("city")]))
    assert examples.of(EntityType("city")) == ()
    assert len(examples.of(EntityType("person"))) == 1


def test_own_examples_of_a_type_are_added_and_each_counts_once() -> None:
    examples = ExampleSet.parse({"dose": SOME[:1]})
    assert examples.of(EntityType("dose", examples=[*SOME, "5 ml"])) == MARKED
    assert examples + examples == examples


def test_a_folder_keeps_them(tmp_path: Path) -> None:
    examples = ExampleSet.parse({"dose": SOME, "剂量": ["每天服用[[40毫克]]"]})
    examples.write(tmp_path)
    assert ExampleSet.read(tmp_path) == examples
    assert ExampleSet.read(tmp_path / "nowhere") == ExampleSet()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dose": "take [[40 mg]]"}, "written as"),
        ({"dose": ["take 40 mg"]}, "has no mark"),
        ({"dose": ["take [[40 mg"]}, "without ]]"),
        ({3: ["take [[40 mg]]"]}, "written as"),
        ("take [[40 mg]]", "must be a corpus"),
        (["take [[40 mg]]"], "must be documents"),
        ([Document("no mention here")], "no mentions"),
        ([], "no mentions"),
        (5, "must be a corpus"),
    ],
)
def test_other_forms_are_refused(given: Any, message: str) -> None:
    with pytest.raises(OnomaError, match=message):
        ExampleSet.parse(given)


@pytest.mark.parametrize(
    "content",
    [
        "[",
        "[]",
        '{"documents": 3}',
        '{"documents": ["text"]}',
        '{"documents": [{"text": "a"}]}',
        '{"documents": [{"text": "a", "entities": [{"start": 0, "end": 9, "label": "x"}], "annotated": ["x"]}]}',
        '{"documents": [{"text": 5, "entities": [], "annotated": ["x"]}]}',
    ],
)
def test_a_damaged_file_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / EXAMPLES_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(OnomaError, match=EXAMPLES_FILE):
        ExampleSet.read(tmp_path)
