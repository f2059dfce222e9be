"""Files of candidates, and merging accepted ones."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Document, Entity, OnomaError
from onoma.data.corpora import CorpusInfo
from onoma.data.review import COLUMNS, Candidate, ReviewMerger, write_candidates

TOM = Document.from_spans("Tom flew to New York.", [(0, 3, "person"), (12, 20, "city")], meta={"source": "news"})
ANN = Document.from_spans("Ann sings.", [])


def candidate(number: int, document: Document, start: int, end: int, label: str, answer: str = "") -> Candidate:
    made = Candidate.of(number, document, Entity(start, end, document.text[start:end], label, 0.75))
    return Candidate(**{name: getattr(made, name) for name in COLUMNS} | {"accept": answer})


def merge(path: Path, *rows: Candidate) -> tuple[list[Document], ReviewMerger]:
    write_candidates(rows, path)
    merger = ReviewMerger(path)
    return list(merger.apply([TOM, ANN])), merger


@pytest.fixture(params=["rows.csv", "rows.jsonl", "rows.csv.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_only_accepted_rows_are_merged(path: Path) -> None:
    rows = [candidate(2, ANN, 0, 3, "person", "Yes "), candidate(1, TOM, 4, 8, "event", "no")]
    documents, merger = merge(path, *rows, candidate(2, ANN, 4, 9, "event"))
    assert documents == [TOM, Document.from_spans("Ann sings.", [(0, 3, "person")])]
    assert documents[0].meta == TOM.meta
    assert merger.to_dict() == {"added": 1, "removed": 0, "present": 0}


def test_an_overlap_with_gold_needs_a_decision(path: Path) -> None:
    with pytest.raises(
        OnomaError, match=r"line \d.*'York' \(city\) overlaps the mention 'New York' \(city\).*'replace'"
    ):
        merge(path, candidate(1, TOM, 16, 20, "city", "yes"))
    replaced, merger = merge(path, candidate(1, TOM, 16, 20, "city", "replace"))
    assert [entity.text for entity in replaced[0].entities] == ["Tom", "York"]
    assert (merger.added, merger.removed) == (1, 1)
    both, merger = merge(path, candidate(1, TOM, 16, 20, "city", "both"))
    assert [entity.text for entity in both[0].entities] == ["Tom", "New York", "York"]
    assert (merger.added, merger.removed) == (1, 0)


def test_accepted_rows_that_overlap_each_other_need_a_decision_too(path: Path) -> None:
    with pytest.raises(OnomaError, match="overlaps the mention 'Ann'"):
        merge(path, candidate(2, ANN, 0, 3, "person", "yes"), candidate(2, ANN, 0, 9, "event", "yes"))


def test_merging_twice_changes_nothing(path: Path) -> None:
    documents, _ = merge(path, candidate(2, ANN, 0, 3, "person", "yes"))
    merger = ReviewMerger(path)
    assert list(merger.apply(documents)) == documents
    assert merger.to_dict() == {"added": 0, "removed": 0, "present": 1}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (candidate(1, ANN, 0, 3, "person", "yes"), "document 1 has 'Tom' there, not 'Ann'"),
        (candidate(3, ANN, 0, 3, "person", "yes"), "there is no document 3, the corpus has 2"),
        (candidate(0, ANN, 0, 3, "person", "yes"), "there is no document 0"),
        (candidate(2, ANN, 0, 3, "person", "maybe"), "'accept' cannot be 'maybe'.*yes, no, replace or both"),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_their_line(path: Path, row: Candidate, message: str) -> None:
    with pytest.raises(OnomaError, match=rf"line \d: .*{message}"):
        merge(path, row)


def test_a_label_that_is_not_annotated_in_the_document_is_refused(tmp_path: Path) -> None:
    document = Document("Ann sings.", annotated=frozenset({"city"}))
    write_candidates([candidate(1, document, 0, 3, "person", "yes")], tmp_path / "rows.csv")
    with pytest.raises(OnomaError, match="'person' is not annotated in document 1"):
        list(ReviewMerger(tmp_path / "rows.csv").apply([document]))


def test_natural_names_become_labels_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    names = {"PER": {"en": "person", "zh": "人名"}, "LOC": "place", "GPE": "place"}
    for label, expected in {"person": "PER", "人名": "PER", "place": "place", "LOC": "LOC"}.items():
        write_candidates([candidate(1, ANN, 0, 3, label, "yes")], path)
        merger = ReviewMerger(path, CorpusInfo("news", types=("PER", "LOC"), type_names=names))
        assert [entity.label for entity in next(merger.apply([ANN])).entities] == [expected]


def test_a_table_for_annotators(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    long = Document.from_spans(f"{'x ' * 50}in New\nYork{' y' * 50}", [(103, 106, "w")])
    write_candidates([candidate(1, long, 103, 111, "city")], path)
    with open(path, encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == ["accept", "score", "label", "text", "context", "overlaps", "document", "start", "end"]
    assert row["accept"] == ""
    assert row["overlaps"] == "New (w)"
    assert row["context"].startswith("… x x")
    assert "in [[New York]] y" in row["context"]
    assert row["text"] == "New\nYork"


def test_a_table_saved_by_a_spreadsheet_program_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbfaccept;label;text;document;start;end\r\nTRUE;person;Ann;2;0;3\r\n")
    assert next(iter(list(ReviewMerger(path).apply([TOM, ANN]))[1].entities)).text == "Ann"


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
    st.text("=+-@,;\"' \n\tab", min_size=1),
)
def test_any_text_and_label_survive_a_table(tmp_path_factory: pytest.TempPathFactory, text: str, label: str) -> None:
    document, path = Document(text), tmp_path_factory.mktemp("table") / "rows.csv"
    write_candidates([candidate(1, document, 0, len(text), label, "yes")], path)
    with open(path, encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    (merged,) = ReviewMerger(path).apply([document])
    assert [entity.key for entity in merged.entities] == [(0, len(text), label)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "the column accept, label, .* is missing"),
        ("a.csv", "accept,label\nyes,x\n", "the column text, document, start, end is missing"),
        ("a.csv", "accept,label,text,document,start,end\nyes,x\n", "line 2: the row has more or fewer cells"),
        (
            "a.csv",
            "accept,label,text,document,start,end\nyes,x,Ann,2,0,3,4\n",
            "line 2: the row has more or fewer cells",
        ),
        ("a.csv", "accept,label,text,document,start,end\nyes,x,Ann,two,0,3\n", "line 2: the row is not a mention"),
        ("a.csv", "accept,label,text,document,start,end\nyes,,Ann,2,0,3\n", "line 2: the row is not a mention"),
        ("a.csv", "accept,label,text,document,start,end\nyes,x,Ann,2,3,0\n", "line 2: the row is not a mention"),
        ("a.jsonl", '{"accept": "yes"}\n', "line 1: the column label, text, document, start, end is missing"),
        ("a.jsonl", "[1]\n", "JSON"),
        ("a.txt", "", "name it .csv"),
    ],
)
def test_rubbish_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(OnomaError, match=message):
        ReviewMerger(tmp_path / name)


def test_null_means_not_reviewed(tmp_path: Path) -> None:
    row = {"accept": None, "label": "x", "text": "Ann", "document": 2, "start": 0, "end": 3}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    assert list(ReviewMerger(tmp_path / "a.jsonl").apply([TOM, ANN])) == [TOM, ANN]
