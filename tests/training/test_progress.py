"""Progress of training without a terminal: lines on stderr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerControl, TrainerState

from onoma.training import progress
from onoma.training.callbacks import Stopwatch
from onoma.training.progress import ProgressReporter
from onoma.training.recipe import TrainingRecipe
from onoma.training.trainer import training_arguments


class Run:
    """A reporter, and the events of a training run for it."""

    def __init__(
        self,
        folder: Path,
        monitor: Any = "f1",
        start: int = 0,
        best: float | None = None,
        max_minutes: float | None = None,
    ) -> None:
        self.arguments = training_arguments(TrainingRecipe(), folder, 0, monitor)
        self.state = TrainerState(max_steps=100, global_step=start, best_metric=best)
        self.reporter = ProgressReporter("training", Stopwatch(), max_minutes)
        self.reporter.on_train_begin(self.arguments, self.state, TrainerControl())

    def step(self) -> None:
        self.state.global_step += 1
        self.reporter.on_step_end(self.arguments, self.state, TrainerControl())

    def log(self, **logs: float) -> None:
        self.reporter.on_log(self.arguments, self.state, TrainerControl(), logs)

    def end(self) -> None:
        self.reporter.on_train_end(self.arguments, self.state, TrainerControl())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which tests may set."""
    now = [0.0]
    monkeypatch.setattr("onoma.training.progress.time.monotonic", lambda: now[0])
    return now


def test_a_line_is_printed_every_few_seconds(
    clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path)
    for _ in range(60):
        clock[0] += 1.0
        run.step()
    run.end()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 60 // progress.SECONDS_BETWEEN_LINES
    assert lines[0] == "training, step 10 of 100, 1 min 30 s left"
    assert lines[-1] == "training, step 60 of 100, 40 s left"


@pytest.mark.parametrize(("minutes", "left"), [(1, "50 s"), (1.5, "1 min 20 s"), (20, "1 min 30 s"), (0.1, "0 s")])
def test_the_remaining_time_is_that_of_the_clock_if_it_ends_first(
    minutes: float, left: str, clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path, max_minutes=minutes)
    for _ in range(10):
        clock[0] += 1.0
        run.step()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"training, step 10 of 100, {left} left"


def test_long_lines_are_not_wrapped(clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(tmp_path)
    run.reporter.stage = "classification of spans after detection with another encoder"
    run.log(loss=0.5)
    run.log(eval_f1=80.0)
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) > 100


def test_lines_have_the_loss_the_score_and_the_best_score(
    clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path)
    run.step()
    run.log(loss=0.51234)
    run.log(eval_f1=80.0, eval_precision=70.0)
    run.log(loss=0.25)
    run.log(eval_f1=75.0)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(", step")[0] for line in lines] == [
        "training, loss 0.512, dev f1 80.00, best 80.00",
        "training, loss 0.250, dev f1 75.00, best 80.00",
    ]


def test_the_best_loss_is_the_lowest(clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(tmp_path, "loss")
    for loss in (2.0, 1.0, 3.0):
        run.log(eval_loss=loss)
    assert "dev loss 3.00, best 1.00" in capsys.readouterr().err.splitlines()[-1]


def test_a_loss_that_is_not_finite_is_called_so(
    clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path)
    for loss in (float("nan"), float("inf")):
        run.log(loss=loss)
        run.log(eval_f1=0.0)
    error = capsys.readouterr().err
    assert "nan" not in error
    assert error.count("loss not finite") == 2


def test_a_resumed_run_says_where_it_continues(
    clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path, start=40, best=90.0)
    clock[0] += 20.0
    run.step()
    run.log(eval_f1=80.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "training: resuming at step 40 of 100"
    assert lines[1] == "training, step 41 of 100, 19 min 40 s left"  # by the steps of this process alone
    assert "best 90.00" in lines[2]


def test_nothing_goes_to_standard_output(
    clock: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path, start=1)
    run.log(eval_f1=80.0)
    run.end()
    assert capsys.readouterr().out == ""
