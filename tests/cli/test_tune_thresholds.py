"""`onoma tune-thresholds`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onoma.data import write
from onoma.models.config import ModelConfig, load_config
from tiny import documents


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for split, chosen in {"dev": documents()[::5], "test": documents()[::9]}.items():
        write(chosen, tmp_path / "tunes" / f"{split}.jsonl")
    return tmp_path / "tunes"


@pytest.fixture
def own_model(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy that a test may change, with a threshold that no score reaches."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "threshold": 1.0}))
    return folder


def threshold_of(folder: Path) -> float:
    config = load_config(folder)
    assert isinstance(config, ModelConfig)
    return config.threshold


def test_nothing_is_written_without_an_option(command: Callable[..., Any], corpus: Path, own_model: Path) -> None:
    outcome = command("tune-thresholds", own_model, corpus)
    assert outcome.code == 0
    assert "--write" in outcome.out
    micro = next(line for line in outcome.out.splitlines() if "micro" in line)
    assert [cell.strip() for cell in micro.split("│")[2:6]] == ["", "0.00", "", "100.00"]
    assert threshold_of(own_model) == 1.0


def test_tuned_thresholds_are_written(
    command: Callable[..., Any], corpus: Path, own_model: Path, tmp_path: Path
) -> None:
    outcome = command("tune-thresholds", own_model, corpus, "--per-type", "--output", tmp_path / "tuned", "--json")
    assert json.loads(outcome.out)["f1_after"] == 1.0
    assert threshold_of(own_model) == 1.0
    assert threshold_of(tmp_path / "tuned") == json.loads(outcome.out)["threshold"] < 1.0
    report = json.loads(command("evaluate", corpus, "--model", tmp_path / "tuned", "--json").out)
    assert report["strict"]["micro"]["f1"] == 1.0
    assert command("tune-thresholds", own_model, corpus, "--write").code == 0
    assert threshold_of(own_model) < 1.0


def test_the_embedded_models_are_tuned_one_at_a_time(command: Callable[..., Any], corpus: Path) -> None:
    from onoma.models.hub import EMBEDDED

    for name in ("embedded", EMBEDDED):
        outcome = command("tune-thresholds", name, corpus)
        assert outcome.code == 2
        assert "holds several models" in outcome.err
    outcome = command("tune-thresholds", "embedded/en", corpus, "--write")
    assert outcome.code == 2
    assert "Fix: use --output FOLDER" in outcome.err
