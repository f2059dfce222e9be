"""`onoma info` of models: what their folders say, without loading them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from onoma.config import ModelConfig, is_model
from onoma.errors import OnomaError
from onoma.model_info import describe_model


def test_a_single_model(command: Callable, tiny_model: Path) -> None:
    (model,) = json.loads(command("info", tiny_model, "--json").out)["models"]
    config = ModelConfig.load(tiny_model)
    assert model["system"] == "binder"
    assert model["backends"] == ["torch"]
    assert model["threshold"] == config.threshold
    assert model["types"] == list(config.types)
    assert model["megabytes"] == pytest.approx(sum(p.stat().st_size for p in tiny_model.rglob("*.*")) / 1e6, abs=0.1)
    shown = command("info", tiny_model)
    assert shown.code == 0
    assert "default threshold" in shown.out


def test_a_training_run_is_its_model(tiny_model: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, tmp_path / "run" / "model")
    assert is_model(tmp_path / "run" / "model")
    assert not is_model(tmp_path / "run")
    (model,) = describe_model(tmp_path / "run")
    assert model.folder == str(tmp_path / "run" / "model")


def test_several_models_in_one_folder(command: Callable, tiny_model: Path, tmp_path: Path) -> None:
    for name in ("zh", "en"):
        shutil.copytree(tiny_model, tmp_path / name)
    routes = [{"folder": "zh", "scripts": ["Han"]}, {"folder": "en", "scripts": []}]
    ModelConfig("routed", options={"routes": routes}).save(tmp_path)
    assert [(Path(one.folder).name, one.scripts) for one in describe_model(tmp_path)] == [("zh", ("Han",)), ("en", ())]
    shown = command("info", tmp_path).out
    assert "Han" in shown
    assert "all others" in shown


def test_the_embedded_model_needs_no_name(command: Callable) -> None:
    models = json.loads(command("info", "--json").out)["models"]
    assert {one["language"] for one in models} == {"en", "zh"}
    assert all(one["types"] == [] for one in models)


def test_another_config_is_no_model(command: Callable, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    outcome = command("info", tmp_path)
    assert outcome.code == 2
    assert "is no Onoma model" in outcome.err
    with pytest.raises(OnomaError, match="no model folder"):
        describe_model(tmp_path / "none")
