"""Checkpoints: complete ones are found, damaged ones are noticed, and runs that are killed reach the same result."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import TrainerControl, TrainerState, TrainingArguments

from onoma.training.checkpoints import find_checkpoint, find_damage, is_last
from onoma.training.progress import ProgressReporter
from onoma.training.recipe import Recipe
from onoma.training.run import train
from tiny_training import changed_recipe, curve_of, metrics_of

torch.set_num_threads(1)
FILES = (
    "model.safetensors",
    "optimizer.pt",
    "scheduler.pt",
    "trainer_state.json",
    "average.safetensors",
    "elapsed.json",
)


def recipe_of(values: dict[str, Any]) -> Recipe:
    """A recipe that writes two checkpoints; the run ends inside an epoch."""
    settings = {"max_steps": 10, "eval_steps": 4, "ema_decay": 0.5}
    return changed_recipe(values, training=settings)


@pytest.fixture(scope="module")
def finished(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was not interrupted."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    train(recipe_of(recipe_values), output=output, data=data_folder)
    return output


@pytest.fixture(scope="module")
def interrupted_once(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of a run that was interrupted after its second checkpoint."""

    class Killed(ProgressReporter):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            if state.global_step == 9:
                raise KeyboardInterrupt

    output = tmp_path_factory.mktemp("runs") / "interrupted"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onoma.training.run.ProgressReporter", Killed)
        with pytest.raises(KeyboardInterrupt):
            train(recipe_of(recipe_values), output=output, data=data_folder)
    return output


@pytest.fixture
def interrupted(interrupted_once: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(interrupted_once, tmp_path / "interrupted"))


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "flipped":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    else:
        path.write_bytes(b"")


def same_model(one: Path, other: Path) -> bool:
    weights, expected = (load_file(run / "model" / "model.safetensors") for run in (one, other))
    return weights.keys() == expected.keys() and all(torch.equal(weights[name], expected[name]) for name in weights)


def own_files(step: int) -> tuple[str, ...]:
    return ("elapsed.json", "average.safetensors")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["missing", "truncated", "empty"])
def test_the_newest_complete_checkpoint_is_used(
    name: str, how: str, finished: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(finished / "checkpoints", folder)
    newest, *older = sorted(folder.glob("checkpoint-*"), key=lambda path: -int(path.name.split("-")[1]))
    assert older, "two checkpoints should be kept"
    assert find_checkpoint(folder, own_files, repair=False) == newest
    damage(newest / name, how)
    assert find_checkpoint(folder, own_files, repair=False) == older[0]
    assert not caplog.text  # another process says it
    assert find_checkpoint(folder, own_files, repair=True) == older[0]
    assert f"{newest} is not a complete checkpoint ({name} is" in caplog.text
    assert not newest.exists()


def test_without_a_complete_checkpoint_training_starts_again(finished: Path, tmp_path: Path) -> None:
    assert find_checkpoint(tmp_path / "nowhere", own_files, repair=True) is None
    folder = tmp_path / "checkpoints"
    (folder / "checkpoint-half").mkdir(parents=True)
    (folder / "checkpoint-4").mkdir()
    assert find_checkpoint(folder, own_files, repair=True) is None


def test_flipped_bits_and_states_of_other_steps_are_noticed(finished: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint-10"
    shutil.copytree(finished / "checkpoints" / "checkpoint-10", checkpoint)
    assert find_damage(checkpoint) is None
    moved = checkpoint.rename(tmp_path / "checkpoint-11")
    assert find_damage(moved) == "trainer_state.json is damaged: it is of step 10"
    checkpoint = moved.rename(checkpoint)
    damage(checkpoint / "optimizer.pt", "flipped")
    assert "optimizer.pt is damaged" in (find_damage(checkpoint) or "")


@pytest.mark.parametrize("name", ["optimizer.pt", "average.safetensors"])
def test_a_run_continues_from_an_older_checkpoint_if_the_newest_is_damaged(
    name: str,
    interrupted: Path,
    finished: Path,
    recipe_values: dict[str, Any],
    data_folder: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(interrupted / "checkpoints" / "checkpoint-8" / name, "truncated")
    train(recipe_of(recipe_values), output=interrupted, data=data_folder)
    assert "checkpoint-8 is not a complete checkpoint" in caplog.text
    assert "resuming at step 4 of 10" in capsys.readouterr().err
    assert metrics_of(interrupted) == metrics_of(finished)
    assert same_model(interrupted, finished)


def test_a_run_that_was_interrupted_after_its_last_step_trains_no_further(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    slow = {"max_steps": 50, "eval_steps": 2, "patience": 2, "learning_rate": 1e-12}
    for name, settings in {"steps": {"max_steps": 8, "eval_steps": 4}, "patience": slow}.items():
        output, recipe = tmp_path / name, changed_recipe(recipe_values, training=settings)
        train(recipe, output=output, data=data_folder)
        expected, last = metrics_of(output), output / "checkpoints" / f"checkpoint-{metrics_of(output)['steps']}"
        shutil.copytree(output, tmp_path / f"{name}-again")
        assert is_last(last)
        (tmp_path / f"{name}-again" / "metrics.json").unlink()
        train(recipe, output=tmp_path / f"{name}-again", data=data_folder)
        assert metrics_of(tmp_path / f"{name}-again") == expected
        assert same_model(tmp_path / f"{name}-again", output)
        steps = [row["step"] for row in curve_of(tmp_path / f"{name}-again") if "eval_f1" in row]
        assert max(steps) == expected["steps"]


KILLED_RUN = """
import os, signal, sys
import torch
from onoma.training.recipe import load_recipe
from onoma.training.run import train

torch.set_num_threads(1)
recipe, data, output, moments = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
WRITES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")


def run(moment):
    passed = 0

    def hook(event, arguments):
        nonlocal passed
        opened = event == "open" and set(str(arguments[1])) & set("wxa+")
        if (opened or event in WRITES) and str(arguments[0]).startswith(output):
            passed += 1
            if passed == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    if moment:
        sys.addaudithook(hook)
    train(load_recipe(recipe), output=output, data=data)
    return passed


for moment in [*map(int, moments), 0]:  # processes are forked, because torch takes seconds to import
    process = os.fork()
    if not process:
        run(moment)
        os._exit(0)
    _, status = os.waitpid(process, 0)
    print("killed" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", [1, 4])
def test_a_run_that_is_killed_again_and_again_reaches_the_same_result(
    first: int, finished: Path, recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    """Each process is killed at another of its write operations: renaming, creating and removing files."""
    path, output = tmp_path / "recipe.yaml", tmp_path / "run"
    path.write_text(yaml.safe_dump(recipe_of(recipe_values).model_dump(mode="json")), "utf-8")
    moments = map(str, range(first, 60, 6))
    arguments = [sys.executable, "-c", KILLED_RUN, str(path), str(data_folder), str(output), *moments]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    printed = done.stdout.split("\n")
    print(done.stdout)
    assert printed[-2] == "exit 0", done.stderr
    assert printed.count("killed") >= 5, done.stdout
    assert "exit 1" not in printed, done.stderr
    assert metrics_of(output) == metrics_of(finished)
    assert same_model(output, finished)
