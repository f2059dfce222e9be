"""One stage of training on `transformers.Trainer`: our batches, two learning rates, dev F1, the best weights kept."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from onoma.training.collating import BinderCollator
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
        collator: BinderCollator,
        evaluate: Evaluate,
        recipe: TrainingRecipe,
        callbacks: list[TrainerCallback],
    ) -> None:
        self.network, self.batches, self.recipe, self.score = model, batches, recipe, evaluate
        super().__init__(
            model,
            arguments,
            data_collator=collator,
            train_dataset=examples,
            eval_dataset=[],  # evaluation is ours, but there must be something
            callbacks=[*callbacks, FollowEpochs(batches)],
        )
        self.remove_callback(PrinterCallback)  # standard output is for results

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Length-bucketed batches, collated by workers off the hot path."""
        loader: DataLoader[Any] = DataLoader(
            cast(Dataset[Any], self.train_dataset),
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            num_workers=self.recipe.workers,
            pin_memory=torch.cuda.is_available(),
            persistent_workers=False,
        )
        prepared: DataLoader[Any] = self.accelerator.prepare_data_loader(loader)
        return prepared

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW with one rate for pretrained weights and one for the rest; no decay on biases, norms and scales."""
        if self.optimizer is None:
            groups: dict[tuple[float, float], list[Tensor]] = {}
            for name, weight in self.network.named_parameters():
                pretrained = name.startswith(("text_encoder.", "own_type_encoder."))
                rate = self.recipe.rate if pretrained else self.recipe.head_rate or self.recipe.rate
                decay = self.recipe.weight_decay if weight.ndim > 1 else 0.0
                groups.setdefault((rate, decay), []).append(weight)
            parameters = [{"params": p, "lr": lr, "weight_decay": decay} for (lr, decay), p in groups.items()]
            self.optimizer = torch.optim.AdamW(parameters, lr=self.recipe.rate, fused=torch.cuda.is_available())
        return self.optimizer

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Strict scores on the development data."""
        training = self.network.training
        (scores,) = broadcast_object_list([self.score()])  # processes that train together must stop together
        metrics = {f"eval_{name}": value for name, value in scores.items()}
        self.network.train(training)
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


class FollowEpochs(TrainerCallback):
    """Tells the batches their epoch; a Trainer that resumes among several processes does not reach them."""

    def __init__(self, batches: BucketedBatches) -> None:
        self.batches = batches

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """A resumed run begins inside of an epoch."""
        self.batches.set_epoch(int(state.epoch or 0))


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
        weights = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in self.model.state_dict().items()}
        if self.path is None:
            self.weights = weights
            return
        from safetensors.torch import save_file

        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        save_file(weights, partial)
        partial.replace(self.path)

    def restore(self) -> None:
        """Put the best weights back into the model."""
        if self.path is not None and self.path.is_file():
            from safetensors.torch import load_file

            self.model.load_state_dict(load_file(self.path))
        elif self.weights is not None:
            self.model.load_state_dict(self.weights)


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
        tf32=True if torch.cuda.is_available() else None,
        eval_strategy="steps",
        eval_steps=recipe.evaluate_every,
        save_strategy="steps" if recipe.checkpoints else "no",
        save_steps=recipe.evaluate_every,
        save_total_limit=1,
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
