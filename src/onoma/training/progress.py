"""A progress bar for training: loss, dev F1, the best so far and the time left."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class ProgressBar(TrainerCallback):
    """Shows training on the terminal; prints a line an evaluation where there is no terminal."""

    def __init__(self, stage: str = "training") -> None:
        self.stage = stage
        self.console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.loss = self.f1 = float("nan")

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start at the step where a resumed run goes on."""
        self.task = self.progress.add_task(self.stage, total=state.max_steps, completed=state.global_step)
        self.progress.start()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """One step further."""
        self.progress.update(self.task, completed=state.global_step)

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
        self.loss, self.f1 = logs.get("loss", self.loss), logs.get("eval_f1", self.f1)
        best = max(state.best_metric or 0.0, logs.get("eval_f1", 0.0))
        words = f"{self.stage}: loss {self.loss:.3f}  dev F1 {self.f1:.2f}  best {best:.2f}"
        self.progress.update(self.task, description=words)
        if "eval_f1" in logs and not self.console.is_terminal:
            self.console.print(f"step {state.global_step}/{state.max_steps}  {words}", highlight=False)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Leave the terminal as it was."""
        self.progress.stop()
