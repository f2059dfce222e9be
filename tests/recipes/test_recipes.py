"""All recipes that come with Onoma can be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from onoma.training.recipe import load_recipe

ROOT = Path(__file__).parents[2]


def is_recipe(path: Path) -> bool:
    """Whether a YAML file is a recipe; examples/ also has files of types."""
    content = yaml.safe_load(path.read_text("utf-8"))
    return isinstance(content, dict) and "system" in content


FILES = sorted([*ROOT.glob("recipes/**/*.yaml"), *filter(is_recipe, ROOT.glob("examples/**/*.yaml"))])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_recipe_can_be_loaded(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.data.corpora
    for name in recipe.stage_names():
        assert recipe.stage_training(name).eval_steps > 0
    assert load_recipe(recipe.model_dump()) == recipe


def test_all_folders_are_covered() -> None:
    folders = {path.parent.relative_to(ROOT).as_posix() for path in FILES}
    assert {"examples", "recipes/binder", "recipes/suner", "recipes/embedded"} <= folders
