"""Runs of several stages, and runs that begin with what another run has trained."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import TrainerControl, TrainerState, TrainingArguments

from onoma import OnomaError
from onoma.config import ModelConfig
from onoma.training.binder import BinderTraining
from onoma.training.progress import ProgressBar
from onoma.training.recipe import Recipe, load_recipe
from onoma.training.run import train
from onoma.training.stages import training_of
from onoma.training.suner import SunerTraining

torch.set_num_threads(1)
STEPS, EVERY, KILLED_AT = 60, 20, 33
OPTIONS = {"hidden": 32, "match_hidden": 16, "size": 16, "max_width": 8, "mined": True}
TIMES = ("seconds", "train_seconds", "train_words_per_second")


def recipe_of(values: dict[str, Any], **changes: Any) -> Recipe:
    """A recipe of two stages for the small corpus; dictionaries are changed, other values replaced."""
    copied = deepcopy(values) | {"system": "suner", "options": dict(OPTIONS)}
    copied["training"] |= {"max_steps": STEPS, "evaluate_every": EVERY}
    for part, change in changes.items():
        copied[part] = {**copied.get(part, {}), **change} if isinstance(change, dict) else change
    return load_recipe(copied)


def tiny_steps(**changes: Any) -> dict[str, Any]:
    return {"max_steps": 2, "evaluate_every": 1, "checkpoints": False} | changes


@pytest.fixture(scope="module")
def finished(values: dict[str, Any], data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two stages that nobody interrupted."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    train(recipe_of(values), output=output, data=data)
    return output


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every step of training that is made: its stage and number."""
    made: list[tuple[str, int]] = []

    class Watched(ProgressBar):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            made.append((self.stage, state.global_step))

    monkeypatch.setattr("onoma.training.run.ProgressBar", Watched)
    return made


def metrics_of(run: Path) -> dict[str, Any]:
    """What was measured, without what time it took."""
    metrics: dict[str, Any] = json.loads((run / "metrics.json").read_text("utf-8"))
    for part in (metrics, *metrics.get("stages", {}).values()):
        for name in TIMES:
            part.pop(name, None)
    return metrics


def curve_of(run: Path, name: str = "curve") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / f"{name}.jsonl").read_text("utf-8").splitlines()]


def weights_of(run: Path) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = load_file(run / "model" / "model.safetensors")
    return weights


def detector_of(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: one for name, one in weights.items() if name.startswith(("detection_encoder.", "detector."))}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_each_system_has_its_training() -> None:
    assert isinstance(training_of("suner"), SunerTraining)
    assert isinstance(training_of("binder"), BinderTraining)


# --- two stages


def test_each_stage_leaves_its_metrics_and_its_curve(finished: Path) -> None:
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
    assert {name: metrics[name] for name in last} == last  # what the run says of itself is said of its last stage
    assert metrics["dev"]["small"]["f1"] == pytest.approx(last["best_dev_f1"], abs=1e-6)


def test_the_second_stage_leaves_the_first_alone(finished: Path) -> None:
    after_detection = load_file(finished / "stages" / "detection" / "model.safetensors")
    assert same(detector_of(weights_of(finished)), detector_of(after_detection))
    changed = {name.split(".")[0] for name, one in weights_of(finished).items() if not one.equal(after_detection[name])}
    assert changed == {"text_encoder", "markers", "span_vectors", "type_head", "nothing", "log_scale"}


