"""Runs of several stages, and runs that start from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import TrainerControl, TrainerState, TrainingArguments

from onoma import OnomaError
from onoma.models.config import load_config
from onoma.training.progress import ProgressReporter
from onoma.training.recipe import Recipe
from onoma.training.run import train
from tiny_training import curve_of, metrics_of, suner_recipe

torch.set_num_threads(1)
STEPS, EVERY, KILLED_AT = 60, 20, 33
BRIEF = {"max_steps": 2, "eval_steps": 1, "checkpoints": False}


def recipe_of(values: dict[str, Any], **changes: Any) -> Recipe:
    """A recipe of two stages for the small corpus."""
    changes["options"] = {"hard_negatives": True, **changes.get("options", {})}
    changes["training"] = {"max_steps": STEPS, "eval_steps": EVERY, **changes.get("training", {})}
    return suner_recipe(values, **changes)


@pytest.fixture(scope="module")
def finished(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two stages that was not interrupted."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    train(recipe_of(recipe_values), output=output, data=data_folder)
    return output


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every training step: its stage and number."""
    made: list[tuple[str, int]] = []

    class Watched(ProgressReporter):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            made.append((self.stage, state.global_step))

    monkeypatch.setattr("onoma.training.run.ProgressReporter", Watched)
    return made


def weights_of(run: Path) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = load_file(run / "model" / "model.safetensors")
    return weights


def detector_of(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: one for name, one in weights.items() if name.startswith(("detection_encoder.", "detector."))}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# --- two stages


def test_each_stage_has_metrics_and_a_curve(finished: Path) -> None:
    metrics = metrics_of(finished)
    assert list(metrics["stages"]) == ["detection", "classification"]
    for name, stage in metrics["stages"].items():
        assert stage["steps"] == STEPS
        rows = [row for row in curve_of(finished, f"curve-{name}") if "eval_f1" in row]
        assert {row["step"] for row in rows} == set(range(EVERY, STEPS + 1, EVERY))
        assert stage["best_dev_f1"] == max(row["eval_f1"] for row in rows)
        assert stage["best_dev_f1"] > 30
        assert list((finished / "logs" / name).glob("events.*"))
    last = metrics["stages"]["classification"]
    assert {name: metrics[name] for name in last} == last  # the metrics of the run are those of its last stage
    assert metrics["dev"]["small"]["f1"] == pytest.approx(last["best_dev_f1"], abs=1e-6)


def test_the_second_stage_does_not_change_the_weights_of_the_first(finished: Path) -> None:
    after_detection = load_file(finished / "stages" / "detection" / "model.safetensors")
    assert same(detector_of(weights_of(finished)), detector_of(after_detection))
    changed = {name.split(".")[0] for name, one in weights_of(finished).items() if not one.equal(after_detection[name])}
    assert changed == {"text_encoder", "markers", "span_vectors", "type_head", "nothing", "log_scale"}


