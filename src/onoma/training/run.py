"""A training run from a recipe to a model folder.

OUTPUT/
    model/          the best model: config.json, model.safetensors, tokenizer, card
    recipe.yaml     what was run
    metrics.json    dev and test scores, counts, time
    curve.jsonl     loss and dev F1 by step
    logs/           for tensorboard
    checkpoints/    to resume after a kill; `onoma train` with the same output goes on there
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from transformers import TrainingArguments, set_seed

from onoma.backends.base import scores as to_scores
from onoma.backends.torch import load, save
from onoma.config import ModelConfig
from onoma.data import Inventory, load_corpus, split
from onoma.data.corpora import find_splits
from onoma.data.files import atomic_write
from onoma.data.packing import pack
from onoma.entities import Corpus, EntityType
from onoma.errors import DataError, OnomaError
from onoma.subwords import Subwords
from onoma.systems.binder.model import Binder
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.systems.blocks.encoders import load_encoder, save_tokenizer
from onoma.training.calibration import calibration_error, fit_calibration
from onoma.training.card import write_card
from onoma.training.collating import BinderCollator
from onoma.training.development import DevelopmentSet
from onoma.training.examples import make_examples
from onoma.training.progress import ProgressBar
from onoma.training.prototypes import Prototypes
from onoma.training.recipe import CorpusRecipe, DataRecipe, Recipe, load_recipe
from onoma.training.sampling import BucketedBatches
from onoma.training.trainer import KeepBest, StageTrainer, training_arguments

CHECKPOINTS, METRICS, TOKENIZER = "checkpoints", "metrics.json", "tokenizer"
SCORES = np.arange(0.06, 0.96, 0.02).round(2)  # thresholds to choose from, of calibrated scores
SIMILARITIES = 1 / (1 + np.exp(-np.arange(2.0, 15.0)))  # and of similarities, as scores before calibration
CALIBRATION_FLOOR = -6.0  # margins below this are left out when scores are calibrated


def train(
    recipe: Recipe | str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    data: str | os.PathLike[str] = ".",
    changes: Sequence[str] = (),
) -> Path:
    """Train a model, test it, and return its folder. A run that was interrupted goes on where it stood.

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
    corpora = {part: _load(recipe.data, Path(data), part) for part in ("train", "dev", "test")}
    for part in ("train", "dev"):
        if not corpora[part]:
            raise OnomaError(f"the recipe has no {part} data: name the '{part}' split of a corpus in data.corpora")
    if not any(document.entities for corpus in corpora["train"] for document in corpus):
        raise OnomaError("the train data has no mention: there is nothing to learn")
    types = _joint_types(corpora["train"])
    with arguments.main_process_first(local=False):
        save_tokenizer(recipe.encoder, output / TOKENIZER)
    backend = _new_model(recipe, types, output / TOKENIZER)
    development = [DevelopmentSet(_packed(corpus, recipe.data), backend) for corpus in corpora["dev"]]
    counts, trainer_metrics = _fit(recipe, corpora["train"], types, backend, development, arguments, output)
    _calibrate(backend, development, recipe)
    tested = {c.name: DevelopmentSet(_packed(c, recipe.data), backend).evaluate(backend) for c in corpora["test"]}
    metrics = {
        "dev": {one.corpus.name: one.evaluate(backend) for one in development},
        "test": tested,
        "examples": asdict(counts),
        **trainer_metrics,
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


def recalibrate(
    folder: str | os.PathLike[str], recipe: Recipe | str | os.PathLike[str], *, data: str | os.PathLike[str] = "."
) -> tuple[ModelConfig, dict[str, dict[str, float]]]:
    """Fit the scores and the threshold of a trained model to the development data of a recipe, and write them down."""
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    backend = load(folder)
    backend.config = replace(backend.config, scale=1.0, bias=0.0, threshold=0.5)
    development = [DevelopmentSet(_packed(one, recipe.data), backend) for one in _load(recipe.data, Path(data), "dev")]
    _calibrate(backend, development, recipe)
    backend.config.save(folder)
    return backend.config, {one.corpus.name: one.evaluate(backend) for one in development}


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


def _load(recipe: DataRecipe, root: Path, part: str) -> list[Corpus]:
    """One part (train, dev or test) of every corpus of a recipe; corpora without it are left out."""
    loaded = [_load_one(one, recipe, root, part) for one in recipe.corpora]
    return [corpus for corpus in loaded if corpus is not None and (len(corpus) or part == "train")]


def _load_one(one: CorpusRecipe, recipe: DataRecipe, root: Path, part: str) -> Corpus | None:
    source, wanted, names = root / one.path, getattr(one, part), one.names or recipe.names
    if wanted is None:
        return None
    present = find_splits(source)
    cut_dev = one.dev is not None and one.dev not in present and one.train is not None
    if part == "train" and wanted not in present:
        fix = "name the split as 'train' of this corpus, or write 'train: null' to only measure on it"
        raise DataError(f"there is no split {wanted!r}", path=source, fix=fix)
    if wanted not in present and not (part == "dev" and cut_dev):
        return None
    stored = one.train if part == "dev" and cut_dev else wanted
    corpus = load_corpus(source, stored, natural_names=names == "natural", language=recipe.language)
    if cut_dev and part != "test":
        corpus = split(corpus, {"train": 1 - one.dev_share, "dev": one.dev_share}, seed=0)[part]
    corpus = _limited(corpus, {"train": one.limit, "dev": one.dev_limit}.get(part))
    inventory = Inventory.load()
    if names == "inventory" and corpus.name in inventory.corpora:  # others name and describe their types themselves
        corpus = inventory.unify(corpus, language="zh" if recipe.language == "zh" else "en")
    return corpus


def _limited(corpus: Corpus, limit: int | None) -> Corpus:
    """Some documents of a corpus, in their order."""
    if limit is None or limit >= len(corpus):
        return corpus
    chosen = np.sort(np.random.default_rng(0).permutation(len(corpus))[:limit])
    return replace(corpus, documents=[corpus.documents[i] for i in chosen])


def _packed(corpus: Corpus, recipe: DataRecipe) -> Corpus:
    return pack(corpus) if recipe.windows == "across" else corpus


def _joint_types(corpora: Sequence[Corpus]) -> list[EntityType]:
    """The types of all corpora, each once; a description wins over none."""
    types: dict[str, EntityType] = {}
    for corpus in corpora:
        for one in corpus.types:
            if one.name not in types or (one.description and not types[one.name].description):
                types[one.name] = one
    return list(types.values())


def _new_model(recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> TorchBinder:
    """An untrained model on its encoder."""
    options = recipe.binder_options()
    separate = not options.shared_encoder and options.types != "atomic"
    type_encoder = load_encoder(recipe.encoder) if separate else None
    model = Binder(load_encoder(recipe.encoder), type_encoder, options, recipe.max_tokens, len(types))
    config = ModelConfig(
        system="binder",
        encoder=Path(recipe.encoder).name if Path(recipe.encoder).is_dir() else recipe.encoder,
        max_tokens=recipe.max_tokens,
        overlap=recipe.overlap,
        types={one.name: one.description for one in types},
        options={**asdict(options), "weights": list(options.weights)},
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return TorchBinder(model.to(device), config, Subwords.load(tokenizer_folder))


def _fit(
    recipe: Recipe,
    corpora: Sequence[Corpus],
    types: Sequence[EntityType],
    backend: TorchBinder,
    development: Sequence[DevelopmentSet],
    arguments: TrainingArguments,
    output: Path,
) -> tuple[Any, dict[str, Any]]:
    """Train the model in place and leave it with its best weights."""
    settings, data = recipe.training, recipe.data
    examples, counts = make_examples(
        [_packed(corpus, data) for corpus in corpora],
        {one.name: number for number, one in enumerate(types)},
        backend.subwords,
        max_tokens=recipe.max_tokens,
        overlap=recipe.overlap,
        drop_empty=data.drop_empty,
    )
    temperature = {"proportional": 1.0, "uniform": float("inf")}.get(str(data.sampling), data.sampling)
    batches = BucketedBatches(
        examples,
        settings.batch_size,
        seed=recipe.seed,
        temperature=float(temperature),
        cap=data.cap,
        draws=data.draws,
        shares=[one.share for one in data.corpora if one.train is not None],
    )
    prototypes = None
    if backend.model.options.types == "prototype":
        prototypes = Prototypes(examples, len(types), backend.subwords)
        backend.config.options["prototypes"] = prototypes.for_use(recipe.seed)
    collator = BinderCollator(
        types,
        backend.subwords,
        backend.model.options,
        most_types=data.most_types,
        type_dropout=settings.type_dropout,
        seed=recipe.seed,
        prototypes=prototypes,
    )
    patience = settings.patience * settings.evaluate_every
    best = KeepBest(backend.model, patience, output / "best.safetensors" if settings.checkpoints else None)
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(output / "logs")
    trainer = StageTrainer(
        backend.model,
        arguments,
        examples,
        batches,
        collator,
        lambda: _mean_scores(development, backend),
        settings,
        [best, ProgressBar()] if arguments.should_save else [best],
    )
    resumed_at, checkpoint = _last_checkpoint(output / CHECKPOINTS)
    result = trainer.train(resume_from_checkpoint=checkpoint)
    trainer.evaluate()
    trainer.accelerator.wait_for_everyone()  # the best weights must have been written
    best.restore()
    if arguments.should_save:
        with atomic_write(output / "curve.jsonl") as file:
            file.writelines(json.dumps(row) + "\n" for row in trainer.state.log_history)
    seen = (trainer.state.epoch or 0) * (1 - resumed_at / max(trainer.state.global_step, 1))  # epochs, since resumed
    speed = seen * sum(len(example.pieces.counts) for example in examples) / max(result.metrics["train_runtime"], 1e-9)
    return counts, {
        "steps": trainer.state.global_step,
        "best_step": trainer.state.best_global_step,
        "best_dev_f1": trainer.state.best_metric,
        "train_seconds": result.metrics["train_runtime"],
        "train_words_per_second": round(speed),
    }


def _last_checkpoint(folder: Path) -> tuple[int, str | None]:
    """The step and path of the newest checkpoint that was written to its end; its state is written last."""
    complete = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    return max(((int(path.name.split("-")[1]), str(path)) for path in complete), default=(0, None))


def _mean_scores(development: Sequence[DevelopmentSet], backend: TorchBinder) -> dict[str, float]:
    """The mean over development sets, and the F1 of each where there are several.

    Where no threshold is learned, it is tuned at each evaluation, so that models are compared at their best.
    """
    if backend.model.options.thresholds == "tuned":
        backend.config = replace(backend.config, threshold=_best_threshold(backend, development, SIMILARITIES))
    each = {one.corpus.name: one.evaluate(backend) for one in development}
    mean = {name: float(np.mean([scores[name] for scores in each.values()])) for name in ("precision", "recall", "f1")}
    return mean if len(each) == 1 else mean | {f"{name}_f1": scores["f1"] for name, scores in each.items()}


def _calibrate(backend: TorchBinder, development: Sequence[DevelopmentSet], recipe: Recipe) -> None:
    """Fit the score to the chance of being right, and set the default threshold.

    With dynamic or global thresholds the paper's own rule (margin above 0) stays the default; otherwise, and
    on request, the threshold is the one with the best mean F1 on the development data.
    """
    floor = float(to_scores(np.array([CALIBRATION_FLOOR], np.float32), backend.config)[0])
    if backend.model.options.thresholds == "tuned":
        floor = 0.5  # a similarity of 0
    pairs = [one.calibration_data(one.propose(backend, floor)) for one in development]
    score, right = (np.concatenate(column) for column in zip(*pairs, strict=True))
    if not right.any() or right.all():
        return
    margin = np.log(score) - np.log1p(-np.minimum(score, 1 - 1e-7))
    scale, bias = fit_calibration(margin, right)
    at_zero = float(to_scores(np.zeros(1, np.float32), replace(backend.config, scale=scale, bias=bias))[0])
    backend.config = replace(backend.config, scale=scale, bias=bias, threshold=at_zero)
    if recipe.training.threshold_on == "dev" or backend.model.options.thresholds == "tuned":
        backend.config = replace(backend.config, threshold=_best_threshold(backend, development, SCORES))
    calibrated = to_scores(margin.astype(np.float32), backend.config)
    backend.config = replace(
        backend.config,
        options={**backend.config.options, "calibration_error": round(calibration_error(calibrated, right), 4)},
    )


def _best_threshold(backend: TorchBinder, development: Sequence[DevelopmentSet], grid: NDArray[np.float64]) -> float:
    """The threshold of a grid with the best mean dev F1."""
    found = [one.propose(backend, float(grid[0])) for one in development]
    means = [
        np.mean([one.scores(one.decode(p, float(x)))["f1"] for one, p in zip(development, found, strict=True)])
        for x in grid
    ]
    return float(grid[int(np.argmax(means))])
