"""`onoma evaluate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onoma import Document
from onoma.data import write
from tiny import documents


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for split, chosen in {"dev": documents()[::5], "test": documents()[::9]}.items():
        write(chosen, tmp_path / "tunes" / f"{split}.jsonl")
    return tmp_path / "tunes"


def test_a_report_for_people(command: Callable[..., Any], corpus: Path, tiny_model: Path) -> None:
    outcome = command("evaluate", corpus, "--model", tiny_model)
    assert outcome.code == 0
    assert f"tunes: {len(documents()[::9])} documents" in outcome.out
    assert "documents/s" in outcome.out
    micro = next(line for line in outcome.out.splitlines() if "micro" in line)
    assert "100.00" in micro


def test_a_report_for_programs(command: Callable[..., Any], corpus: Path, tiny_model: Path) -> None:
    outcome = command("evaluate", corpus, "--split", "dev", "--limit", 4, "--model", tiny_model, "--json")
    report = json.loads(outcome.out)
    assert report["documents"] == 4
    assert report["strict"]["micro"]["f1"] == 1.0
    assert report["documents_per_second"] > 0
    outcome = command("evaluate", corpus, "--model", tiny_model, "--threshold", "person=1", "--json")
    assert 0 < json.loads(outcome.out)["strict"]["micro"]["recall"] < 1.0


def test_predictions_are_scored_without_a_model(command: Callable[..., Any], corpus: Path, tmp_path: Path) -> None:
    write(documents()[::9], tmp_path / "found.jsonl")
    outcome = command("evaluate", corpus, "--predictions", tmp_path / "found.jsonl", "--json")
    assert json.loads(outcome.out)["strict"]["micro"]["f1"] == 1.0
    assert json.loads(outcome.out)["seconds"] is None
    assert command("evaluate", corpus, "--predictions", tmp_path / "found.jsonl").code == 0


def test_a_wrong_prediction_of_a_type_of_another_split_counts(command: Callable[..., Any], tmp_path: Path) -> None:
    write([Document.from_spans("Tom sings", [(0, 3, "person")])], tmp_path / "tunes" / "test.jsonl")
    write([Document.from_spans("Oslo", [(0, 4, "city")])], tmp_path / "tunes" / "train.jsonl")
    write([Document.from_spans("Tom sings", [(0, 3, "person"), (4, 9, "city")])], tmp_path / "found.jsonl")
    outcome = command(
        "evaluate", tmp_path / "tunes", "--split", "test", "--predictions", tmp_path / "found.jsonl", "--json"
    )
    report = json.loads(outcome.out)
    assert report["left_out"] == 0
    assert report["strict"]["micro"]["precision"] == 0.5


@pytest.mark.parametrize("arguments", [("/no/such/corpus",), (".", "--split", "validation")])
def test_a_missing_corpus_exits_with_2(
    command: Callable[..., Any], arguments: tuple[str, ...], corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    outcome = command("evaluate", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Fix" in outcome.err


def test_a_model_is_not_a_corpus(command: Callable[..., Any], tiny_model: Path) -> None:
    outcome = command("evaluate", tiny_model, "--model", tiny_model)
    assert outcome.code == 2
    assert f"{tiny_model}: the folder contains a model, not documents" in outcome.err


def test_predictions_that_the_gold_lacks_are_reviewed_and_merged(
    command: Callable[..., Any], corpus: Path, tmp_path: Path
) -> None:
    whole = documents()[::9]
    incomplete = [replace(one, entities=one.entities[1:]) for one in whole]
    write(incomplete, corpus / "test.jsonl")
    write(whole, tmp_path / "found.jsonl")
    rows = tmp_path / "missed.csv"
    outcome = command("evaluate", corpus, "--predictions", tmp_path / "found.jsonl", "--missed", rows)
    dropped = sum(bool(one.entities) for one in whole)
    assert f"{dropped} predictions that the gold lacks were written to {rows}" in " ".join(outcome.out.split())
    content = rows.read_text("utf-8")
    rows.write_text(content.replace("\n,", "\nboth,", 3), "utf-8")  # the first three
    test = corpus / "test.jsonl"
    merged = json.loads(command("convert", test, test, "--merge", rows, "--json").out)
    assert merged == {"documents": len(whole), "target": str(test), "added": 3, "removed": 0, "present": 0}
    outcome = command("evaluate", corpus, "--predictions", tmp_path / "found.jsonl", "--json")
    found = json.loads(outcome.out)["strict"]["micro"]
    assert found["predicted"] - found["correct"] == dropped - 3


def test_missed_predictions_of_a_model_are_counted_for_programs(
    command: Callable[..., Any], corpus: Path, tiny_model: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "missed.jsonl"
    outcome = command("evaluate", corpus, "--model", tiny_model, "--missed", rows, "--json")
    assert json.loads(outcome.out)["missed"] == 0
    assert rows.read_text() == ""


def test_the_name_of_the_review_file_is_checked_first(command: Callable[..., Any], corpus: Path) -> None:
    outcome = command("evaluate", corpus, "--missed", "missed.xlsx")
    assert (outcome.code, outcome.out) == (2, "")
    assert "name it .csv" in outcome.err


def test_examples_of_types(command: Callable[..., Any], corpus: Path, tiny_model: Path) -> None:
    renamed = [
        Document.from_spans(one.text, [(e.start, e.end, f"{e.label[0]}1") for e in one.entities]) for one in documents()
    ]
    write(renamed[1::9], corpus.parent / "named" / "train.jsonl")
    write(renamed[::9], corpus.parent / "named" / "test.jsonl")
    arguments = ("evaluate", corpus.parent / "named", "--model", tiny_model, "--json")
    by_name = json.loads(command(*arguments).out)["strict"]["micro"]["f1"]
    by_example = json.loads(command(*arguments, "--examples", f"{corpus.parent / 'named'}:train").out)
    assert by_example["strict"]["micro"]["f1"] > 0.9 > by_name


def test_examples_of_errors_confusion_and_intervals(command: Callable[..., Any], tmp_path: Path) -> None:
    gold = Document.from_spans("Tom flew to New York", [(0, 3, "person"), (12, 20, "city")])
    write([gold], tmp_path / "gold.jsonl")
    write([Document.from_spans(gold.text, [(0, 3, "city"), (16, 20, "city")])], tmp_path / "found.jsonl")
    arguments = ("evaluate", tmp_path / "gold.jsonl", "--predictions", tmp_path / "found.jsonl", "--errors", 2)
    printed = command(*arguments).out
    for words in ("confidence interval", "wrong type: person as city (1.00)", "[{Tom}] flew", "[New {York}]", "1 city"):
        assert words in printed
    report = json.loads(command(*arguments, "--json").out)
    assert [one["kind"] for one in report["errors"]] == ["type", "start"]
    assert report["errors"][1]["gold"]["text"] == "New York"
    assert report["error_kinds"]["kinds"]["type"] == 1
    assert {"gold": "person", "predicted": "city", "count": 1} in report["confusion"]["cells"]
    assert report["intervals"] is None  # one document cannot be resampled


def test_scores_by_what_training_has(command: Callable[..., Any], corpus: Path, tmp_path: Path) -> None:
    write(documents()[::9], tmp_path / "found.jsonl")
    arguments = ("evaluate", corpus, "--predictions", tmp_path / "found.jsonl", "--training", f"{corpus}:dev")
    assert json.loads(command(*arguments, "--json").out)["slices"]["seen"]["seen"]["gold"] > 0


@pytest.mark.parametrize(("documents", "problem"), [([], "no documents"), ([Document("It rains")], "no gold mentions")])
def test_a_model_needs_gold_mentions(
    command: Callable[..., Any], tmp_path: Path, tiny_model: Path, documents: list[Document], problem: str
) -> None:
    write(documents, tmp_path / "gold.jsonl")
    for outcome in (
        command("evaluate", tmp_path / "gold.jsonl", "--model", tiny_model),
        command("report", tiny_model, tmp_path / "gold.jsonl", "-o", tmp_path / "report.html"),
    ):
        assert outcome.code == 2
        assert f"corpus 'gold' has {problem}. Fix: give documents with gold mentions" in outcome.err
    assert not (tmp_path / "report.html").exists()


def test_without_mentions_there_are_no_tables(command: Callable[..., Any], tmp_path: Path) -> None:
    write([Document("It rains")], tmp_path / "gold.jsonl")
    outcome = command("evaluate", tmp_path / "gold.jsonl", "--predictions", tmp_path / "gold.jsonl")
    assert outcome.code == 0
    assert "neither the gold nor the predictions have mentions" in outcome.out
    assert "F1" not in outcome.out
