"""`onoma compare`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tiny_training import SHORT


@pytest.fixture
def recipe(recipe_values: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump({**recipe_values, "training": {**recipe_values["training"], **SHORT}}), "utf-8")
    return path


def test_recipes_are_compared_in_one_table(
    command: Callable, recipe: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    arguments = [recipe, "--vary", "options.negative_sampling=overlapping", "--data", data_folder / "small"]
    arguments += ["--output", tmp_path / "runs", "--samples", "200"]
    outcome = command("compare", *arguments, "--seeds", "3")
    assert outcome.code == 0
    assert "small, seed 3 (run 1 of 2)" in outcome.err
    assert "paired bootstrap on test against small" in outcome.out
    assert "options.negative_sampling=overlapping" in outcome.out
    again = command("compare", *arguments, "--seeds", "3", "--json")
    printed = json.loads(again.out)
    assert printed == json.loads((tmp_path / "runs" / "comparison.json").read_text("utf-8"))
    assert [row["recipe"] for row in printed["rows"]] == ["small", "small options.negative_sampling=overlapping"]
    assert printed["seeds"] == [3]
    assert printed["command"].startswith("onoma compare")
    assert 0 < printed["rows"][1]["difference"]["p_value"] <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "a"), "--seeds takes numbers"),
        (("--seeds", "4294967296"), "--seeds takes numbers"),
        (("--seeds", ""), "--seeds takes numbers"),
        ((), "nothing to compare"),
        (("--vary", "options.colour=red"), "unknown option 'colour'"),
        (("--vary", "options.beta=0.4", "--data", "/no/such/folder"), "small"),
        (("--set", "seed=1"), "Fix: give them as --seeds"),
    ],
)
def test_wrong_use_ends_with_code_2(
    arguments: tuple[str, ...], message: str, command: Callable, recipe: Path, data_folder: Path, tmp_path: Path
) -> None:
    place = ("--data", data_folder) if "--data" not in arguments else ()
    outcome = command("compare", recipe, *place, "--output", tmp_path / "runs", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


def test_a_missing_recipe_ends_with_code_2(command: Callable, recipe: Path, tmp_path: Path) -> None:
    outcome = command("compare", recipe, tmp_path / "none.yaml")
    assert outcome.code == 2
    assert "none.yaml" in outcome.err
