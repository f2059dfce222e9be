from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import onoma
from onoma import OnomaError
from onoma.data import Inventory
from onoma.data.translations import label_translations
from onoma.labels.translation import TRANSLATIONS_FILE
from onoma.models.config import ModelConfig, Route, RoutedConfig, load_config
from onoma.models.export import export, write_translations
from onoma.models.hub import EMBEDDED


@pytest.mark.parametrize(("language", "asked"), [("zh", "person"), ("en", "人名")])
def test_written_translations_are_those_of_the_inventory_and_of_common_labels(
    tmp_path: Path, language: str, asked: str
) -> None:
    config = ModelConfig("binder", threshold=0.7, options={"vector_size": 32})
    config.save(tmp_path)
    write_translations(tmp_path, language, config)
    assert load_config(tmp_path) == replace(config, language=language)
    own = Inventory.load().types["person"].in_language(language)  # type: ignore[arg-type]
    names = json.loads((tmp_path / TRANSLATIONS_FILE).read_text("utf-8"))
    assert names[asked] == [own.name, own.description]
    assert names == label_translations(language)  # type: ignore[arg-type]


def test_an_exported_model_keeps_configuration_translations_and_card(tiny_model: Path, tmp_path: Path) -> None:
    source = shutil.copytree(tiny_model, tmp_path / "source")
    (source / "README.md").write_text("# Tiny\n", "utf-8")
    (source / TRANSLATIONS_FILE).write_text('{"人名": ["person", "a human being with a name"]}', "utf-8")
    config = load_config(source)
    assert isinstance(config, ModelConfig)
    replace(config, language="en", catch_all=("misc",)).save(source)
    target = export(source, tmp_path / "onnx")
    assert load_config(target) == load_config(source)
    assert (target / "README.md").read_text("utf-8").startswith("# Tiny\n\n## Export\nONNX with weights in float32")
    assert not (target / "model.safetensors").exists()
    found = onoma.load(target).extract("Tom flew to Paris .", ["人名"])
    assert [(one.text, one.label) for one in found] == [("Tom", "人名")]


def test_exported_models_and_folders_with_several_models_cannot_be_exported(tiny_model: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, tmp_path / "routed" / "en")
    RoutedConfig((Route("en"),)).save(tmp_path / "routed")
    with pytest.raises(OnomaError, match=r"holds several models\. Fix: export one of them"):
        export(tmp_path / "routed", tmp_path / "onnx")
    with pytest.raises(OnomaError, match=r"has no model\.safetensors: only models saved by PyTorch"):
        export(EMBEDDED / "en", tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()
