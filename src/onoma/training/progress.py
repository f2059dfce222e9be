"""Progress of training: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from onoma.training.callbacks import Stopwatch

SECONDS_BETWEEN_LINES = 10.0


class ProgressReporter(TrainerCallback):
    """Shows step, loss, dev score, the best score so far and the remaining time on stderr."""

    def __init__(self, stage: str, stopwatch: Stopwatch, max_minutes: float | None = None) -> None:
        """With `max_minutes`, training ends by the clock of the stopwatch, or earlier when its steps are done."""
        self.stage, self.stopwatch, self.max_minutes = stage, stopwatch, max_minutes
        self.console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.loss: float | None = None
        self.score: str | None = None  # of the last evaluation
        self.best: float | None = None
        self.started = self.printed = time.monotonic()
        self.first_step = 0

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start at the step at which a resumed run continues."""
        self.task = self.progress.add_task(self.stage, total=state.max_steps, completed=state.global_step, left="")
        self.started = self.printed = time.monotonic()
        self.first_step, self.best = state.global_step, state.best_metric
        if state.global_step:
            self._print(f"{self.stage}: resuming at step {state.global_step} of {state.max_steps}")
        self.progress.start()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Advance by one step."""
        self.progress.update(self.task, completed=state.global_step, left=self._left(state))
        if not self.console.is_terminal and time.monotonic() - self.printed >= SECONDS_BETWEEN_LINES:
            self._print_line(state)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Show what was logged."""
        logs = logs or {}
        monitored = f"eval_{args.metric_for_best_model}"
        self.loss = logs.get("loss", self.loss)
        if monitored in logs:
            value = logs[monitored]
            known = value if self.best is None else self.best
            self.score = f"dev {args.metric_for_best_model} {value:.2f}"
            self.best = max(known, value) if args.greater_is_better else min(known, value)
        self.progress.update(self.task, description=self._describe())
        if monitored in logs and not self.console.is_terminal:
            self._print_line(state)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Leave the terminal as it was."""
        self.progress.stop()

    def _describe(self) -> str:
        parts = [self.stage]
        if self.loss is not None:
            parts.append(f"loss {self.loss:.3f}" if math.isfinite(self.loss) else "loss not finite")
        if self.score is not None:
            parts.append(f"{self.score}, best {self.best:.2f}")
        return ", ".join(parts)

    def _print_line(self, state: TrainerState) -> None:
        self.printed = time.monotonic()
        self._print(f"{self._describe()}, step {state.global_step} of {state.max_steps}, {self._left(state)}")

    def _left(self, state: TrainerState) -> str:
        """The remaining time, by the steps of this process or by the clock, whichever ends first."""
        done = state.global_step - self.first_step
        seconds = (time.monotonic() - self.started) / max(done, 1) * (state.max_steps - state.global_step)
        if self.max_minutes is not None:
            seconds = max(0.0, min(seconds, 60 * self.max_minutes - self.stopwatch.seconds))
        return f"{_duration(seconds)} left"

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def progress_bar(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, else a line when it starts; yields a function that sets the number done. Rank 0 shows it."""
    console = Console(stderr=True, quiet=os.environ.get("RANK", "0") != "0")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    if not console.is_terminal:
        console.print(doing, highlight=False, markup=False, soft_wrap=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done: progress.update(task, completed=done)


def report_finished(stage: str) -> None:
    """Say that a stage was finished before an interruption, and is not trained again."""
    Console(stderr=True).print(f"{stage}: finished before, its weights are loaded", highlight=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
