"""What `describe_model` says about model folders, without loading the models."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rich.console import Console

from onoma.errors import OnomaError
from onoma.models.config import ModelConfig, Route, RoutedConfig, is_model_folder, load_config
from onoma.models.info import describe_model, render_models


def test_a_single_model(tiny_model: Path) -> None:
    (model,) = describe_model(tiny_model)
    config = load_config(tiny_model)
    assert isinstance(config, ModelConfig)
    assert (model.system, model.encoder, model.language) == ("binder", "tiny", None)
    assert model.backends == ("torch",)
    assert (model.threshold, model.max_tokens) == (config.threshold, config.max_tokens)
    assert model.max_width == config.options["max_width"]
    assert model.types == tuple(config.types)
    size = sum(path.stat().st_size for path in tiny_model.rglob("*.*"))
    assert model.megabytes == pytest.approx(size / 1e6, abs=0.1)


def test_the_folder_of_a_training_run_stands_for_its_model(tiny_model: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, tmp_path / "run" / "model")
    assert is_model_folder(tmp_path / "run" / "model")
    assert not is_model_folder(tmp_path / "run")
    (model,) = describe_model(tmp_path / "run")
    assert model.folder == str(tmp_path / "run" / "model")


def test_several_models_in_one_folder(tiny_model: Path, tmp_path: Path) -> None:
    for name in ("zh", "en"):
        shutil.copytree(tiny_model, tmp_path / name)
    RoutedConfig((Route("zh", ("Han",)), Route("en"))).save(tmp_path)
    models = describe_model(tmp_path)
    assert [(Path(one.folder).name, one.scripts) for one in models] == [("zh", ("Han",)), ("en", ())]
    console = Console(record=True, width=100)
    console.print(render_models(models))
    (line,) = (line for line in console.export_text().splitlines() if "texts" in line)
    assert [cell.strip() for cell in line.split("│")[2:4]] == ["Han", "all others"]


def test_the_embedded_models() -> None:
    models = describe_model()
    assert {one.language for one in models} == {"en", "zh"}
    assert all(one.types == () and one.backends == ("onnx",) for one in models)


def test_a_long_list_of_types_is_shortened(tiny_model: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_model, tmp_path / "copy")
    ModelConfig("binder", types={f"t{number}": "" for number in range(2000)}).save(copy)
    console = Console(record=True, width=100)
    console.print(render_models(describe_model(copy)))
    assert "t0, t1, t2, t3, t4, t5, t6, t7 and 1,992 more" in console.export_text()


def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match="no model folder"):
        describe_model(tmp_path / "none")
