"""A training run from a recipe to a model folder.

OUTPUT/
    model/          the best model: config.json, model.safetensors, tokenizer, card
    recipe.yaml     the recipe with all defaults
    metrics.json    dev and test scores, counts, time
    curve.jsonl     loss and dev scores by step
    logs/           for tensorboard
    checkpoints/    to resume after an interruption: `onoma train` with the same output continues there
    stages/         the weights after each finished stage, if there are several
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers import EarlyStoppingCallback, TrainerCallback, set_seed
from transformers.utils import logging as transformers_logging

from onoma.entities import Corpus
from onoma.errors import OnomaError
from onoma.evaluation.candidates import EvaluationSet, mean_scores
from onoma.files import atomic_write
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.parsing import parse_labels
from onoma.labels.translation import TRANSLATIONS_FILE
from onoma.models.folder import ONNX_FILE, TOKENIZER_FILES, WEIGHTS_FILE, ModelFolder, copy_files, open_single
from onoma.models.weights import load_weights, save_model, save_weights
from onoma.systems.blocks.encoders import save_tokenizer
from onoma.systems.options import reads_word_shapes
from onoma.systems.registry import get_system
from onoma.training.calibration import shift_default_threshold
from onoma.training.callbacks import BestWeights
from onoma.training.card import write_card
from onoma.training.corpora import join_for_windows, load_part
from onoma.training.development import development_examples, mean_loss
from onoma.training.example_cache import prepare_data
from onoma.training.examples import Example
from onoma.training.progress import ProgressReporter, report_finished
from onoma.training.recipe import Recipe, TrainingRecipe, load_recipe
from onoma.training.samplers import BucketedSampler
from onoma.training.stages import Stage, Training, TrainingData
from onoma.training.start import (
    Quality,
    average_with_start,
    choose_start_share,
    complete_recipe,
    continue_start,
    copy_weights,
    encoder_dropout,
    find_start,
    freeze_layers,
    translated_types,
    uncalibrated,
)
from onoma.training.trainer import StageTrainer, training_arguments

CHECKPOINTS, METRICS, TOKENIZER, STAGES = "checkpoints", "metrics.json", "tokenizer", "stages"


def train(
    recipe: Recipe | str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    data: str | os.PathLike[str] = ".",
    changes: Sequence[str] = (),
    cache: str | os.PathLike[str] | None = None,
) -> Path:
    """Train a model, test it, and return its folder. An interrupted run continues where it stopped.

    `cache` is a folder for tokenised training data, which other runs on the same corpora can use.

    Under `torchrun` or `accelerate launch` every process calls this function; only rank 0 writes.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe, changes)
    start = find_start(recipe, Path(data))
    if start is not None:
        recipe = complete_recipe(recipe, start)
    recipe = recipe.with_parts_of(Path(data))
    training = get_system(recipe.system).training()
    unknown = sorted(recipe.parts.keys() - set(training.parts))
    if unknown:
        raise OnomaError(f"{recipe.system} has no part {unknown[0]!r} to take from another model")
    output = Path(output)
    folder = output / "model"
    quiet: Any = transformers_logging
    quiet.set_verbosity_error()  # progress and errors are reported here
    arguments = training_arguments(recipe.training, output / CHECKPOINTS, recipe.seed)
    with arguments.main_process_first(local=False):
        _write_recipe(output, recipe)
    if (output / METRICS).is_file():  # written last, so the run is finished
        return folder
    set_seed(recipe.seed)
    started = time.perf_counter()
    development, tests = (load_part(recipe.data, Path(data), part) for part in ("dev", "test"))
    if not development and recipe.training.threshold_from != "start":
        raise OnomaError("the recipe has no dev data. Fix: name the 'dev' split of a corpus in data.corpora")
    with arguments.main_process_first(local=False):
        _save_tokenizer(recipe, start, output / TOKENIZER)
    word_shapes = reads_word_shapes(recipe.options if start is None else start.config.options)
    prepared = prepare_data(recipe, data, WordTokenizer.load(output / TOKENIZER, word_shapes), cache)
    types = translated_types(start, prepared.types)
    if start is None:
        runtime = training.new(recipe, types, output / TOKENIZER)
        if recipe.start is not None:
            _load_start(runtime.model, recipe.start)
    else:
        runtime = continue_start(start, training, types, output / TOKENIZER)
    runtime.check()
    sets = _evaluation_sets(development, recipe, runtime, start)
    before: dict[str, Any] = {}
    if start is not None:
        tested = _scores(_evaluation_sets(tests, recipe, runtime, start), runtime)
        before["start"] = {"dev": _scores(sets, runtime), "test": tested}
    training_data = TrainingData(recipe, types, prepared.examples, prepared.corpora, sets)
    trained = _train_stages(training, runtime, training_data, output)
    training.finish(runtime, recipe, sets)
    if recipe.training.threshold_score is not None:
        shift_default_threshold(runtime, sets, recipe.training.threshold_score)
    if arguments.should_save:  # before the tests, so that nothing is lost if they fail
        save_model(runtime.model, runtime.config, output / TOKENIZER, folder, runtime.artifacts())
        copy_files((TRANSLATIONS_FILE,), output / TOKENIZER, folder)
    metrics = {
        **before,
        "dev": _scores(sets, runtime),
        "test": _scores(_evaluation_sets(tests, recipe, runtime, start), runtime),
        "examples": asdict(prepared.counts),
        **list(trained.values())[-1],
        "train_seconds": round(sum(one["train_seconds"] for one in trained.values()), 1),
        **({"stages": trained} if len(trained) > 1 else {}),
        "seconds": round(time.perf_counter() - started, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    with arguments.main_process_first(local=False):
        if arguments.should_save:
            write_card(folder, recipe, runtime.config, metrics)
            with atomic_write(output / METRICS) as file:
                json.dump(metrics, file, indent=2)
    return folder


def _write_recipe(output: Path, recipe: Recipe) -> None:
    """Write the recipe into the folder of the run, unless it holds a run of another recipe."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if os.path.isfile(output) else error.strerror
        raise OnomaError(f"cannot write a run to {output}: {reason}. Fix: give another folder as output") from error
    text = yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    path = output / "recipe.yaml"
    trained = any((output / name).exists() for name in (CHECKPOINTS, METRICS))
    if trained and path.exists() and path.read_text("utf-8") != text:
        raise OnomaError(f"{output} holds a run of another recipe. Fix: give another output folder, or remove it")
    with atomic_write(path) as file:
        file.write(text)


def _load_start(model: torch.nn.Module, folder: str) -> None:
    """Load the weights of a trained model into a new one."""
    start = open_single(folder, "start from")
    if not start.has(WEIGHTS_FILE) and start.has(ONNX_FILE):
        raise OnomaError(f"{folder} was exported, so it brings its own encoder. Fix: remove 'encoder' from the recipe")
    try:
        model.load_state_dict(load_weights(start.path))
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise OnomaError(f"training cannot start from {folder}: its shape differs ({reason})") from error


def _save_tokenizer(recipe: Recipe, start: ModelFolder | None, folder: Path) -> None:
    """Write the tokenizer of the encoder, or that of the start with the translations of labels."""
    if start is None:
        save_tokenizer(recipe.encoder, folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        copy_files((*TOKENIZER_FILES, TRANSLATIONS_FILE), start.path, folder)


def _evaluation_sets(
    corpora: Sequence[Corpus], recipe: Recipe, runtime: Any, start: ModelFolder | None
) -> list[EvaluationSet]:
    """Corpora to evaluate on, whose types are asked for as in extraction: in the language of the start."""
    return [
        EvaluationSet(
            join_for_windows(one, recipe.data),
            runtime,
            types=translated_types(start, parse_labels(one.types)),
            batch_size=recipe.training.eval_batch_size,
        )
        for one in corpora
    ]


def _scores(sets: Sequence[EvaluationSet], runtime: Any) -> dict[str, dict[str, float]]:
    return {one.corpus.name: one.evaluate(runtime) for one in sets}


def _train_stages(training: Training, runtime: Any, data: TrainingData, output: Path) -> dict[str, dict[str, Any]]:
    """Train all stages, and average the weights with those of the start if the recipe says so."""
    settings = data.recipe.training
    first, factor = copy_weights(runtime.model) if settings.start_share else {}, settings.threshold_factor
    if data.recipe.start is not None and not data.recipe.encoder and settings.threshold_from != "start":
        runtime.config = uncalibrated(runtime.config)
    trained = {}
    for stage in training.stages(runtime, data):
        if settings.teacher is not None and not stage.has_teacher:
            raise OnomaError(
                f"the stage {stage.name!r} of {data.recipe.system} does not learn from a teacher. "
                "Fix: remove 'training.teacher' from the recipe"
            )
        freeze_layers(runtime.model, data.recipe.stage_training(stage.name).frozen_layers)
        trained[stage.name] = _train_stage(data, stage, runtime.model, output)
    if settings.start_share == "dev":
        held_out = development_examples(data.development, runtime)
        quality = partial(_quality, runtime, data, stage, held_out)
        mentions = _count_mentions(data.examples), _count_mentions(held_out)
        trained[stage.name]["start_share"] = choose_start_share(runtime, first, quality, mentions, factor)
    elif settings.threshold_from == "start" or settings.start_share:
        average_with_start(runtime, first, settings.start_share, factor)
    return trained


def _count_mentions(examples: Sequence[Example]) -> int:
    return sum(len(example.gold) for example in examples)


def _quality(runtime: Any, data: TrainingData, stage: Stage, examples: list[Example]) -> Quality:
    """F1 and loss on development data."""
    loss = mean_loss(runtime.model, stage.collator, examples, data.recipe.training.batch_size)
    return Quality(mean_scores(data.development, runtime)["f1"], loss)


def _train_stage(data: TrainingData, stage: Stage, model: Any, output: Path) -> dict[str, Any]:
    """Train a stage in place and leave the model with its best weights; a finished stage is only loaded.

    Without development data, the last weights are kept.
    """
    recipe, evaluated = data.recipe, bool(data.development)
    settings, several = recipe.stage_training(stage.name), recipe.stage_names() != (stage.name,)
    place = Path(stage.name) if several else Path()
    done, checkpoints = output / STAGES / stage.name, output / CHECKPOINTS / place
    arguments = training_arguments(settings, checkpoints, recipe.seed, stage.monitor, evaluate=evaluated)
    if settings.checkpoints and several and (done / METRICS).is_file():
        if arguments.should_save:
            report_finished(stage.name)
        model.load_state_dict(load_weights(done))
        finished: dict[str, Any] = json.loads((done / METRICS).read_text("utf-8"))
        return finished
    for function in model.graphed_functions:
        function.reset(enabled=settings.cuda_graphs and arguments.world_size == 1)
    best = BestWeights(model, checkpoints / "best.safetensors" if settings.checkpoints else None)
    callbacks: list[TrainerCallback] = [best, EarlyStoppingCallback(settings.patience)] if evaluated else []
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(output / "logs" / place)
    trainer = StageTrainer(model, arguments, stage, _sampler(recipe, settings, stage), settings, callbacks)
    if arguments.should_save:
        name = stage.name if several else "training"
        trainer.add_callback(ProgressReporter(name, trainer.stopwatch, settings.max_minutes))
    with encoder_dropout(model, settings.dropout):
        trainer.resume(checkpoints)
    seconds = trainer.stopwatch.seconds
    if evaluated:
        trainer.evaluate()
        trainer.accelerator.wait_for_everyone()  # until the best weights are written
        best.restore()
    trainer.check_weights()
    if arguments.should_save:
        with atomic_write(output / f"curve{f'-{stage.name}' if several else ''}.jsonl") as file:
            file.writelines(json.dumps(row) + "\n" for row in trainer.state.log_history)
    words = sum(len(example.tokens.counts) for example in stage.examples)
    metrics = {
        "steps": trainer.state.global_step,
        "best_step": best.step if evaluated else trainer.state.global_step,
        **({f"best_dev_{stage.monitor}": best.value} if evaluated else {}),
        "train_seconds": round(seconds, 1),
        "train_words_per_second": round((trainer.state.epoch or 0) * words / max(seconds, 1e-9)),
    }
    del trainer, best, callbacks
    _free_memory(model)
    if settings.checkpoints and several and arguments.should_save:
        save_weights(model, done / WEIGHTS_FILE)
        with atomic_write(done / METRICS) as file:
            json.dump(metrics, file)
    return metrics


def _free_memory(model: Any) -> None:
    """Release what a stage needed on the GPU before the next one starts."""
    for function in model.graphed_functions:
        function.reset(enabled=False)
    gc.collect()  # a Trainer has references to itself
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _sampler(recipe: Recipe, settings: TrainingRecipe, stage: Stage) -> BucketedSampler:
    data = recipe.data
    temperature = {"proportional": 1.0, "uniform": float("inf")}.get(str(data.sampling), data.sampling)
    return BucketedSampler(
        stage.examples,
        settings.batch_size,
        seed=recipe.seed,
        temperature=float(temperature),
        cap=data.size_cap,
        samples_per_epoch=data.samples_per_epoch,
        weights=[one.weight for one in data.corpora if one.train is not None],
    )
