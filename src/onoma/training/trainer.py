"""One stage of training on `transformers.Trainer`: our batches, two learning rates, dev F1, the best weights kept."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from onoma.training.collating import Arrays, Collator
from onoma.training.examples import Example
from onoma.training.recipe import TrainingRecipe
from onoma.training.sampling import BucketedBatches

Evaluate = Callable[[], dict[str, float]]


class StageTrainer(Trainer):
    """A Trainer whose batches are ours and whose evaluation is strict F1 on the development data."""

    def __init__(
        self,
        model: nn.Module,
        arguments: TrainingArguments,
        examples: list[Example],
        batches: BucketedBatches,
        collator: Collator,
        evaluate: Evaluate,
        recipe: TrainingRecipe,
        callbacks: list[TrainerCallback],
    ) -> None:
        self.network, self.batches, self.recipe, self.score = model, batches, recipe, evaluate
        self.average = RunningAverage(model, recipe.average)
        super().__init__(
            model,
            arguments,
            data_collator=collator,
            train_dataset=examples,
            eval_dataset=[],  # evaluation is ours, but there must be something
            callbacks=[*callbacks, FollowEpochs(batches), self.average],
        )
        self.remove_callback(PrinterCallback)  # standard output is for results

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Length-bucketed batches, collated by workers off the hot path."""
        loader: DataLoader[Any] = DataLoader(
            cast(Dataset[Any], self.train_dataset),
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            num_workers=self.recipe.workers,
            persistent_workers=False,
        )
        prepared: DataLoader[Any] = self.accelerator.prepare_data_loader(loader)
        return prepared

    def training_step(self, model: nn.Module, *arguments: Any, **options: Any) -> Tensor:
        """One step; what the model's passes have noted is recorded before it begins."""
        for one in getattr(self.network, "passes", ()):
            one.record()
        loss: Tensor = super().training_step(model, *arguments, **options)
        return loss

    def _prepare_inputs(self, inputs: Any) -> dict[str, Tensor]:
        """Arrays on the device, by a single copy for all of their numbers."""
        return to_device(inputs, self.args.device)

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW with one rate for pretrained weights and one for the rest; no decay on biases, norms and scales."""
        if self.optimizer is None:
            groups: dict[tuple[float, float], list[Tensor]] = {}
            for name, weight in self.network.named_parameters():
                if not weight.requires_grad:
                    continue
                pretrained = name.split(".")[0].endswith("encoder")
                rate = self.recipe.rate if pretrained else self.recipe.head_rate or self.recipe.rate
                decay = self.recipe.weight_decay if weight.ndim > 1 else 0.0
                groups.setdefault((rate, decay), []).append(weight)
            parameters = [{"params": p, "lr": lr, "weight_decay": decay} for (lr, decay), p in groups.items()]
            self.optimizer = torch.optim.AdamW(parameters, lr=self.recipe.rate, fused=torch.cuda.is_available())
        return self.optimizer

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """The rate rises, then falls to nothing: with the steps or, in a run of so many minutes, with the clock."""
        optimizer = optimizer or self.optimizer
        if self.lr_scheduler is None and optimizer is not None and self.recipe.minutes is not None:
            clock = Clock(60 * self.recipe.minutes, num_training_steps, self.recipe.warmup)
            self.add_callback(clock)
            self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, clock.rate)
        scheduler: torch.optim.lr_scheduler.LRScheduler = super().create_scheduler(num_training_steps, optimizer)
        return scheduler

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        """Clip gradients. A step whose gradients are not numbers is left out, without waiting for the GPU to know."""
        norm = super()._clip_grad_norm(model)  # type: ignore[no-untyped-call]
        if isinstance(norm, Tensor) and norm.is_cuda and self.optimizer is not None:
            inner: Any = getattr(self.optimizer, "optimizer", self.optimizer)
            inner.found_inf = (~torch.isfinite(norm)).float().reshape(())  # a fused AdamW looks at it, as with scalers
        return norm

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Strict scores on the development data."""
        training = self.network.training
        with self.average.in_place():
            (scores,) = broadcast_object_list([self.score()])  # processes that train together must stop together
            metrics = {f"eval_{name}": value for name, value in scores.items()}
            self.network.train(training)
            self.log(metrics)
            self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def to_device(arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
    """Arrays as tensors on a device. They travel as one: each copy costs time of its own, however small it is."""
    numbers = [array.ravel().astype(np.int64, copy=False) for array in arrays.values()]
    together = torch.from_numpy(np.concatenate(numbers))
    if device.type == "cuda":
        together = together.pin_memory().to(device, non_blocking=True)
    parts = torch.split(together, [array.size for array in arrays.values()])
    return {
        name: (part.bool() if array.dtype == np.bool_ else part).view(array.shape)
        for (name, array), part in zip(arrays.items(), parts, strict=True)
    }


class FollowEpochs(TrainerCallback):
    """Tells the batches their epoch; a Trainer that resumes among several processes does not reach them."""

    def __init__(self, batches: BucketedBatches) -> None:
        self.batches = batches

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """A resumed run begins inside of an epoch."""
        self.batches.set_epoch(int(state.epoch or 0))


class Clock(TrainerCallback):
    """Ends a run after some seconds, or when its steps are done if that is earlier.

    What counts as progress p is the larger one of both shares; the rate is p / warmup at first, then
    (1 - p) / (1 - warmup).
    """

    def __init__(self, seconds: float, steps: int, warmup: float) -> None:
        self.seconds, self.steps, self.warmup = seconds, steps, warmup
        self.began = time.monotonic()

    def rate(self, step: int) -> float:
        """The share of the full rate."""
        progress = max(step / self.steps, self.passed())
        return progress / self.warmup if progress < self.warmup else max(0.0, (1 - progress) / (1 - self.warmup))

    def passed(self) -> float:
        """The share of the time."""
        return (time.monotonic() - self.began) / self.seconds

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Stop when the time is over."""
        control.should_training_stop |= self.passed() >= 1


class RunningAverage(TrainerCallback):
    """A running average of the weights, which is what is evaluated and kept.

    θ' ← d θ' + (1 - d) θ after every step, with a smaller d at first so that the beginning is soon forgotten.
    """

    EVERY = 4  # steps: averaging costs time, and neighbours hardly differ
    FILE = "average.safetensors"

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.decay, self.updates = decay, 0
        self.means: list[Tensor] = []

    @torch.no_grad()
    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Take the new weights in."""
        if not self.decay or state.global_step % self.EVERY:
            return
        weights: list[Tensor] = [weight.detach() for weight in self.weights]
        if not self.means:
            self.means = [weight.clone() for weight in weights]
        self.updates += 1
        decay = min(self.decay**self.EVERY, self.updates / (self.updates + 9))
        torch._foreach_lerp_(self.means, weights, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the averaged weights for a while."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for weight, mean in zip(self.weights, self.means, strict=False):  # there are no means before the first update
            weight.data, mean.data = mean.data, weight.data

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Keep the average with a checkpoint, for runs that go on from there."""
        from safetensors.torch import save_file

        if self.means and state.is_world_process_zero and args.output_dir:
            tensors = {str(number): mean.cpu() for number, mean in enumerate(self.means)}
            tensors["updates"] = torch.tensor([self.updates])
            save_file(tensors, Path(args.output_dir) / f"checkpoint-{state.global_step}" / self.FILE)

    def load(self, checkpoint: str) -> None:
        """Go on with the average of a checkpoint."""
        from safetensors.torch import load_file

        path = Path(checkpoint) / self.FILE
        if path.is_file():
            tensors = load_file(path)
            self.updates = int(tensors.pop("updates"))
            means = (tensors[str(number)] for number in range(len(tensors)))
            self.means = [mean.to(weight.device) for mean, weight in zip(means, self.weights, strict=True)]


class KeepBest(TrainerCallback):
    """Keeps the weights with the best dev F1 and stops after `patience` steps without a better one.

    With a path they are kept on disk, so that a resumed run still has them; else in memory.
    """

    def __init__(self, model: nn.Module, patience: int, path: Path | None) -> None:
        self.model, self.patience, self.path = model, patience, path
        self.weights: dict[str, Tensor] | None = None

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Compare with the best so far."""
        f1 = (metrics or {}).get("eval_f1", 0.0)
        if state.best_metric is None or f1 > state.best_metric:
            state.best_metric, state.best_global_step = f1, state.global_step
            if self.path is None or state.is_world_process_zero:
                self._keep()
        elif state.global_step - (state.best_global_step or 0) >= self.patience:
            control.should_training_stop = True

    def _keep(self) -> None:
        if self.path is None:
            self.weights = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        else:
            keep_weights(self.model, self.path)

    def restore(self) -> None:
        """Put the best weights back into the model."""
        if self.path is not None and self.path.is_file():
            from safetensors.torch import load_file

            self.model.load_state_dict(load_file(self.path))
        elif self.weights is not None:
            self.model.load_state_dict(self.weights)


def keep_weights(model: nn.Module, path: Path) -> None:
    """Write the weights of a model into a file."""
    from safetensors.torch import save_file

    weights = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in model.state_dict().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file(weights, partial)
    partial.replace(path)


def training_arguments(recipe: TrainingRecipe, checkpoints: Path, seed: int) -> TrainingArguments:
    """The recipe in the words of transformers, and this process's place among others."""
    arguments = TrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=recipe.epochs,
        max_steps=recipe.max_steps,
        per_device_train_batch_size=recipe.batch_size,
        gradient_accumulation_steps=recipe.accumulation,
        learning_rate=recipe.rate,
        warmup_steps=recipe.warmup,  # below 1: a share of all steps
        lr_scheduler_type="linear",
        max_grad_norm=recipe.max_grad_norm,
        bf16=recipe.bf16 and torch.cuda.is_available(),
        tf32=not recipe.bf16 if torch.cuda.is_available() else None,  # what bf16 leaves in float32 must be exact
        eval_strategy="steps",
        eval_steps=recipe.evaluate_every,
        save_strategy="steps" if recipe.checkpoints else "no",
        save_steps=recipe.evaluate_every,
        save_total_limit=1,
        logging_nan_inf_filter=False,  # it would wait for the GPU in every step
        logging_steps=min(50, recipe.evaluate_every),
        report_to=["tensorboard"] if importlib.util.find_spec("tensorboard") else [],
        seed=seed,
        disable_tqdm=True,
        remove_unused_columns=False,
        use_cpu=not torch.cuda.is_available(),
    )
    # One process drives one GPU; with more GPUs, a Trainer would split single batches among them.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments
