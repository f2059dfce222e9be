"""The command `onoma train`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import onoma
from onoma.cli.train import how_to_use
from onoma.training import run

SHORT = ("--set", "training.max_steps=4", "--set", "training.eval_steps=2")


@pytest.fixture
def recipe(recipe_values: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(recipe_values), "utf-8")
    return path


def test_help_shows_an_example(command: Callable) -> None:
    outcome = command("train", "--help")
    assert outcome.code == 0
    assert "Example: onoma train recipes/" in outcome.out


def test_results_as_json_and_as_text(command: Callable, recipe: Path, data_folder: Path, tmp_path: Path) -> None:
    asked = ("train", recipe, "--output", tmp_path / "run", "--data", data_folder, *SHORT)
    outcome = command(*asked, "--json")
    assert outcome.code == 0
    metrics = json.loads(outcome.out)  # nothing else goes to standard output
    assert metrics["steps"] == 4
    assert Path(metrics["model"]) == tmp_path / "run" / "model"
    assert "step 4 of 4" in outcome.err
    again = command(*asked)  # the run is finished: only its results are printed
    assert again.out.splitlines()[0].startswith("dev of small: precision ")
    assert again.out.splitlines()[-1] == f"written to {tmp_path / 'run' / 'model'}"
    assert "step" not in again.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "training.epoch=3"), "training.epoch"),
        (("--set", "training"), "--set"),
        (("--data", "/no/such/folder"), "small"),
        (("--set", "encoder=/no/such/encoder"), "there is no encoder folder '/no/such/encoder'"),
        (("--set", "training.rate=1"), "training.learning_rate"),
        (("--set", "seed=5000000000"), "seed"),
        (("--set", "options.max_width=0"), "'max_width' must be at least 1"),
        (("--set", "options.temperature=-1"), "'temperature' must be greater than 0"),
        (("--set", "training.weight_decay=.nan"), "training.weight_decay"),
    ],
)
def test_wrong_input_ends_with_code_2(
    command: Callable, recipe: Path, data_folder: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = command("train", recipe, "--data", data_folder, "--output", tmp_path / "run", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize(
    "values",
    [
        "{learning_rate: 1.0e+30, max_steps: 2}",
        "{learning_rate: 1.0e+30, max_steps: 8, ema_decay: 0.9}",
        "{weight_decay: 1.0e+30, max_steps: 4, checkpoints: false}",
    ],
)
def test_training_with_numbers_that_are_not_finite_ends_with_code_2(
    values: str, command: Callable, recipe: Path, data_folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "run"
    outcome = command("train", recipe, "--data", data_folder, "--output", place, "--set", f"training={values}")
    assert outcome.code == 2
    assert "training diverged" in outcome.err
    assert "Fix: lower learning_rate" in outcome.err
    assert not (place / "model").exists()
    assert not (place / "metrics.json").exists()


@pytest.mark.parametrize("output", ["small.yaml", "small.yaml/run", "n" * 300])
def test_a_place_where_no_folder_can_be_written_ends_with_code_2(
    output: str, command: Callable, recipe: Path, data_folder: Path, tmp_path: Path
) -> None:
    outcome = command("train", recipe, "--data", data_folder, "--output", tmp_path / output)
    assert outcome.code == 2
    assert "Fix: give another folder as output" in outcome.err


def test_output_is_required(command: Callable, recipe: Path) -> None:
    outcome = command("train", recipe)
    assert outcome.code == 2
    assert "--output" in outcome.err


def test_without_torch_the_error_names_the_extra(recipe: Path, tmp_path: Path) -> None:
    lines = f"""
        import sys
        sys.modules["torch"] = None
        sys.argv = ["onoma", "train", {str(recipe)!r}, "--output", {str(tmp_path / "run")!r}]
        from onoma.cli import main
        main()
    """
    program = "\n".join(line.strip() for line in lines.splitlines())
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert 'pip install "onoma[train]"' in outcome.stderr


def test_train_is_imported_only_when_it_is_used() -> None:
    program = "import sys, onoma; print('train' in dir(onoma), 'torch' in sys.modules)"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["True", "False"]
    assert onoma.train is run.train


def test_the_command_that_is_recommended_has_all_types_or_says_how_many_are_left_out() -> None:
    labels = [f"type {number}" for number in range(13)]
    assert how_to_use(Path("runs/a"), labels[:4]).endswith('--labels "type 0, type 1, type 2, type 3"')
    assert how_to_use(Path("runs/a"), labels).endswith('type 9" (and 3 more: onoma info runs/a)')
