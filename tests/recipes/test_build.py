"""The script that rebuilds the embedded model: what it does after training."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

import onoma
from onoma.models.config import CATCH_ALL_LABELS, ModelConfig, Route, RoutedConfig, load_config
from onoma.training.recipe import load_recipe

FOLDER = Path(__file__).parents[2] / "recipes" / "embedded"


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)  # as for a script that is run
    spec = importlib.util.spec_from_file_location("build", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_models_become_one_folder(build: ModuleType, tiny_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "default"
    output.mkdir()
    (output / "README.md").write_text("the card", encoding="utf-8")
    for _ in range(2):  # the second time in place of the first
        build.write_models({"en": tiny_model, "zh": tiny_model}, output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["default"]
    assert (output / "README.md").read_text(encoding="utf-8") == "the card"
    assert not list(output.glob("*/README.md"))
    assert not list(output.glob("*/*.safetensors"))
    routed = load_config(output)
    assert isinstance(routed, RoutedConfig)
    assert routed.routes == (Route("zh", ("Han",)), Route("en"))
    for language, foreign in (("en", "人名"), ("zh", "person")):
        config = load_config(output / language)
        assert isinstance(config, ModelConfig)
        assert (config.types, config.catch_all, config.language) == ({}, CATCH_ALL_LABELS, language)
        assert foreign in json.loads((output / language / "labels.json").read_text("utf-8"))
    ner = onoma.load(output)
    (found,) = ner.extract("Tom flew to Paris .", ["city"])
    assert found.text == "Paris"


def test_the_embedded_models_have_the_configuration_that_the_script_writes(build: ModuleType) -> None:
    default = Path(onoma.__file__).parent / "models" / "default"
    routed = load_config(default)
    assert isinstance(routed, RoutedConfig)
    assert routed == RoutedConfig(build.ROUTES)
    for language, name in build.NAMES.items():
        config = load_config(default / language)
        assert isinstance(config, ModelConfig)
        assert (config.encoder, config.types, config.catch_all) == (name, {}, CATCH_ALL_LABELS)


@pytest.mark.parametrize("language", ["english", "chinese"])
def test_the_recipes_train_on_no_benchmark(language: str) -> None:
    recipe = load_recipe(FOLDER / f"{language}.yaml")
    used = {Path(one.path).name for one in recipe.data.corpora}
    tested = {"crossner", "mit_movie", "mit_restaurant", "resume", "cluener", "ecommerce", "msra"}
    assert not any(name.startswith(tuple(tested)) for name in used)
    own = [one for one in recipe.data.corpora if "onoma_written" in one.path]
    assert own
    assert all(Path(one.path).is_dir() for one in own)


def test_changes_of_the_script_are_keys_of_recipes(build: ModuleType) -> None:
    recipe = load_recipe(FOLDER / "english.yaml", [build.BASE_LEARNING_RATE])
    assert recipe.training.learning_rate == 5e-5
