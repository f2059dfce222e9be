"""One stage of training on `transformers.Trainer`: our batches, two learning rates, and our evaluation."""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from accelerate.utils import broadcast_object_list
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainerState, TrainingArguments

from onoma.models.folder import WEIGHTS_FILE
from onoma.training.callbacks import ClockSchedule, FollowEpochs, MovingAverage, SkipNonFinite, Stopwatch, diverged
from onoma.training.checkpoints import STATE, find_checkpoint, is_last
from onoma.training.collation import Arrays
from onoma.training.recipe import TrainingRecipe
from onoma.training.samplers import BucketedSampler
from onoma.training.stages import Monitor, Stage


class StageTrainer(Trainer):
    """A Trainer that reads our batches and evaluates with strict scores on the development data."""

    def __init__(
        self,
        model: nn.Module,
        arguments: TrainingArguments,
        stage: Stage,
        sampler: BucketedSampler,
        recipe: TrainingRecipe,
        callbacks: list[TrainerCallback],
    ) -> None:
        self.network, self.sampler, self.recipe, self.stage = model, sampler, recipe, stage
        self.average, self.stopwatch = MovingAverage(model, recipe.ema_decay), Stopwatch()
        super().__init__(
            model,
            arguments,
            data_collator=partial(stage.collator),  # Trainer would save the attribute `tokenizer` of a collator
            train_dataset=stage.examples,
            eval_dataset=[],  # not used by our evaluation, but it must not be missing
            callbacks=[*callbacks, FollowEpochs(sampler), self.average, self.stopwatch, SkipNonFinite()],
        )
        self.remove_callback(PrinterCallback)  # standard output is for results

    def resume(self, folder: Path) -> None:
        """Train; an interrupted run continues from the newest complete checkpoint of a folder."""
        checkpoint = find_checkpoint(folder, self._own_files, repair=self.args.should_save)
        if checkpoint is None:
            self.train()
            return
        self.average.load(checkpoint)
        self.stopwatch.load(checkpoint)
        if not is_last(checkpoint):
            self.train(resume_from_checkpoint=str(checkpoint))
            return
        self.network.load_state_dict(load_file(checkpoint / WEIGHTS_FILE))  # the Trainer would train one more step
        self.state = TrainerState.load_from_json(str(checkpoint / STATE))
        self.control = self.callback_handler.on_train_begin(self.args, self.state, self.control)
        self.control = self.callback_handler.on_train_end(self.args, self.state, self.control)

    def _own_files(self, step: int) -> tuple[str, ...]:
        """What our callbacks add to the checkpoint of a step."""
        return (Stopwatch.FILE, *self.average.files(step))

    @torch.no_grad()
    def check_weights(self) -> None:
        """Raise an error if weights are not finite, or so large that the loss is not."""
        finite = all(bool(torch.isfinite(weight).all()) for weight in self.network.state_dict().values())
        if finite:
            batch = self.stage.collator(self.stage.examples[: self.recipe.batch_size])
            finite = bool(torch.isfinite(self.network.eval()(**to_device(batch, self.args.device))["loss"]))
        if not finite:
            raise diverged("the weights or the loss are not finite at the end")

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Batches of similar length, collated by worker processes."""
        loader: DataLoader[Any] = DataLoader(
            cast(Dataset[Any], self.train_dataset),
            batch_sampler=self.sampler,
            collate_fn=self.data_collator,
            num_workers=self.recipe.dataloader_workers,
            persistent_workers=False,
        )
        prepared: DataLoader[Any] = self.accelerator.prepare_data_loader(loader)
        return prepared

    def training_step(self, model: nn.Module, *arguments: Any, **options: Any) -> Tensor:
        """One step; pending CUDA graphs are captured before it starts."""
        for function in getattr(self.network, "graphed_functions", ()):
            function.capture()
        loss: Tensor = super().training_step(model, *arguments, **options)
        return loss

    def compute_loss(
        self, model: nn.Module, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of a batch, whose arrays are copied to the device here, all at once."""
        outputs = model(**to_device(inputs, self.args.device))
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW with one rate for pretrained weights and one for the others; no decay of biases, norms and scales."""
        if self.optimizer is None:
            groups: dict[tuple[float, float], list[Tensor]] = {}
            for name, weight in self.network.named_parameters():
                if not weight.requires_grad:
                    continue
                pretrained = name.split(".")[0].endswith("encoder")
                rate = self.recipe.learning_rate
                if not pretrained and self.recipe.head_learning_rate is not None:
                    rate = self.recipe.head_learning_rate
                decay = self.recipe.weight_decay if weight.ndim > 1 else 0.0
                groups.setdefault((rate, decay), []).append(weight)
            parameters = [{"params": p, "lr": lr, "weight_decay": decay} for (lr, decay), p in groups.items()]
            self.optimizer = torch.optim.AdamW(parameters, lr=self.recipe.learning_rate, fused=True)
        return self.optimizer

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """Linear warm-up and decay, by steps or, with `max_minutes`, by the clock."""
        optimizer = optimizer or self.optimizer
        if self.lr_scheduler is None and optimizer is not None and self.recipe.max_minutes is not None:
            seconds, warmup = 60 * self.recipe.max_minutes, self.recipe.warmup_ratio
            clock = ClockSchedule(self.stopwatch, seconds, num_training_steps, warmup)
            self.add_callback(clock)
            self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, clock.factor)
        scheduler: torch.optim.lr_scheduler.LRScheduler = super().create_scheduler(num_training_steps, optimizer)
        return scheduler

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The scores of the averaged weights on the development data."""
        training = self.network.training
        with self.average.swapped_in():
            (scores,) = broadcast_object_list([self.stage.evaluate()])  # all processes must decide alike
            metrics = {f"eval_{name}": value for name, value in scores.items()}
            self.network.train(training)
            self.log(metrics)
            self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def to_device(arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
    """Arrays as tensors on a device, by a single copy, because each copy has a fixed cost."""
    numbers = [array.ravel().astype(np.int64, copy=False) for array in arrays.values()]
    together = torch.from_numpy(np.concatenate(numbers))
    if device.type == "cuda":
        together = together.pin_memory().to(device, non_blocking=True)
    parts = torch.split(together, [array.size for array in arrays.values()])
    return {
        name: (part.bool() if array.dtype == np.bool_ else part).view(array.shape)
        for (name, array), part in zip(arrays.items(), parts, strict=True)
    }


def training_arguments(
    recipe: TrainingRecipe, checkpoints: Path, seed: int, monitor: Monitor = "f1", *, evaluate: bool = True
) -> TrainingArguments:
    """The recipe as arguments of transformers, which also know this process's place among others."""
    arguments = TrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=recipe.epochs,
        max_steps=recipe.max_steps,
        per_device_train_batch_size=recipe.batch_size,
        gradient_accumulation_steps=recipe.gradient_accumulation_steps,
        learning_rate=recipe.learning_rate,
        warmup_steps=recipe.warmup_ratio,  # below 1: a share of all steps
        lr_scheduler_type="linear",
        max_grad_norm=recipe.max_grad_norm,
        bf16=recipe.bf16 if torch.cuda.is_available() else recipe.bf16_on_cpu,
        tf32=not recipe.bf16 if torch.cuda.is_available() else None,  # what bf16 leaves in float32 must be exact
        eval_strategy="steps" if evaluate else "no",
        eval_steps=recipe.eval_steps,
        metric_for_best_model=monitor,
        greater_is_better=monitor == "f1",
        save_strategy="steps" if recipe.checkpoints else "no",
        save_steps=recipe.eval_steps,
        save_total_limit=2,  # if the newest one is damaged, the one before is used
        restore_callback_states_from_checkpoint=True,  # the count of evaluations without improvement
        logging_nan_inf_filter=False,  # it would wait for the GPU in every step
        logging_steps=min(50, recipe.eval_steps),
        report_to=["tensorboard"] if importlib.util.find_spec("tensorboard") else [],
        seed=seed,
        disable_tqdm=True,
        remove_unused_columns=False,
        use_cpu=not torch.cuda.is_available(),
    )
    # one process uses one GPU; with several visible GPUs, Trainer would split single batches among them
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments
