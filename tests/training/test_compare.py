"""Comparing recipes: runs, resuming, significance, and what cannot be compared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from onoma import OnomaError
from onoma.data import load_corpus, write
from onoma.training.compare import CompareResults, compare, load_recipes
from onoma.training.recipe import Recipe
from tiny_training import SHORT, changed_recipe

torch.set_num_threads(1)
SEEDS = (0, 1)


def recipes_of(values: dict[str, Any]) -> dict[str, Recipe]:
    """A recipe that learns something, and one that learns nothing."""
    trained = {"max_steps": 40, "eval_steps": 20, "checkpoints": True}
    return {
        "learns": changed_recipe(values, training=trained, data={"windows": "across"}),
        "nothing": changed_recipe(values, training=SHORT | {"learning_rate": 1e-12}),
    }


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs") / "compared"


@pytest.fixture(scope="module")
def results(recipe_values: dict[str, Any], data_folder: Path, output: Path) -> CompareResults:
    return compare(recipes_of(recipe_values), seeds=SEEDS, output=output, data=data_folder)


def test_scores_are_the_means_of_the_runs(results: CompareResults, output: Path) -> None:
    learns, nothing = results.rows
    assert (learns.recipe, nothing.recipe) == ("learns", "nothing")
    assert results.compared_on == "test"
    assert learns.test is not None
    runs = [json.loads((output / "learns" / f"seed-{seed}" / "metrics.json").read_text("utf-8")) for seed in SEEDS]
    values = [run["test"]["small"]["f1"] for run in runs]
    assert learns.test.values == tuple(values)
    assert learns.test.f1 == pytest.approx(np.mean(values))
    assert learns.test.spread == pytest.approx(np.std(values, ddof=1))


def test_the_difference_is_that_of_the_means_and_is_tested(results: CompareResults) -> None:
    learns, nothing = results.rows
    assert learns.test is not None
    assert nothing.test is not None
    assert results.baseline == "learns"
    assert learns.difference is None
    assert nothing.difference is not None
    # counts of single sentences give the scores of training, though sentences were joined there
    assert 100 * nothing.difference.f1.value == pytest.approx(nothing.test.f1 - learns.test.f1, abs=1e-6)
    assert nothing.difference.p_value < 0.01


def test_checkpoints_are_removed_and_models_stay(results: CompareResults, output: Path) -> None:
    assert len(list(output.glob("*/seed-*/model/model.safetensors"))) == 4
    assert not list(output.glob("*/seed-*/checkpoints"))


def test_finished_runs_are_not_repeated(
    results: CompareResults, recipe_values: dict[str, Any], data_folder: Path, output: Path
) -> None:
    files = [path for name in ("metrics.json", "counts.json", "*.safetensors") for path in output.rglob(name)]
    before = [path.stat().st_mtime_ns for path in files]
    announced: list[str] = []
    again = compare(
        recipes_of(recipe_values),
        seeds=SEEDS,
        output=output,
        data=data_folder,
        against="best",
        on_run=announced.append,
    )
    assert again.rows == results.rows  # the first is the best
    assert [path.stat().st_mtime_ns for path in files] == before
    assert len(files) == 12
    assert announced[0] == "learns, seed 0 (run 1 of 4)"
    assert len(announced) == 4


def test_what_cannot_be_compared_is_refused(recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path) -> None:
    recipes = recipes_of(recipe_values)
    shutil.copytree(data_folder / "small", tmp_path / "small")
    test = load_corpus(tmp_path / "small", "test")
    write(test.documents[:5], tmp_path / "small" / "short.jsonl")
    corpora = [{"path": "small", "test": "short"}]
    other = {"a": recipes["learns"], "b": changed_recipe(recipe_values, data={"corpora": corpora})}
    for wrong, seeds, message in (
        ({"a": recipes["learns"]}, [0], "nothing to compare. Fix: give at least two recipes"),
        (recipes, [], "seeds"),
        (recipes, [1, 1], "seeds"),
        (other, [0], "'a' and 'b' have different test data.*Fix: name the same corpora"),
    ):
        with pytest.raises(OnomaError, match=message):
            compare(wrong, seeds=seeds, output=tmp_path / "runs", data=tmp_path)
    assert not (tmp_path / "runs").exists()


# --- recipes


@pytest.fixture
def recipe_file(recipe_values: dict[str, Any], tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        path = tmp_path / "recipes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({**recipe_values, "training": SHORT}), "utf-8")
        return path

    return make


def test_recipes_are_named_by_their_files(recipe_file: Callable[[str], Path], data_folder: Path) -> None:
    one, other, same = (recipe_file(name) for name in ("a/one.yaml", "a/other.yaml", "b/one.yaml"))
    assert list(load_recipes([one, other], data_folder)) == ["one", "other"]
    assert list(load_recipes([one, same], data_folder)) == ["a-one", "b-one"]
    with pytest.raises(OnomaError, match="given twice"):
        load_recipes([one, one], data_folder)


def test_variants_are_further_recipes(recipe_file: Callable[[str], Path], data_folder: Path) -> None:
    found = load_recipes(
        [recipe_file("one.yaml")], data_folder, ["overlap=7"], ["options.negative_sampling=uniform", "options.beta=0.9"]
    )
    assert list(found) == ["one", "one options.negative_sampling=uniform", "one options.beta=0.9"]
    assert [one.options.get("negative_sampling") for one in found.values()] == [None, "uniform", None]
    assert {one.overlap for one in found.values()} == {7}
    with pytest.raises(OnomaError, match="Fix: give them as --seeds"):
        load_recipes([recipe_file("one.yaml")], data_folder, variants=["seed=1"])


def test_a_corpus_takes_the_place_of_those_of_the_recipes(
    recipe_file: Callable[[str], Path], data_folder: Path
) -> None:
    path = recipe_file("one.yaml")
    (whole,) = load_recipes([path], data_folder / "small", ["data.corpora=[{path: elsewhere}]"]).values()
    assert [one.path for one in whole.data.corpora] == [str((data_folder / "small").resolve())]
    (named,) = load_recipes([path], data_folder).values()
    assert [one.path for one in named.data.corpora] == ["small"]
