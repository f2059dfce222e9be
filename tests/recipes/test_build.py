"""The script that rebuilds the embedded model: what it does after training."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import onoma
from onoma.config import ModelConfig
from onoma.training.recipe import load_recipe

FOLDER = Path(__file__).parents[2] / "recipes" / "embedded"


@pytest.fixture
def build() -> ModuleType:
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
        build.put_together({"en": tiny_model, "zh": tiny_model}, output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["default"]
    assert (output / "README.md").read_text(encoding="utf-8") == "the card"
    assert not list(output.glob("*/README.md"))
    assert not list(output.glob("*/*.safetensors"))
    for language in ("en", "zh"):
        config = ModelConfig.load(output / language)
        assert config.types == {}
        assert config.options["language"] == language
    ner = onoma.load(output)
    (found,) = ner.extract("Tom flew to Paris .", ["city"])
    assert found.text == "Paris"


@pytest.mark.parametrize("language", ["english", "chinese"])
def test_the_recipes_train_on_no_benchmark(language: str) -> None:
    recipe = load_recipe(FOLDER / f"{language}.yaml")
    used = {Path(one.path).name for one in recipe.data.corpora}
    tested = {"crossner", "mit_movie", "mit_restaurant", "resume", "cluener", "ecommerce", "msra"}
    assert not any(name.startswith(tuple(tested)) for name in used)
    own = [one for one in recipe.data.corpora if "onoma_written" in one.path]
    assert own
    assert all(Path(one.path).is_dir() for one in own)
