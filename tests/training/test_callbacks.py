"""Callbacks of the trainer: best weights, moving average, learning rate by the clock, and safety checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import TrainerControl, TrainerState, TrainingArguments

from onoma import OnomaError
from onoma.inputs.tokenizer import WordTokenIds
from onoma.training.callbacks import (
    BestWeights,
    ClockSchedule,
    FollowEpochs,
    MovingAverage,
    SkipNonFinite,
    Stopwatch,
)
from onoma.training.examples import Example
from onoma.training.recipe import TrainingRecipe
from onoma.training.samplers import BucketedSampler
from onoma.training.stages import Monitor
from onoma.training.trainer import training_arguments

torch.set_num_threads(1)


def arguments_of(folder: Path, monitor: Monitor = "f1") -> TrainingArguments:
    return training_arguments(TrainingRecipe(), folder, 0, monitor)


@pytest.mark.parametrize(("epoch", "expected"), [(None, 0), (0, 0), (1.0, 1), (6.5, 6)])
def test_the_sampler_follows_the_epochs_of_a_resumed_run(epoch: float | None, expected: int, tmp_path: Path) -> None:
    tokens = WordTokenIds(np.ones(1, np.int32), np.ones(1, np.int32))
    sampler = BucketedSampler([Example(tokens, np.zeros((0, 3), np.int64), np.zeros(1, np.int64), 0)], 1, seed=0)
    FollowEpochs(sampler).on_epoch_begin(arguments_of(tmp_path), TrainerState(epoch=epoch), TrainerControl())
    assert sampler.epoch == expected


# --- best weights


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.parametrize(
    ("monitor", "values", "best_step"),
    [("f1", [0.0, 50.0, 50.0, 49.0], 200), ("loss", [3.0, 1.0, 2.0, 1.0], 200), ("loss", [3.0, 2.0, 1.5, 1.0], 400)],
)
def test_the_weights_with_the_best_value_are_kept(
    monitor: Any, values: list[float], best_step: int, on_disk: bool, tmp_path: Path
) -> None:
    model = nn.Linear(1, 1)
    best = BestWeights(model, tmp_path / "best" / "best.safetensors" if on_disk else None)
    state, control, arguments = TrainerState(), TrainerControl(), arguments_of(tmp_path, monitor)
    for number, value in enumerate(values, start=1):
        nn.init.constant_(model.weight, 100 * number)
        state.global_step = 100 * number
        best.on_evaluate(arguments, state, control, {f"eval_{monitor}": value, "eval_other": 9.0})
    assert (best.step, best.value) == (best_step, values[best_step // 100 - 1])
    best.restore()
    assert float(model.weight.detach()) == best_step


def test_only_rank_0_writes_the_best_weights(tmp_path: Path) -> None:
    best = BestWeights(nn.Linear(1, 1), tmp_path / "best.safetensors")
    state = TrainerState(is_world_process_zero=False)
    best.on_evaluate(arguments_of(tmp_path), state, TrainerControl(), {"eval_f1": 1.0})
    assert best.value == 1.0
    assert not (tmp_path / "best.safetensors").exists()


def test_a_resumed_run_keeps_the_best_value_so_far(tmp_path: Path) -> None:
    model, path, arguments = nn.Linear(1, 1), tmp_path / "best.safetensors", arguments_of(tmp_path)
    nn.init.constant_(model.weight, 7.0)
    BestWeights(model, path).on_evaluate(arguments, TrainerState(global_step=5), TrainerControl(), {"eval_f1": 60.0})
    nn.init.constant_(model.weight, 1.0)
    resumed, state = BestWeights(model, path), TrainerState(best_metric=60.0, best_global_step=5, global_step=10)
    resumed.on_train_begin(arguments, state, TrainerControl())
    resumed.on_evaluate(arguments, state, TrainerControl(), {"eval_f1": 59.0})
    resumed.restore()
    assert (resumed.step, float(model.weight.detach())) == (5, 7.0)


@pytest.mark.parametrize(("content", "problem"), [(None, "is missing"), (b"half", "is damaged")])
def test_best_weights_that_cannot_be_read_are_an_error(content: bytes | None, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    if content is not None:
        path.write_bytes(content)
    best, state = BestWeights(nn.Linear(1, 1), path), TrainerState(best_metric=60.0, best_global_step=5)
    for use in (lambda: best.on_train_begin(arguments_of(tmp_path), state, TrainerControl()), best.restore):
        with pytest.raises(OnomaError, match=rf"best\.safetensors {problem}.*Fix: remove the folder of the run"):
            use()


# --- moving average


def average_of(model: nn.Module, decay: float, folder: Path, steps: int) -> MovingAverage:
    """The average over some steps, in which all weights are the number of the step; the last step is saved."""
    average = MovingAverage(model, decay)
    state, control = TrainerState(), TrainerControl()
    arguments = TrainingArguments(output_dir=str(folder), use_cpu=True)
    for step in range(1, steps + 1):
        with torch.no_grad():
            for weight in model.parameters():
                weight.fill_(float(step))
        state.global_step, control.should_save = step, step == steps
        average.on_step_end(arguments, state, control)
    return average


def test_the_averaged_weights_are_evaluated_and_restored_from_a_checkpoint(tmp_path: Path) -> None:
    model, decay = nn.Linear(2, 1), 0.5
    average = average_of(model, decay, tmp_path, 40)
    values = [float(step) for step in range(1, 41) if step % MovingAverage.EVERY == 0]
    expected = values[0]
    for updates, value in enumerate(values, start=1):
        kept = min(decay**MovingAverage.EVERY, updates / (updates + 9))
        expected = kept * expected + (1 - kept) * value
    with average.swapped_in():
        assert model.weight.detach()[0, 0].item() == pytest.approx(expected)
    assert model.weight.detach()[0, 0].item() == 40.0

    resumed = MovingAverage(model, decay)
    resumed.load(tmp_path / "checkpoint-40")
    assert resumed.updates == average.updates == len(values)
    with resumed.swapped_in():
        assert model.weight.detach()[0, 0].item() == pytest.approx(expected)


def test_frozen_weights_are_not_averaged(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    average = average_of(model, 0.9, tmp_path, 12)
    with average.swapped_in():
        assert float(model.bias) == 12.0
        assert float(model.weight[0, 0].detach()) < 12.0


def test_without_a_decay_there_is_no_average(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    average = average_of(model, 0.0, tmp_path, 8)
    with average.swapped_in():
        assert model.weight.detach()[0, 0].item() == 8.0
    assert not list(tmp_path.iterdir())


# --- the clock


def test_the_learning_rate_follows_the_clock_and_training_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("onoma.training.callbacks.time.monotonic", lambda: now[0])
    clock, control = ClockSchedule(Stopwatch(), 60, 1000, 0.1), TrainerControl()
    factors = []
    for second, step in (0, 0), (3, 1), (6, 2), (33, 20), (33, 775), (59, 780), (61, 790):
        now[0] = 100.0 + second
        clock.on_step_end(TrainingArguments(), TrainerState(), control)
        assert control.should_training_stop == (second > 60)
        factors.append(clock.factor(step))
    assert factors == pytest.approx([0, 0.5, 1, 0.5, 0.25, 1 / 54, 0])


def test_the_time_before_an_interruption_counts_for_the_clock(tmp_path: Path) -> None:
    (tmp_path / Stopwatch.FILE).write_text('{"seconds": 45.0}', "utf-8")
    stopwatch, control = Stopwatch(), TrainerControl()
    stopwatch.load(tmp_path)
    assert ClockSchedule(stopwatch, 60, 1000, 0.1).factor(1) == pytest.approx(0.25 / 0.9, abs=0.01)
    ClockSchedule(stopwatch, 44, 1000, 0.1).on_step_end(TrainingArguments(), TrainerState(), control)
    assert control.should_training_stop


def test_the_time_before_an_interruption_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("onoma.training.callbacks.time.monotonic", lambda: now[0])
    stopwatch, arguments = Stopwatch(), arguments_of(tmp_path)
    now[0] = 30.0
    state, control = TrainerState(global_step=8), TrainerControl(should_save=True)
    stopwatch.on_step_end(arguments, state, control)
    now[0] = 1000.0  # the run was interrupted in between
    resumed = Stopwatch()
    resumed.load(tmp_path / "checkpoint-8")
    now[0] = 1012.0
    assert resumed.seconds == pytest.approx(42.0)
    control.should_save, state.global_step = False, 9
    stopwatch.on_step_end(arguments, state, control)
    assert json.loads((tmp_path / "checkpoint-8" / Stopwatch.FILE).read_text("utf-8")) == {"seconds": 30.0}
    assert not (tmp_path / "checkpoint-9").exists()
    assert Stopwatch().seconds == 0.0


# --- gradients that are not finite


class OnGpu(Tensor):
    """A tensor that claims to be on a GPU, for tests on machines without one."""

    is_cuda = True


def changes(
    weights: list[nn.Parameter], optimizer: torch.optim.Optimizer, callback: SkipNonFinite, bad: float
) -> list[bool]:
    """Which weights a step changes whose first gradient is `bad`."""
    before = [weight.detach().clone() for weight in weights]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    weights[0].grad = torch.full_like(weights[0], bad)
    callback.on_pre_optimizer_step(TrainingArguments(), TrainerState(), TrainerControl(), optimizer=optimizer)
    optimizer.step()
    return [not torch.equal(old, new) for old, new in zip(before, weights, strict=True)]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_steps_with_gradients_that_are_not_finite_are_skipped(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "gpu":
        norm: Any = torch.nn.utils.get_total_norm
        monkeypatch.setattr(torch.nn.utils, "get_total_norm", lambda gradients: norm(gradients).as_subclass(OnGpu))
    weights = list(nn.Linear(3, 2).parameters())
    optimizer = torch.optim.AdamW(weights, lr=0.1, fused=device == "gpu")
    callback = SkipNonFinite()
    found = [changes(weights, optimizer, callback, value) for value in (1.0, float("nan"), float("inf"), 1.0)]
    assert found == [[True, True], [False, False], [False, False], [True, True]]


def test_training_ends_with_an_error_if_gradients_stay_non_finite() -> None:
    weights = list(nn.Linear(3, 2).parameters())
    optimizer = torch.optim.AdamW(weights)
    callback, arguments = SkipNonFinite(), TrainingArguments()

    def run(steps: int, value: float) -> None:
        for _ in range(steps):
            changes(weights, optimizer, callback, value)
        callback.on_log(arguments, TrainerState(), TrainerControl())

    run(SkipNonFinite.PATIENCE - 1, float("nan"))
    run(1, 1.0)  # one finite step is enough to continue
    run(SkipNonFinite.PATIENCE - 1, float("inf"))
    with pytest.raises(OnomaError, match=r"diverged.*Fix: lower learning_rate"):
        run(1, float("nan"))