def test_a_run_interrupted_in_the_second_stage_continues_to_the_same_result(
    finished: Path, recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(ProgressReporter):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            made.append((self.stage, state.global_step))
            if killing and (self.stage, state.global_step) == ("classification", KILLED_AT):
                raise KeyboardInterrupt

    made: list[tuple[str, int]] = []
    killing = True
    monkeypatch.setattr("onoma.training.run.ProgressReporter", Killed)
    output = tmp_path / "resumed"
    with pytest.raises(KeyboardInterrupt):
        train(recipe_of(recipe_values), output=output, data=data_folder)
    assert made[-1] == ("classification", KILLED_AT)
    assert not (output / "metrics.json").exists()

    made.clear()
    killing = False
    train(recipe_of(recipe_values), output=output, data=data_folder)
    resumed_at = KILLED_AT // EVERY * EVERY
    assert made == [("classification", step) for step in range(resumed_at + 1, STEPS + 1)]
    assert same(weights_of(output), weights_of(finished))
    assert metrics_of(output) == metrics_of(finished)
    assert load_config(output / "model") == load_config(finished / "model")


def test_a_run_interrupted_between_the_stages_does_not_train_the_first_again(
    finished: Path,
    recipe_values: dict[str, Any],
    data_folder: Path,
    tmp_path: Path,
    steps: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("onoma.systems.suner.training.with_hard_negatives", killed)
        with pytest.raises(KeyboardInterrupt):
            train(recipe_of(recipe_values), output=tmp_path / "run", data=data_folder)
    assert {stage for stage, _ in steps} == {"detection"}
    steps.clear()
    train(recipe_of(recipe_values), output=tmp_path / "run", data=data_folder)
    assert {stage for stage, _ in steps} == {"classification"}
    assert "detection: finished before, its weights are loaded" in capsys.readouterr().err
    assert same(weights_of(tmp_path / "run"), weights_of(finished))


def test_stages_may_have_their_own_settings(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path, steps: list[tuple[str, int]]
) -> None:
    stages = {"detection": {"max_steps": 3, "learning_rate": 1e-12}, "classification": {"max_steps": 4}}
    recipe = recipe_of(recipe_values, training=BRIEF, stages=stages)
    assert recipe.stage_training("detection").batch_size == recipe.training.batch_size  # other settings are shared
    train(recipe, output=tmp_path / "run", data=data_folder)
    assert steps == [("detection", n) for n in (1, 2, 3)] + [("classification", n) for n in (1, 2, 3, 4)]
    rates = {
        name: max(row["learning_rate"] for row in curve_of(tmp_path / "run", f"curve-{name}") if "learning_rate" in row)
        for name in stages
    }
    assert 0 < rates["detection"] <= 1e-12
    assert 1e-4 < rates["classification"] <= recipe.training.learning_rate


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ({"training": {"learning_rate": 1e-4}}, "no stage 'training'.*detection, classification"),
        ({"fused": {"learning_rate": 1e-4}}, "no stage 'fused'.*detection, classification"),
        ({"detection": {"speed": 3}}, "speed"),
        ({"classification": {"batch_size": 0}}, "batch_size"),
    ],
)
def test_unknown_stages_and_wrong_settings_are_refused(
    stages: dict[str, Any], message: str, recipe_values: dict[str, Any]
) -> None:
    with pytest.raises(OnomaError, match=message):
        recipe_of(recipe_values, stages=stages)


def test_a_run_of_one_stage_has_no_folder_for_stages(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    options = {"form": "one-stage", "hard_negatives": False}
    train(
        recipe_of(recipe_values, options=options, training={**BRIEF, "checkpoints": True}),
        output=tmp_path,
        data=data_folder,
    )
    assert "stages" not in metrics_of(tmp_path)
    assert (tmp_path / "curve.jsonl").is_file()
    assert not (tmp_path / "stages").exists()
    with pytest.raises(OnomaError, match="the stages are: one-stage"):
        recipe_of(recipe_values, options=options, stages={"detection": {"learning_rate": 1e-4}})


# --- a model to start from


def test_a_run_may_start_from_a_trained_model(
    finished: Path, recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    brief = {**BRIEF, "learning_rate": 1e-12, "max_steps": 1}
    for number, start in enumerate((finished / "model", finished)):  # the folder of a run is accepted as well
        output = tmp_path / str(number)
        train(recipe_of(recipe_values, start=str(start), training=brief), output=output, data=data_folder)
        before, after = metrics_of(finished), metrics_of(output)
        for stage in ("detection", "classification"):
            assert after["stages"][stage]["best_dev_f1"] == pytest.approx(before["stages"][stage]["best_dev_f1"])
        assert after["test"]["small"] == pytest.approx(before["test"]["small"])


def test_a_model_of_another_shape_cannot_be_started_from(
    finished: Path, recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    for number, options in enumerate(({"vector_size": 24}, {"form": "fused", "hard_negatives": False})):
        recipe = recipe_of(recipe_values, start=str(finished / "model"), options=options)
        with pytest.raises(OnomaError, match="its shape differs"):
            train(recipe, output=tmp_path / str(number), data=data_folder)
