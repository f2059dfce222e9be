"""Coverage and scores of labels made with a dictionary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onoma import Corpus, Document
from onoma.data import read
from onoma.data.dictionary import Dictionary, Entry
from onoma.evaluation import evaluate
from onoma.evaluation.weak_labels import Coverage, weak_label

DICTIONARY = Dictionary([Entry("oslo", "city"), Entry("rome", "city"), Entry("tom", "person"), Entry("ibis", "bird")])
GOLD = [
    Document.from_spans("Tom saw Oslo and Bergen.", [(0, 3, "person"), (8, 12, "city"), (17, 23, "city")]),
    Document.from_spans("Oslo, the dog of Tom", [(0, 4, "pet"), (17, 20, "person")]),
    Document("An ibis in Oslo"),
    Document.from_spans("Tom in Oslo", [(7, 11, "city")], annotated=["city"]),
    Document("Oslo Oslo Tom", annotated=frozenset()),
]


def labelled(documents: list[Document], target: Path) -> Coverage:
    return weak_label(DICTIONARY, iter(documents), target)


def test_coverage_is_counted(tmp_path: Path) -> None:
    done: list[int] = []
    coverage = weak_label(DICTIONARY, [*GOLD, Document("Ånd")], tmp_path / "out.jsonl", on_progress=done.append)
    assert coverage.documents == 6
    assert coverage.documents_with_a_mention == 5
    assert coverage.mentions == {"city": 6, "person": 4, "bird": 1}
    assert (coverage.entries, coverage.entries_used) == (4, 3)
    assert done[-1] == coverage.bytes == sum(len(one.text) for one in GOLD) + len("Ånd".encode())


def test_scores_are_those_of_the_evaluation(tmp_path: Path) -> None:
    coverage = labelled(GOLD, tmp_path / "out.jsonl")
    predicted = [document.entities for document in read(tmp_path / "out.jsonl")]
    gold = [replace(one, entities=tuple(entity for entity in one.entities if entity.label != "pet")) for one in GOLD]
    expected = evaluate(Corpus("gold", gold), predicted).strict
    assert coverage.scores is not None
    assert coverage.scores.micro == expected.micro
    assert coverage.scores.types == expected.types
    assert coverage.to_dict()["scores"]["types"]["city"]["recall"] == pytest.approx(2 / 3)
    assert coverage.to_dict()["gold_types_without_entries"] == ["pet"]


def test_a_corpus_without_gold_has_no_scores(tmp_path: Path) -> None:
    assert labelled([Document("Tom", annotated=frozenset())], tmp_path / "a.jsonl").scores is None
    assert labelled([], tmp_path / "b.jsonl").to_dict()["scores"] is None
    assert (tmp_path / "b.jsonl").read_text() == ""


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.json", "out.conll", "out.spacy", "folder"])
def test_every_format_gets_the_same_mentions_and_no_gold(tmp_path: Path, name: str) -> None:
    labelled(GOLD, tmp_path / name)
    found = [[entity.key for entity in one.entities] for one in read(tmp_path / name)]
    assert found[1] == [(0, 4, "city"), (17, 20, "person")]
    assert found[0] == [(0, 3, "person"), (8, 12, "city")]


def test_nothing_is_left_behind_by_a_failure(tmp_path: Path) -> None:
    def damaged() -> list[Document]:
        raise OSError("the disk is gone")
        yield

    with pytest.raises(Exception, match="the disk is gone"):
        weak_label(DICTIONARY, damaged(), tmp_path / "out.jsonl")
    assert list(tmp_path.iterdir()) == []
