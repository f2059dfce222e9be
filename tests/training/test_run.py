"""Whole training runs with a tiny encoder on made-up sentences."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import TrainerControl, TrainerState, TrainingArguments

import onoma
from onoma import Document, OnomaError
from onoma.data import load_corpus, write
from onoma.evaluation.candidates import EvaluationSet
from onoma.models.config import CATCH_ALL_LABELS, load_config
from onoma.systems.base import Runtime
from onoma.systems.binder.model import Binder, Similarities
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.systems.binder.training import BinderTraining
from onoma.training import progress
from onoma.training.callbacks import Stopwatch
from onoma.training.progress import ProgressReporter
from onoma.training.recipe import Recipe, load_recipe
from onoma.training.run import train
from onoma.training.samplers import BucketedSampler
from onoma.training.stages import Stage, TrainingData
from tiny import TYPES, documents
from tiny_training import SHORT, changed_recipe, curve_of, metrics_of

torch.set_num_threads(1)
STEPS, EVERY, KILLED_AT = 60, 20, 33  # a killed run resumes at step 20, in the middle of an epoch


@pytest.fixture(scope="module")
def finished(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was not interrupted."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    assert train(load_recipe(recipe_values), output=output, data=data_folder) == output / "model"
    return output


def short_recipe(values: dict[str, Any], **changes: Any) -> Recipe:
    """A recipe of a few steps."""
    return changed_recipe(values, **{**changes, "training": {**SHORT, **changes.get("training", {})}})


def runtime_of(model: Path) -> Runtime:
    return onoma.load(model, "torch", "cpu").runtime


def test_a_small_corpus_is_learned(finished: Path) -> None:
    metrics = metrics_of(finished)
    assert metrics["dev"]["small"]["f1"] > 80
    assert metrics["test"]["small"]["f1"] > 80
    assert metrics["best_dev_f1"] >= metrics["dev"]["small"]["f1"] - 1e-6
    assert metrics["steps"] == STEPS
    assert metrics["best_step"] in range(EVERY, STEPS + 1, EVERY)
    assert metrics["examples"]["cut_mentions"] == 0


def test_training_in_bfloat16_on_a_cpu(recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path) -> None:
    weights = []
    for name, reduced in (("float32", False), ("bfloat16", True)):
        recipe = short_recipe(recipe_values, training={"bf16_on_cpu": reduced})
        weights.append(load_file(train(recipe, output=tmp_path / name, data=data_folder) / "model.safetensors"))
    exact, rounded = (torch.cat([one.flatten() for one in each.values()]) for each in weights)
    assert rounded.dtype == torch.float32  # what is stored
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(exact, rounded, atol=0.02, rtol=0.0)


def test_the_folder_of_a_run_has_all_files(finished: Path, recipe_values: dict[str, Any]) -> None:
    assert load_recipe(finished / "recipe.yaml") == load_recipe(recipe_values)
    rows = curve_of(finished)
    assert [row["step"] for row in rows if "loss" in row] == [20, 40, 60]
    assert {row["step"] for row in rows if "eval_f1" in row} == {20, 40, 60}
    assert list((finished / "logs").glob("events.*"))
    model = finished / "model"
    files = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "encoder/config.json", "README.md"} <= files
    assert not [name for name in files if name.endswith((".bin", ".pt", ".pth", ".pkl", ".partial"))]
    card = (model / "README.md").read_text("utf-8")
    assert f"| test | small | {metrics_of(finished)['test']['small']['precision']:.1f} |" in card
    config = load_config(model)
    assert config.types == {one.name: one.description for one in TYPES}
    assert config.encoder == "tiny-bert"
    assert config.catch_all == CATCH_ALL_LABELS


def test_the_saved_model_scores_as_in_training(finished: Path, data_folder: Path) -> None:
    metrics = metrics_of(finished)
    runtime = runtime_of(finished / "model")
    for split in ("dev", "test"):
        again = EvaluationSet(load_corpus(data_folder / "small", split), runtime).evaluate(runtime)
        assert again == pytest.approx(metrics[split]["small"])
    report = onoma.evaluate(finished / "model", data_folder / "small")
    assert 100 * report.strict.micro.f1 == pytest.approx(metrics["test"]["small"]["f1"])


def test_an_interrupted_run_continues_to_the_same_result(
    finished: Path,
    recipe_values: dict[str, Any],
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Killed(ProgressReporter):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            if state.global_step == KILLED_AT:
                raise KeyboardInterrupt

    output = tmp_path / "resumed"
    with monkeypatch.context() as patch:
        patch.setattr("onoma.training.run.ProgressReporter", Killed)
        with pytest.raises(KeyboardInterrupt):
            train(load_recipe(recipe_values), output=output, data=data_folder)
    assert not (output / "metrics.json").exists()
    half_written = output / "checkpoints" / "checkpoint-30"  # interrupted while it was written
    half_written.mkdir()
    checkpoint = output / "checkpoints" / f"checkpoint-{EVERY}"
    shutil.copy(checkpoint / "model.safetensors", half_written)
    elapsed = checkpoint / Stopwatch.FILE
    assert 0 < json.loads(elapsed.read_text("utf-8"))["seconds"] < 1000
    elapsed.write_text('{"seconds": 5000.0}', "utf-8")  # as if the first part had taken longer
    capsys.readouterr()

    steps = []

    class Watched(ProgressReporter):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            steps.append(state.global_step)

    monkeypatch.setattr("onoma.training.run.ProgressReporter", Watched)
    train(load_recipe(recipe_values), output=output, data=data_folder)
    assert steps == list(range(EVERY + 1, STEPS + 1))  # it continued, and did not start again
    assert f"training: resuming at step {EVERY} of {STEPS}" in capsys.readouterr().err
    assert 5000 < json.loads((output / "metrics.json").read_text("utf-8"))["train_seconds"] < 6000
    assert metrics_of(output) == metrics_of(finished)
    assert load_config(output / "model") == load_config(finished / "model")
    weights, expected = (load_file(run / "model" / "model.safetensors") for run in (output, finished))
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in weights)
    losses = [[(row["step"], row["loss"]) for row in curve_of(run) if "loss" in row] for run in (output, finished)]
    assert losses[0] == losses[1]


def test_a_finished_run_is_not_repeated(finished: Path, recipe_values: dict[str, Any], data_folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "model").iterdir()}
    assert train(load_recipe(recipe_values), output=finished, data=data_folder) == finished / "model"
    assert {path: path.stat().st_mtime_ns for path in (finished / "model").iterdir()} == before


def test_the_folder_of_another_recipe_is_refused(
    finished: Path, recipe_values: dict[str, Any], data_folder: Path
) -> None:
    with pytest.raises(OnomaError, match="another recipe"):
        train(load_recipe(recipe_values, ["seed=1"]), output=finished, data=data_folder)
    assert load_recipe(finished / "recipe.yaml").seed == 0


def test_a_recipe_that_failed_before_training_may_be_corrected(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    for wrong, message in (
        ("encoder=/no/such/encoder", "encoder"),
        ("data.corpora.0.path=nowhere", "nowhere"),
        ("data.corpora.0.dev=null", "dev"),
        ("data.corpora.0.train=null", "train"),
        ("data.corpora.0.train=everything", "everything"),
    ):
        with pytest.raises(OnomaError, match=message):
            train(load_recipe(recipe_values, [wrong]), output=output, data=data_folder)
    assert train(short_recipe(recipe_values), output=output, data=data_folder).is_dir()


def test_a_corpus_without_mentions_is_refused(recipe_values: dict[str, Any], tmp_path: Path) -> None:
    for split in ("train", "dev"):
        write([Document("Nobody came .")] * 10, tmp_path / "small" / f"{split}.jsonl")
    with pytest.raises(OnomaError, match="no mention"):
        train(short_recipe(recipe_values), output=tmp_path / "run", data=tmp_path)


def test_training_stops_when_the_score_does_not_improve(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    slow = {"max_steps": 50, "eval_steps": 2, "patience": 2, "learning_rate": 1e-12, "checkpoints": False}
    train(short_recipe(recipe_values, training=slow), output=tmp_path / "run", data=data_folder)
    assert metrics_of(tmp_path / "run")["steps"] == 6
    assert metrics_of(tmp_path / "run")["best_step"] == 2


def test_the_best_weights_are_saved_instead_of_the_last(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    f1: Iterator[float]
    seen: list[torch.Tensor]

    def invented(_: object, runtime: TorchBinder) -> dict[str, float]:
        seen.append(runtime.model.width.weight.detach().clone())
        return {"precision": 0.0, "recall": 0.0, "f1": next(f1)}

    monkeypatch.setattr("onoma.systems.binder.training.mean_scores", invented)
    for name, checkpoints in {"in memory": False, "on disk": True}.items():
        f1, seen = iter([10.0, 90.0, 20.0, 30.0, 30.0]), []
        changes = {"max_steps": 8, "eval_steps": 2, "checkpoints": checkpoints}
        folder = train(short_recipe(recipe_values, training=changes), output=tmp_path / name, data=data_folder)
        assert metrics_of(tmp_path / name)["best_step"] == 4
        kept = load_file(folder / "model.safetensors")["width.weight"]
        assert [torch.equal(kept, weights) for weights in seen[:4]] == [False, True, False, False]


@pytest.mark.parametrize("checkpoints", [False, True])
def test_a_stage_that_monitors_the_loss_keeps_the_weights_with_the_lowest(
    recipe_values: dict[str, Any],
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    checkpoints: bool,
) -> None:
    losses, weights = iter([3.0, 1.0, 2.0, 1.5, 1.5]), []
    stages = BinderTraining.stages

    def by_loss(self: BinderTraining, runtime: TorchBinder, data: TrainingData) -> Iterator[Stage]:
        def evaluate() -> dict[str, float]:
            weights.append(runtime.model.width.weight.detach().clone())
            return {"loss": next(losses)}

        for stage in stages(self, runtime, data):
            yield replace(stage, evaluate=evaluate, monitor="loss")

    monkeypatch.setattr(BinderTraining, "stages", by_loss)
    settings = {"max_steps": 100, "eval_steps": 2, "patience": 2, "checkpoints": checkpoints}
    model = train(short_recipe(recipe_values, training=settings), output=tmp_path, data=data_folder)
    metrics = metrics_of(tmp_path)
    assert (metrics["steps"], metrics["best_step"], metrics["best_dev_loss"]) == (8, 4, 1.0)
    kept = load_file(model / "model.safetensors")["width.weight"]
    assert [torch.equal(kept, one) for one in weights[:4]] == [False, True, False, False]


def test_without_a_terminal_progress_is_printed_as_lines(
    recipe_values: dict[str, Any],
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    train(short_recipe(recipe_values), output=tmp_path, data=data_folder)
    printed = capsys.readouterr()
    for step in range(1, SHORT["max_steps"] + 1):
        assert f"step {step} of {SHORT['max_steps']}" in printed.err
    assert "dev f1" in printed.err
    assert "loss nan" not in printed.err
    assert printed.out == ""


def test_training_that_diverges_ends_with_an_error(
    recipe_values: dict[str, Any],
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    true_loss = Binder.loss

    def diverged(self: Binder, sims: Similarities, *rest: Tensor) -> Tensor:
        return true_loss(self, sims, *rest) * float("nan")

    monkeypatch.setattr(Binder, "loss", diverged)
    with pytest.raises(OnomaError, match=r"training diverged.*Fix: lower learning_rate"):
        train(load_recipe(recipe_values), output=tmp_path, data=data_folder)
    error = capsys.readouterr().err
    assert f"step {EVERY} of {STEPS}" in error
    assert "loss nan" not in error
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_damaged_file_is_reported_before_training(
    split: str, recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(data_folder / "small", tmp_path / "small")
    path = tmp_path / "small" / f"{split}.jsonl"
    path.write_text(path.read_text("utf-8") + '{"text": "Tom", "entities": [{"start": 0}]}\n', "utf-8")
    with pytest.raises(OnomaError, match=rf"{split}\.jsonl, line \d+"):
        train(short_recipe(recipe_values), output=tmp_path / "run", data=tmp_path)
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert not (tmp_path / "run" / "logs").exists()


def test_windows_beyond_the_positions_of_the_encoder_are_refused(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    recipe = short_recipe(recipe_values, max_tokens=5000)
    with pytest.raises(OnomaError, match="'max_tokens' is 5000, but the encoder reads"):
        train(recipe, output=tmp_path / "run", data=data_folder)


def test_the_model_is_saved_before_it_is_tested(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = [one.text for one in load_corpus(data_folder / "small", "test")]
    evaluate = EvaluationSet.evaluate

    def failing(self: EvaluationSet, runtime: Runtime) -> dict[str, float]:
        if [one.text for one in self.corpus] == tests:
            raise MemoryError
        return evaluate(self, runtime)

    recipe = short_recipe(recipe_values, training={"checkpoints": True})
    with monkeypatch.context() as patch:
        patch.setattr(EvaluationSet, "evaluate", failing)
        with pytest.raises(MemoryError):
            train(recipe, output=tmp_path, data=data_folder)
    onoma.load(tmp_path, "torch", "cpu").extract("Tom flew to Paris .", ["city"])
    assert not (tmp_path / "metrics.json").exists()
    train(recipe, output=tmp_path, data=data_folder)  # only the tests are missing
    assert metrics_of(tmp_path)["test"].keys() == {"small"}


def test_parts_that_the_system_does_not_have_are_refused(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(OnomaError, match="binder has no part 'detector'"):
        train(short_recipe(recipe_values, parts={"detector": "x"}), output=tmp_path / "run", data=data_folder)


def test_corpora_may_have_different_types(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watched(BucketedSampler):
        def __len__(self) -> int:
            shares.append(self.probabilities[0])
            return super().__len__()

    shares: list[float] = []
    monkeypatch.setattr("onoma.training.run.BucketedSampler", Watched)
    shutil.copytree(data_folder / "small", tmp_path / "small")
    people = [Document(one.text, tuple(e for e in one.entities if e.label == "person")) for one in documents()[:10]]
    write(people, tmp_path / "people" / "train.jsonl")
    corpora = [{"path": "people", "dev_share": 0.2, "weight": 2.0}, {"path": "small", "limit": 20, "dev_limit": 5}]
    recipe = short_recipe(recipe_values, data={"corpora": corpora})
    train(recipe, output=tmp_path / "run", data=tmp_path)
    metrics = metrics_of(tmp_path / "run")
    assert set(metrics["dev"]) == {"people", "small"}  # the dev data of `people` is a part of its train data
    assert set(metrics["test"]) == {"small"}
    assert metrics["examples"]["windows"] + metrics["examples"]["dropped_windows"] == 8 + 20
    assert shares[0] == pytest.approx(2 * 8 / (2 * 8 + metrics["examples"]["windows"] - 8))
    assert set(load_config(tmp_path / "run" / "model").types) == {one.name for one in TYPES}
