"""`onoma info`, of corpora and of models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onoma import Document
from onoma.data import write
from onoma.models.config import ModelConfig, Route, RoutedConfig, load_config

ONOMA = [sys.executable, "-m", "onoma"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write([Document.from_spans("Ann lives in Åre.", [(0, 3, "人名"), (13, 16, "ville")])], tmp_path / "train.jsonl")
    return tmp_path / "train.jsonl"


def test_a_corpus_for_people_and_for_programs(command: Callable[..., Any], source: Path) -> None:
    shown = command("info", source)
    assert (shown.code, shown.err) == (0, "")
    assert "人名" in shown.out
    described = command("info", source, "--json")
    assert "人名" in described.out
    json.loads(described.out)


def test_a_wrong_meta_file_exits_with_2(command: Callable[..., Any], source: Path) -> None:
    (source.parent / "meta.json").write_text('{"name": 5}')
    outcome = command("info", source.parent)
    assert outcome.code == 2
    assert "meta.json: 'name' must be a string, got 5" in outcome.err


def test_a_spinner_runs_on_a_terminal_only(source: Path) -> None:
    reading, terminal = os.openpty()
    subprocess.run([*ONOMA, "info", str(source)], stdout=subprocess.PIPE, stderr=terminal, check=True)
    assert b"reading and counting" in os.read(reading, 10_000)
    os.close(reading)
    os.close(terminal)
    done = subprocess.run([*ONOMA, "info", str(source)], capture_output=True, check=True)
    assert done.stderr == b""


def test_a_model_for_people_and_for_programs(command: Callable[..., Any], tiny_model: Path) -> None:
    (model,) = json.loads(command("info", tiny_model, "--json").out)["models"]
    config = load_config(tiny_model)
    assert isinstance(config, ModelConfig)
    assert (model["system"], model["backends"]) == ("binder", ["torch"])
    assert (model["threshold"], model["types"]) == (config.threshold, list(config.types))
    shown = command("info", tiny_model)
    assert shown.code == 0
    assert "default threshold" in shown.out


def test_the_folder_of_a_training_run_stands_for_its_model(
    command: Callable[..., Any], tiny_model: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_model, tmp_path / "run" / "model")
    (model,) = json.loads(command("info", tmp_path / "run", "--json").out)["models"]
    assert model["folder"] == str(tmp_path / "run" / "model")


def test_the_embedded_model_by_name(command: Callable[..., Any]) -> None:
    models = json.loads(command("info", "embedded", "--json").out)["models"]
    assert [one["language"] for one in models] == ["zh", "en"]
    assert json.loads(command("info", "--json").out)["models"] == models
    assert json.loads(command("info", "embedded/en", "--json").out)["models"][0]["language"] == "en"


def test_several_models_in_one_folder(command: Callable[..., Any], tiny_model: Path, tmp_path: Path) -> None:
    for name in ("zh", "en"):
        shutil.copytree(tiny_model, tmp_path / name)
    RoutedConfig((Route("zh", ("Han",)), Route("en"))).save(tmp_path)
    shown = command("info", tmp_path).out
    assert "Han" in shown
    assert "all others" in shown


def test_without_a_name_the_embedded_model_is_described(command: Callable[..., Any]) -> None:
    models = json.loads(command("info", "--json").out)["models"]
    assert {one["language"] for one in models} == {"en", "zh"}
    assert all(one["types"] == [] for one in models)


def test_an_encoder_is_not_a_model_of_onoma(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    outcome = command("info", tmp_path)
    assert outcome.code == 2
    assert "does not describe an Onoma model" in outcome.err


@pytest.mark.parametrize("version", [1, 99])
def test_a_model_of_another_format_exits_with_2(command: Callable[..., Any], tmp_path: Path, version: int) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"format": version, "system": "binder"}))
    outcome = command("info", tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {tmp_path / 'config.json'} has format {version}")
    assert len(outcome.err.splitlines()) == 1