def test_a_run_killed_in_the_second_stage_goes_on_to_the_same_end(
    finished: Path, values: dict[str, Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(ProgressBar):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            made.append((self.stage, state.global_step))
            if killing and (self.stage, state.global_step) == ("classification", KILLED_AT):
                raise KeyboardInterrupt

    made: list[tuple[str, int]] = []
    killing = True
    monkeypatch.setattr("onoma.training.run.ProgressBar", Killed)
    output = tmp_path / "resumed"
    with pytest.raises(KeyboardInterrupt):
        train(recipe_of(values), output=output, data=data)
    assert made[-1] == ("classification", KILLED_AT)
    assert not (output / "metrics.json").exists()

    made.clear()
    killing = False
    train(recipe_of(values), output=output, data=data)
    resumed_at = KILLED_AT // EVERY * EVERY
    assert made == [("classification", step) for step in range(resumed_at + 1, STEPS + 1)]
    assert same(weights_of(output), weights_of(finished))
    assert metrics_of(output) == metrics_of(finished)
    assert ModelConfig.load(output / "model") == ModelConfig.load(finished / "model")


def test_a_run_killed_between_the_stages_does_not_train_the_first_again(
    finished: Path,
    values: dict[str, Any],
    data: Path,
    tmp_path: Path,
    steps: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("onoma.training.suner.with_mistakes", killed)
        with pytest.raises(KeyboardInterrupt):
            train(recipe_of(values), output=tmp_path / "run", data=data)
    assert {stage for stage, _ in steps} == {"detection"}
    steps.clear()
    train(recipe_of(values), output=tmp_path / "run", data=data)
    assert {stage for stage, _ in steps} == {"classification"}
    assert same(weights_of(tmp_path / "run"), weights_of(finished))


def test_stages_have_settings_of_their_own(
    values: dict[str, Any], data: Path, tmp_path: Path, steps: list[tuple[str, int]]
) -> None:
    stages = {"detection": {"max_steps": 3, "rate": 1e-12}, "classification": {"max_steps": 4}}
    recipe = recipe_of(values, training=tiny_steps(), stages=stages)
    assert recipe.stage_training("detection").batch_size == recipe.training.batch_size  # the others are shared
    train(recipe, output=tmp_path / "run", data=data)
    assert steps == [("detection", n) for n in (1, 2, 3)] + [("classification", n) for n in (1, 2, 3, 4)]
    rates = {
        name: max(row["learning_rate"] for row in curve_of(tmp_path / "run", f"curve-{name}") if "learning_rate" in row)
        for name in stages
    }
    assert 0 < rates["detection"] <= 1e-12
    assert 1e-4 < rates["classification"] <= recipe.training.rate


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ({"training": {"rate": 1e-4}}, "no stage 'training'.*detection, classification"),
        ({"fused": {"rate": 1e-4}}, "no stage 'fused'.*detection, classification"),
        ({"detection": {"speed": 3}}, "speed"),
        ({"classification": {"batch_size": 0}}, "batch_size"),
    ],
)
def test_stages_that_are_not_there_and_wrong_settings_are_refused(
    stages: dict[str, Any], message: str, values: dict[str, Any]
) -> None:
    with pytest.raises(OnomaError, match=message):
        recipe_of(values, stages=stages)


def test_a_run_of_one_stage_needs_no_folders_for_stages(values: dict[str, Any], data: Path, tmp_path: Path) -> None:
    options = {"form": "one-stage", "mined": False}
    train(recipe_of(values, options=options, training=tiny_steps(checkpoints=True)), output=tmp_path, data=data)
    assert "stages" not in metrics_of(tmp_path)
    assert (tmp_path / "curve.jsonl").is_file()
    assert not (tmp_path / "stages").exists()
    with pytest.raises(OnomaError, match="the stages are: one-stage"):
        recipe_of(values, options=options, stages={"detection": {"rate": 1e-4}})


# --- the detector of another run


def test_a_trained_detector_is_taken_over(
    finished: Path, values: dict[str, Any], data: Path, tmp_path: Path, steps: list[tuple[str, int]]
) -> None:
    recipe = recipe_of(values, detector=str(finished / "model"), training=tiny_steps())
    train(recipe, output=tmp_path / "run", data=data)
    assert steps == [("classification", 1), ("classification", 2)]
    assert same(detector_of(weights_of(tmp_path / "run")), detector_of(weights_of(finished)))
    assert not torch.equal(weights_of(tmp_path / "run")["markers"], weights_of(finished)["markers"])


def test_a_detector_that_does_not_fit_is_refused(
    finished: Path, values: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(values, detector=str(finished / "model"), options={"hidden": 24})
    with pytest.raises(OnomaError, match="no detector that fits"):
        train(recipe, output=tmp_path / "run", data=data)


def test_only_two_stages_take_over_a_detector(finished: Path, values: dict[str, Any]) -> None:
    with pytest.raises(OnomaError, match="only a two-stage SUNER"):
        recipe_of(values, detector=str(finished / "model"), options={"form": "fused", "mined": False})


def test_a_model_without_a_detector_is_refused(values: dict[str, Any], data: Path, tmp_path: Path) -> None:
    for form in ("one-stage", "fused"):
        other = recipe_of(values, options={"form": form, "mined": False}, training=tiny_steps())
        folder = train(other, output=tmp_path / form, data=data)
        with pytest.raises(OnomaError, match="no detector that fits"):
            train(recipe_of(values, detector=str(folder)), output=tmp_path / f"from-{form}", data=data)
    with pytest.raises(OnomaError, match=r"model\.safetensors"):
        train(recipe_of(values, detector=str(tmp_path)), output=tmp_path / "from-nothing", data=data)


# --- a model to begin with


def test_a_run_may_begin_with_a_trained_model(
    finished: Path, values: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    barely = tiny_steps(rate=1e-12, max_steps=1)
    train(recipe_of(values, start=str(finished / "model"), training=barely), output=tmp_path / "run", data=data)
    before, after = metrics_of(finished), metrics_of(tmp_path / "run")
    for stage in ("detection", "classification"):
        assert after["stages"][stage]["best_dev_f1"] == pytest.approx(before["stages"][stage]["best_dev_f1"])
    assert after["test"]["small"] == pytest.approx(before["test"]["small"])


def test_a_model_of_another_shape_cannot_be_begun_with(
    finished: Path, values: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    for number, options in enumerate(({"size": 24}, {"form": "fused", "mined": False})):
        recipe = recipe_of(values, start=str(finished / "model"), options=options)
        with pytest.raises(OnomaError, match="another shape"):
            train(recipe, output=tmp_path / str(number), data=data)
