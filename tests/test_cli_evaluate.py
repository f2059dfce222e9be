from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from onoma import Document
from onoma.config import ModelConfig
from onoma.data import write
from tiny import documents


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for split, chosen in {"dev": documents()[::5], "test": documents()[::9]}.items():
        write(chosen, tmp_path / "tunes" / f"{split}.jsonl")
    return tmp_path / "tunes"


@pytest.fixture
def own_model(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy that a test may change, with a threshold that nothing reaches."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "threshold": 1.0}))
    return folder


def test_a_report_for_people(command: Callable, corpus: Path, tiny_model: Path) -> None:
    outcome = command("evaluate", corpus, "--model", tiny_model)
    assert outcome.code == 0
    assert f"tunes: {len(documents()[::9])} documents" in outcome.out
    assert "documents/s" in outcome.out
    micro = next(line for line in outcome.out.splitlines() if "micro" in line)
    assert "100.00" in micro


def test_a_report_for_programs(command: Callable, corpus: Path, tiny_model: Path) -> None:
    outcome = command("evaluate", corpus, "--split", "dev", "--limit", 4, "--model", tiny_model, "--json")
    report = json.loads(outcome.out)
    assert report["documents"] == 4
    assert report["strict"]["micro"]["f1"] == 1.0
    assert report["documents_per_second"] > 0
    outcome = command("evaluate", corpus, "--model", tiny_model, "--threshold", "person=1", "--json")
    assert 0 < json.loads(outcome.out)["strict"]["micro"]["recall"] < 1.0


def test_predictions_are_scored_without_a_model(command: Callable, corpus: Path, tmp_path: Path) -> None:
    write(documents()[::9], tmp_path / "found.jsonl")
    outcome = command("evaluate", corpus, "--predictions", tmp_path / "found.jsonl", "--json")
    assert json.loads(outcome.out)["strict"]["micro"]["f1"] == 1.0
    assert json.loads(outcome.out)["seconds"] is None
    assert command("evaluate", corpus, "--predictions", tmp_path / "found.jsonl").code == 0


def test_a_wrong_prediction_of_a_type_of_another_split_counts(command: Callable, tmp_path: Path) -> None:
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
    command: Callable, arguments: tuple[str, ...], corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    outcome = command("evaluate", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Fix" in outcome.err


def test_thresholds_are_tuned_and_only_written_when_told(command: Callable, corpus: Path, own_model: Path) -> None:
    outcome = command("tune-thresholds", own_model, corpus)
    assert outcome.code == 0
    assert "--write" in outcome.out
    micro = next(line for line in outcome.out.splitlines() if "micro" in line)
    assert [cell.strip() for cell in micro.split("│")[2:6]] == ["", "0.00", "", "100.00"]
    assert ModelConfig.load(own_model).threshold == 1.0


def test_tuned_thresholds_are_written(command: Callable, corpus: Path, own_model: Path, tmp_path: Path) -> None:
    outcome = command("tune-thresholds", own_model, corpus, "--per-type", "--output", tmp_path / "tuned", "--json")
    assert json.loads(outcome.out)["f1_after"] == 1.0
    assert ModelConfig.load(own_model).threshold == 1.0
    assert ModelConfig.load(tmp_path / "tuned").threshold == json.loads(outcome.out)["threshold"] < 1.0
    report = json.loads(command("evaluate", corpus, "--model", tmp_path / "tuned", "--json").out)
    assert report["strict"]["micro"]["f1"] == 1.0
    assert command("tune-thresholds", own_model, corpus, "--write").code == 0
    assert ModelConfig.load(own_model).threshold < 1.0
