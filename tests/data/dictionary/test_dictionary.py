"""Labelling with a dictionary, compared with a slow reference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.dictionary import reference
from onoma import Document, OnomaError
from onoma.data import write
from onoma.data.dictionary import Dictionary, Entry, dictionary, matching

WORDS = (
    *("a", "A", "b", "ab", "Paris", "PARIS", "new", "New", "york", "5", "mg", "5mg", "-", ".", ",", "'s", "O'b", "ß"),
    *("ss", "SS", "北", "京", "ガ", "ｶﾞ", "ﾞ", "カ", "Ａ", "\u3000", "\n", "  ", "é", "U.S.", "3.5", "http://a.b/c"),
    *("臺", "台", "灣", "湾", "５", "ｍｇ"),
)
PHRASES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join) | st.lists(
    st.sampled_from(WORDS), min_size=1, max_size=3
).map("".join)
TEXTS = st.lists(st.sampled_from((*WORDS, " ", " ", " ")), max_size=14).map("".join)
ENTRIES = st.lists(
    st.builds(Entry, PHRASES, st.sampled_from(("x", "y")), st.just(()), st.just(())), min_size=1, max_size=8
)
RULES = st.lists(
    st.builds(
        Entry,
        PHRASES,
        st.just("x"),
        st.lists(PHRASES, max_size=2).map(tuple),
        st.lists(PHRASES, max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda entry: reference.fold(entry.text),
)


def spans(labelled: Document) -> set[tuple[int, int, str]]:
    return {entity.key for entity in labelled.entities}


def label(text: str, entries: Sequence[Entry], **options: Any) -> list[tuple[str, str]]:
    (labelled,) = Dictionary(entries, **options).label([Document(text)])
    return [(entity.text, entity.label) for entity in labelled.entities]


def entries(**types: list[str]) -> list[Entry]:
    return [Entry(text, type) for type, texts in types.items() for text in texts]


@settings(max_examples=150)
@given(st.lists(TEXTS, min_size=1, max_size=4), ENTRIES, st.sampled_from(("skip", "first", "all")), st.booleans())
def test_mentions_are_those_of_the_reference(texts: list[str], given: list[Entry], ambiguous: Any, exact: bool) -> None:
    documents = list(map(Document, texts))
    made = Dictionary(given, ambiguous=ambiguous, match_case=exact, match_width=exact, match_traditional=exact)
    for document, labelled in zip(documents, made.label(documents), strict=True):
        expected = reference.label(
            document, given, ambiguous=ambiguous, case=not exact, width=not exact, traditional=not exact
        )
        assert spans(labelled) == expected


@settings(max_examples=100)
@given(TEXTS, RULES, st.lists(PHRASES, max_size=2))
def test_stop_lists_and_rules_are_those_of_the_reference(text: str, given: list[Entry], stop: list[str]) -> None:
    (labelled,) = Dictionary(given, stop=stop).label([Document(text)])
    assert spans(labelled) == reference.label(Document(text), given, stop=stop)


@given(st.lists(st.sampled_from(WORDS), max_size=10), ENTRIES)
def test_words_of_the_source_are_boundaries(tokens: list[str], given: list[Entry]) -> None:
    text, words = "", []
    for number, token in enumerate(one for one in tokens if one.strip()):
        text += " " * (number % 3 > 0)
        words.append((len(text), len(text) + len(token)))
        text += token
    document = Document(text, words=tuple(words))
    (labelled,) = Dictionary(given).label([document])
    assert labelled.words == document.words
    assert spans(labelled) == reference.label(document, given)


def test_long_documents_are_searched_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"the new york times of day {number} in new york, ß {number}" for number in range(200))
    given = entries(paper=["new york times"], place=["new york", "york"], day=["day 7 in", "day 150", "ss 4"])
    whole = list(Dictionary(given).label([Document(text), Document("york")]))
    monkeypatch.setattr(dictionary, "BLOCK", 50)
    monkeypatch.setattr(dictionary, "MARGIN", 40)
    parts = list(Dictionary(given).label([Document(text), Document("york")]))
    assert parts == whole
    assert len(whole[0].entities) > 400


@pytest.mark.parametrize("rounds", [0, 1, 8])
def test_chains_of_overlapping_entries_take_linear_time(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    monkeypatch.setattr(matching, "ROUNDS", rounds)
    given = entries(x=["ha ha", "ha ha ha", "oh ha"])
    found = label("oh " + "ha " * 100_000, given)
    assert found[:2] == [("ha ha ha", "x"), ("ha ha ha", "x")]
    assert len(found) == 33_333
    assert label("oh ha ha ha oh ha ha", given) == [("ha ha ha", "x"), ("oh ha", "x")]


def test_the_longest_entry_wins() -> None:
    given = entries(place=["new york", "york"], paper=["new york times"], drug=["times square"])
    assert label("In New York Times Square, York", given) == [("New York Times", "paper"), ("York", "place")]


@pytest.mark.parametrize(
    ("text", "entry", "found"),
    [
        ("PARIS", "paris", "PARIS"),
        ("in paris-based", "Paris", "paris"),
        ("comparison", "paris", None),
        ("5mg", "mg", "mg"),
        ("the U.S. army", "u.s.", "U.S."),
        ("the U.S. army", "u", None),
        ("O'Brien", "brien", None),
        ("John's", "john", "John"),
        ("我在北京工作", "北京", "北京"),
        ("ＡＢＣ社", "abc", "ＡＢＣ"),
        ("ｶﾞﾝﾀﾞﾑ", "ガンダム", "ｶﾞﾝﾀﾞﾑ"),
        ("ｶﾞ", "カ", None),
        ("STRASSE", "Straße", "STRASSE"),
        ("Straße", "STRASSE", "Straße"),
        ("New\n  York", "new york", "New\n  York"),
        ("NewYork", "new york", None),
        ("new york", "newyork", None),
        ("İstanbul", "i̇stanbul", "İstanbul"),
    ],
)
def test_folding_and_boundaries(text: str, entry: str, found: str | None) -> None:
    assert label(text, entries(x=[entry])) == ([] if found is None else [(found, "x")])


def test_case_and_width_can_be_matched() -> None:
    given = entries(x=["Paris", "Ａ"])
    assert label("PARIS Paris A Ａ", given, match_case=True) == [("Paris", "x"), ("A", "x"), ("Ａ", "x")]
    assert label("PARIS Paris A Ａ ａ", given, match_width=True) == [
        ("PARIS", "x"),
        ("Paris", "x"),
        ("Ａ", "x"),
        ("ａ", "x"),
    ]


def test_traditional_and_simplified_characters_are_the_same_unless_they_are_to_be_matched() -> None:
    text, given = "他在臺灣大學和台湾大学讀書", entries(x=["台湾大学"])
    assert label(text, given) == [("臺灣大學", "x"), ("台湾大学", "x")]
    assert label(text, entries(x=["臺灣大學"])) == [("臺灣大學", "x"), ("台湾大学", "x")]
    assert label(text, given, match_traditional=True) == [("台湾大学", "x")]


def test_entries_of_several_types() -> None:
    given = entries(city=["Washington", "Oslo"], person=["washington"])
    assert label("Washington, Oslo", given) == [("Oslo", "city")]
    assert label("Washington", given, ambiguous="first") == [("Washington", "city")]
    assert label("Washington", given, ambiguous="all") == [("Washington", "city"), ("Washington", "person")]
    assert Dictionary(given).ambiguous == 1
    with pytest.raises(OnomaError, match="skip, first, all"):
        Dictionary(given, ambiguous="both")  # type: ignore[arg-type]


def test_what_is_not_labelled_hides_shorter_entries_inside() -> None:
    given = entries(city=["Paris", "New York"], paper=["New York Times"], person=["New York Times"])
    assert label("Paris Hilton in Paris", given, stop=["paris hilton"]) == [("Paris", "city")]
    assert label("the New York Times in New York", given) == [("New York", "city")]


def test_rules_of_all_and_of_single_entries() -> None:
    given = [Entry("Paris", "city", not_before=("Hilton",)), Entry("Paul", "person", not_after=("St.",))]
    assert label("Paris Hilton, Paris, St. Paul and Paul", given) == [("Paris", "city"), ("Paul", "person")]
    assert label("Paris and Paul, Mr. Paris", given, not_before=["and"], not_after=["mr."]) == [("Paul", "person")]


def test_documents_keep_words_and_identifier_but_neither_gold_nor_other_fields() -> None:
    gold = Document.from_spans(
        "Tom saw Oslo", [(0, 3, "person")], id="d1", words=[(0, 3), (4, 7), (8, 12)], meta={"k": 1}
    )
    (labelled,) = Dictionary(entries(city=["Oslo"])).label([gold])
    assert labelled == Document.from_spans("Tom saw Oslo", [(8, 12, "city")], id="d1", words=gold.words)
    assert labelled.annotated is None
    assert labelled.meta == {}


@given(st.lists(TEXTS, max_size=4), ENTRIES)
def test_json_lines_are_those_of_the_format(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], given: Any
) -> None:
    documents = [Document(text, id=number if number % 2 else f"№{number}") for number, text in enumerate(texts)]
    documents += [Document("ab a", words=((0, 2), (3, 4)))]
    made, path = Dictionary(given), tmp_path_factory.mktemp("lines") / "out.jsonl"
    write(made.label(documents), path)
    lines = [line for batch in made.label_batches(documents) for line in batch.json_lines()]
    assert b"".join(lines) == path.read_bytes()


def test_json_lines_of_long_documents_are_those_of_the_format(tmp_path: Path) -> None:
    made, path = Dictionary(entries(city=["Oslo"])), tmp_path / "out.jsonl"
    documents = [Document("Oslo " + "a " * dictionary.FORMATTED + "Oslo"), Document("in\tOslo"), Document("a")]
    write(made.label(documents), path)
    assert b"".join(line for batch in made.label_batches(documents) for line in batch.json_lines()) == path.read_bytes()


def test_no_mention_lies_in_two_documents() -> None:
    made = Dictionary(entries(city=["new york", "york new", "york"]))
    found = list(made.label([Document("new"), Document("york"), Document(""), Document("new")]))
    assert [len(document.entities) for document in found] == [0, 1, 0, 0]


def test_dictionaries_are_loaded_from_several_files(tmp_path: Path) -> None:
    (tmp_path / "drug.txt").write_text("aspirin\nheparin\n")
    (tmp_path / "more.tsv").write_text("Oslo\tcity\nflu\tdisease\nLima\tcity\n")
    made = Dictionary.load([tmp_path / "drug.txt", tmp_path / "more.tsv"])
    assert made.types == ("drug", "city", "disease")
    assert made.size == 5
    (labelled,) = made.label([Document("Aspirin helps against flu in Lima.")])
    assert [entity.label for entity in labelled.entities] == ["drug", "disease", "city"]
    assert Dictionary.load(tmp_path / "drug.txt", type="medicine").types == ("medicine",)


def test_a_text_is_not_a_dictionary() -> None:
    with pytest.raises(OnomaError, match=r"more than 1,000 characters: 'a a .*one per line"):
        Dictionary([Entry("a " * 600, "x")])


def test_entries_that_are_never_found() -> None:
    assert label("a b", [Entry("  ", "x"), Entry("c", "x")]) == []
    assert list(Dictionary([Entry(" ", "x")]).label([Document("a"), Document("")])) == [Document("a"), Document("")]
    assert list(Dictionary([]).label([Document("a")])) == [Document("a")]
    assert json.loads(next(next(Dictionary([]).label_batches([Document("")])).json_lines())) == {
        "text": "",
        "entities": [],
    }
