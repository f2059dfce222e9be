"""Callbacks of the trainer: best weights, moving average, learning rate by the clock, and safety checks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from onoma.errors import OnomaError
from onoma.files import atomic_write
from onoma.models.weights import save_tensors, save_weights
from onoma.training.samplers import BucketedSampler


class FollowEpochs(TrainerCallback):
    """Tells the sampler its epoch; a Trainer that resumes among several processes does not reach it."""

    def __init__(self, sampler: BucketedSampler) -> None:
        self.sampler = sampler

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """A resumed run starts inside an epoch."""
        self.sampler.set_epoch(int(state.epoch or 0))


class Stopwatch(TrainerCallback):
    """Counts the seconds of training, including those before an interruption."""

    FILE = "elapsed.json"

    def __init__(self) -> None:
        self.before, self.started = 0.0, time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds of training so far."""
        return self.before + time.monotonic() - self.started

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Write the time before a checkpoint is written."""
        if control.should_save and state.is_world_process_zero and args.output_dir:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            with atomic_write(folder / self.FILE) as file:
                json.dump({"seconds": self.seconds}, file)

    def load(self, checkpoint: Path) -> None:
        """Continue with the time of a checkpoint."""
        if (checkpoint / self.FILE).is_file():
            self.before = float(json.loads((checkpoint / self.FILE).read_text("utf-8"))["seconds"])


class ClockSchedule(TrainerCallback):
    """Ends a run after some seconds, or when its steps are done if that is earlier.

    Progress p is the larger share of time and steps; the factor of the learning rate is p / warmup at first, then
    (1 - p) / (1 - warmup). The time before an interruption counts.
    """

    def __init__(self, stopwatch: Stopwatch, seconds: float, steps: int, warmup: float) -> None:
        self.stopwatch, self.seconds, self.steps, self.warmup = stopwatch, seconds, steps, warmup

    def factor(self, step: int) -> float:
        """The factor of the learning rate."""
        progress = max(step / self.steps, self.elapsed())
        return progress / self.warmup if progress < self.warmup else max(0.0, (1 - progress) / (1 - self.warmup))

    def elapsed(self) -> float:
        """The share of the time that has passed."""
        return self.stopwatch.seconds / self.seconds

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Stop when the time is over."""
        control.should_training_stop |= self.elapsed() >= 1


class MovingAverage(TrainerCallback):
    """An exponential moving average of the weights, which is evaluated and kept instead of the last weights.

    θ' ← d θ' + (1 - d) θ after every step, by `torch.optim.swa_utils`, with a smaller d at first, so that the first
    weights are soon forgotten.
    """

    EVERY = 4  # steps: averaging takes time, and neighbouring weights hardly differ
    FILE = "average.safetensors"

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = nn.ParameterList([weight for weight in model.parameters() if weight.requires_grad])
        self.averaged: AveragedModel | None = None
        self.updates = 0

    def _update(self, averaged: Any, weights: Any, _: Tensor | int) -> None:
        """Called by AveragedModel with all weights at once; its own count lies on the device, which would wait."""
        decay = min(self.decay**self.EVERY, (self.updates + 1) / (self.updates + 10))
        torch._foreach_lerp_(averaged, weights, 1 - decay)

    def _new_average(self) -> AveragedModel:
        return AveragedModel(self.weights, multi_avg_fn=self._update)

    @torch.no_grad()
    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Update the average, and write it before a checkpoint is written, which is complete only with it."""
        if not self.decay:
            return
        if state.global_step % self.EVERY == 0:
            self.averaged = self.averaged or self._new_average()
            self.averaged.update_parameters(self.weights)
            self.updates += 1
        if control.should_save and self.averaged is not None and state.is_world_process_zero and args.output_dir:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            save_tensors(self.averaged.state_dict(), folder / self.FILE)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """The model has the averaged weights inside the block."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        if self.averaged is not None:
            for weight, mean in zip(self.weights, self.averaged.module.parameters(), strict=True):
                weight.data, mean.data = mean.data, weight.data

    def load(self, checkpoint: Path) -> None:
        """Continue with the average of a checkpoint."""
        if self.files(int(checkpoint.name.split("-")[1])):
            self.averaged = self._new_average()
            self.averaged.load_state_dict(load_file(checkpoint / self.FILE))
            self.updates = int(self.averaged.n_averaged)

    def files(self, step: int) -> tuple[str, ...]:
        """What a checkpoint of a step contains for the average."""
        return (self.FILE,) if self.decay and step >= self.EVERY else ()


class BestWeights(TrainerCallback):
    """Keeps the weights with the best value of the monitored score.

    `load_best_model_at_end` of the Trainer does not do here: it needs checkpoints, and loads the last weights of a
    checkpoint instead of the averaged ones. With a path, weights are kept on disk, so that a resumed run has them.
    """

    def __init__(self, model: nn.Module, path: Path | None) -> None:
        self.model, self.path = model, path
        self.weights: dict[str, Tensor] | None = None
        self.value: float | None = None
        self.step = 0

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """A resumed run continues with the best value so far."""
        if state.best_metric is not None:
            self.value, self.step = state.best_metric, state.best_global_step or 0
            if self.path is not None:
                _load(self.path)  # before it is needed at the end

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Compare with the best value so far."""
        value = (metrics or {})[f"eval_{args.metric_for_best_model}"]
        better = self.value is None or (value > self.value if args.greater_is_better else value < self.value)
        if not better:
            return
        self.value, self.step = value, state.global_step
        if self.path is None:
            self.weights = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        elif state.is_world_process_zero:
            save_weights(self.model, self.path)

    def restore(self) -> None:
        """Put the best weights into the model."""
        if self.path is not None:
            self.model.load_state_dict(_load(self.path))
        elif self.weights is not None:
            self.model.load_state_dict(self.weights)


def _load(path: Path) -> dict[str, Tensor]:
    """The best weights so far, which an interrupted run continues with."""
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        problem = f"is damaged ({error})" if path.is_file() else "is missing"
        raise OnomaError(
            f"{path} {problem}; it holds the best weights so far. "
            "Fix: remove the folder of the run and start it again, or restore the file"
        ) from error


class SkipNonFinite(TrainerCallback):
    """Skips steps whose gradients are not finite, and ends training if no step is finite any more.

    The check does not wait for the GPU: a fused optimizer reads the flag `found_inf` on the device, as it does with
    gradient scalers.
    """

    PATIENCE = 20  # steps in a row

    def __init__(self) -> None:
        self.in_a_row: Tensor | None = None

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **options: Any
    ) -> None:
        """Check the gradients, which are clipped already."""
        optimizer: Any = options["optimizer"]
        inner: Any = getattr(optimizer, "optimizer", optimizer)
        gradients = [p.grad for group in inner.param_groups for p in group["params"] if p.grad is not None]
        if not gradients:
            return
        found = ~torch.isfinite(torch.nn.utils.get_total_norm(gradients))
        self.in_a_row = found.long() * (
            1 + (self.in_a_row if self.in_a_row is not None else found.new_zeros(()).long())
        )
        if found.is_cuda:
            inner.found_inf = found.float().reshape(())
        elif found:
            inner.zero_grad()

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Logging waits for the GPU anyway."""
        if self.in_a_row is not None and int(self.in_a_row) >= self.PATIENCE:
            raise diverged(f"no gradient was finite in the last {int(self.in_a_row)} steps")


def diverged(why: str) -> OnomaError:
    """The error with which training ends if its numbers are not finite."""
    return OnomaError(
        f"training diverged: {why}. "
        "Fix: lower learning_rate and head_learning_rate, or check temperature and weight_decay"
    )
