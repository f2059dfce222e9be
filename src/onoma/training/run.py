"""A training run from a recipe to a model folder.

OUTPUT/
    model/          the best model: config.json, model.safetensors, tokenizer, card
    recipe.yaml     what was run
    metrics.json    dev and test scores, counts, time
    curve.jsonl     loss and dev F1 by step
    logs/           for tensorboard
    checkpoints/    to resume after a kill; `onoma train` with the same output goes on there
    stages/         the weights after each finished stage, where there are several
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers import TrainerCallback, set_seed

from onoma.backends.torch import WEIGHTS, load_weights, save
from onoma.data.files import atomic_write
from onoma.errors import OnomaError
from onoma.subwords import Subwords
from onoma.systems.blocks.encoders import save_tokenizer
from onoma.training.card import write_card
from onoma.training.development import DevelopmentSet
from onoma.training.example_cache import training_data
from onoma.training.loading import load_part, packed
from onoma.training.progress import ProgressBar
from onoma.training.recipe import Recipe, TrainingRecipe, load_recipe
from onoma.training.sampling import BucketedBatches
from onoma.training.stages import Material, Stage, training_of
from onoma.training.trainer import KeepBest, StageTrainer, keep_weights, training_arguments

CHECKPOINTS, METRICS, TOKENIZER, STAGES = "checkpoints", "metrics.json", "tokenizer", "stages"


def train(
    recipe: Recipe | str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    data: str | os.PathLike[str] = ".",
    changes: Sequence[str] = (),
    cache: str | os.PathLike[str] | None = None,
) -> Path:
    """Train a model, test it, and return its folder. A run that was interrupted goes on where it stood.

    `cache` is a folder in which tokenised training data is kept for other runs on the same corpora.

    Under `torchrun` or `accelerate launch`, every process calls this; the first one writes.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe, changes)
    output = Path(output)
    folder = output / "model"
    arguments = training_arguments(recipe.training, output / CHECKPOINTS, recipe.seed)
    with arguments.main_process_first(local=False):
        _claim(output, recipe)
    if (output / METRICS).is_file():  # written last: the run is done
        return folder
    set_seed(recipe.seed)
    started = time.perf_counter()
    chosen_on = load_part(recipe.data, Path(data), "dev")
    if not chosen_on:
        raise OnomaError("the recipe has no dev data: name the 'dev' split of a corpus in data.corpora")
    with arguments.main_process_first(local=False):
        save_tokenizer(recipe.encoder, output / TOKENIZER)
    prepared = training_data(recipe, data, Subwords.load(output / TOKENIZER), cache)
    training = training_of(recipe.system)
    backend = training.new(recipe, prepared.types, output / TOKENIZER)
    if recipe.start is not None:
        _begin_with(backend.model, recipe.start)
    development = [DevelopmentSet(packed(corpus, recipe.data), backend) for corpus in chosen_on]
    material = Material(recipe, prepared.types, prepared.examples, prepared.corpora, development)
    trained: dict[str, dict[str, Any]] = {}
    for stage in training.stages(backend, material):
        trained[stage.name] = _fit(recipe, stage, backend.model, output)
    training.finish(backend, recipe, development)
    tests = load_part(recipe.data, Path(data), "test")
    tested = {one.name: DevelopmentSet(packed(one, recipe.data), backend).evaluate(backend) for one in tests}
    metrics = {
        "dev": {one.corpus.name: one.evaluate(backend) for one in development},
        "test": tested,
        "examples": asdict(prepared.counts),
        **list(trained.values())[-1],
        **({"stages": trained} if len(trained) > 1 else {}),
        "seconds": round(time.perf_counter() - started, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    with arguments.main_process_first(local=False):
        if arguments.should_save:
            save(backend.model, backend.config, output / TOKENIZER, folder)
            write_card(folder, recipe, backend.config, metrics)
            with atomic_write(output / METRICS) as file:
                json.dump(metrics, file, indent=2)
    return folder


def _claim(output: Path, recipe: Recipe) -> None:
    """Write the recipe into the run's folder; a folder in which another recipe has been trained is not touched."""
    output.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    path = output / "recipe.yaml"
    trained = any((output / name).exists() for name in (CHECKPOINTS, METRICS))
    if trained and path.exists() and path.read_text("utf-8") != text:
        raise OnomaError(f"{output} holds a run of another recipe; give another --output, or remove it")
    with atomic_write(path) as file:
        file.write(text)


def _begin_with(model: torch.nn.Module, folder: str) -> None:
    """Put the weights of a trained model into a new one."""
    try:
        model.load_state_dict(load_weights(folder))
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise OnomaError(f"training cannot start from {folder}: it is of another shape ({reason})") from error


def _fit(recipe: Recipe, stage: Stage, model: Any, output: Path) -> dict[str, Any]:
    """Train a stage in place and leave the model with its best weights; a stage that is done is only read."""
    settings, several = recipe.stage_training(stage.name), recipe.stage_names() != (stage.name,)
    place = Path(stage.name) if several else Path()
    done = output / STAGES / stage.name
    if settings.checkpoints and several and (done / METRICS).is_file():
        model.load_state_dict(load_weights(done))
        finished: dict[str, Any] = json.loads((done / METRICS).read_text("utf-8"))
        return finished
    arguments = training_arguments(settings, output / CHECKPOINTS / place, recipe.seed)
    for one in model.passes:
        one.restart(enabled=settings.graphs and arguments.world_size == 1)
    batches = _batches(recipe, settings, stage)
    patience = settings.patience * settings.evaluate_every
    kept_at = output / CHECKPOINTS / place / "best.safetensors" if settings.checkpoints else None
    best = KeepBest(model, patience, kept_at)
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(output / "logs" / place)
    callbacks: list[TrainerCallback] = [best]
    if arguments.should_save:
        callbacks.append(ProgressBar(stage.name if several else "training"))
    trainer = StageTrainer(
        model, arguments, stage.examples, batches, stage.collator, stage.evaluate, settings, callbacks
    )
    resumed_at, checkpoint = _last_checkpoint(output / CHECKPOINTS / place)
    if checkpoint is not None:
        trainer.average.load(checkpoint)
    result = trainer.train(resume_from_checkpoint=checkpoint)
    trainer.evaluate()
    trainer.accelerator.wait_for_everyone()  # the best weights must have been written
    best.restore()
    if arguments.should_save:
        with atomic_write(output / f"curve{f'-{stage.name}' if several else ''}.jsonl") as file:
            file.writelines(json.dumps(row) + "\n" for row in trainer.state.log_history)
    seen = (trainer.state.epoch or 0) * (1 - resumed_at / max(trainer.state.global_step, 1))  # epochs, since resumed
    words = sum(len(example.pieces.counts) for example in stage.examples)
    metrics = {
        "steps": trainer.state.global_step,
        "best_step": trainer.state.best_global_step,
        "best_dev_f1": trainer.state.best_metric,
        "train_seconds": result.metrics["train_runtime"],
        "train_words_per_second": round(seen * words / max(result.metrics["train_runtime"], 1e-9)),
    }
    del trainer, best, callbacks
    _free(model)
    if settings.checkpoints and several and arguments.should_save:
        keep_weights(model, done / WEIGHTS)
        with atomic_write(done / METRICS) as file:
            json.dump(metrics, file)
    return metrics


def _free(model: Any) -> None:
    """Let go of what a stage needed on the GPU, before the next one begins."""
    for one in model.passes:
        one.restart(enabled=False)
    gc.collect()  # a Trainer holds on to itself
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _batches(recipe: Recipe, settings: TrainingRecipe, stage: Stage) -> BucketedBatches:
    data = recipe.data
    temperature = {"proportional": 1.0, "uniform": float("inf")}.get(str(data.sampling), data.sampling)
    return BucketedBatches(
        stage.examples,
        settings.batch_size,
        seed=recipe.seed,
        temperature=float(temperature),
        cap=data.cap,
        draws=data.draws,
        shares=[one.share for one in data.corpora if one.train is not None],
    )


def _last_checkpoint(folder: Path) -> tuple[int, str | None]:
    """The step and path of the newest checkpoint that was written to its end; its state is written last."""
    complete = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    return max(((int(path.name.split("-")[1]), str(path)) for path in complete), default=(0, None))
