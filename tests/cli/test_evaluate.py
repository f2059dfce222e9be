"""`onoma evaluate`."""

from __future__ import annotations

import json
from collections.abc import Callable
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
