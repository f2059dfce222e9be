"""Protocols: what a model is trained on, and what it is tested on.

Each protocol derives recipes from a recipe, so that every run can be inspected and repeated by itself:

- joint: one model for all corpora of a recipe (the recipe as it is);
- zero-shot: some corpora are excluded from training and used for testing only;
- few-shot: a trained model is fine-tuned on a few sentences of a corpus; repeated with other sentences;
- learning curve: the same with increasing numbers of sentences.

Finished runs are not trained again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from onoma.data.corpora import find_splits, read_info
from onoma.errors import OnomaError
from onoma.models.folder import open_single
from onoma.training import train
from onoma.training.corpora import load_part
from onoma.training.outcomes import Outcome, Value
from onoma.training.recipe import CorpusRecipe, Recipe, load_recipe
from onoma.training.run import METRICS

AnyPath = str | os.PathLike[str]
SHOTS, SAMPLES = 20, 3
CURVE = (20, 50, 100, 200, 500)
FEW_SHOT_STEPS = 120  # for 20 sentences; more for more sentences
FEW_SHOT_SETTINGS: dict[str, Any] = {
    "batch_size": 8,
    "gradient_accumulation_steps": 1,
    "checkpoints": False,
    "ema_decay": 0.0,
    "description_dropout": 0.0,
    "threshold_from": "paper",
    "dataloader_workers": 0,
    "cuda_graphs": False,  # not worthwhile for so few steps
}


def joint(recipe: Recipe, *, output: AnyPath, data: AnyPath) -> Outcome:
    """Train one model for all corpora of a recipe; its scores on the dev and test data of each."""
    metrics = _run(recipe, Path(output), data)
    values = [Value(name, part, **scores) for part in ("dev", "test") for name, scores in metrics[part].items()]
    return _outcome("joint", recipe, values)


def zero_shot(recipe: Recipe, corpora: Sequence[str], *, output: AnyPath, data: AnyPath) -> Outcome:
    """Train without some corpora, all excluded at once; the scores on the test data of each of them."""
    changed = leave_out(recipe, corpora)
    left = [_named(changed, name) for name in dict.fromkeys(corpora)]
    for one in left:
        _require_test(one, data)
    metrics = _run(changed, Path(output), data)
    names = [_name(one, data) for one in left]
    return _outcome("zero-shot", changed, [Value(name, "test", **metrics["test"][name]) for name in names])


def learning_curve(
    recipe: Recipe,
    corpora: Sequence[str],
    start: AnyPath,
    *,
    output: AnyPath,
    data: AnyPath,
    sizes: Iterable[int] = CURVE,
    samples: int = SAMPLES,
    steps: int = FEW_SHOT_STEPS,
    keep_models: bool = False,
    on_run: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Fine-tune a trained model on increasing numbers of sentences of each corpus; with one size it is few-shot.

    The runs are written to OUTPUT/CORPUS/SENTENCES-SAMPLE. Their models are removed after testing, because there are
    many; `recipe.yaml` is kept, with which each can be trained again. `on_run` is called before each run.
    """
    model, sizes = _find_start(recipe, start), sorted(set(sizes))
    chosen = [_named(recipe, name) for name in dict.fromkeys(corpora)]
    for one in chosen:
        _require_test(one, data)
        _require_sentences(few_shot(recipe, one.path, model, sentences=sizes[-1]), data)
    values = []
    for one in chosen:
        name = _name(one, data)
        for size in sizes:
            scores = []
            for sample in range(samples):
                on_run(f"{name}: {size} sentences, sample {sample + 1} of {samples}")
                run = few_shot(recipe, one.path, model, sentences=size, sample=sample, steps=steps)
                folder = Path(output) / name / f"{size}-{sample}"
                scores.append(_run_one_of_many(run, folder, data, keep_models)["test"][name])
            values.append(Value.over(name, size, scores))
    seeds = [recipe.seed + sample for sample in range(samples)]
    return _outcome("few-shot" if len(sizes) == 1 else "curve", recipe, values, seeds)


def leave_out(recipe: Recipe, corpora: Sequence[str]) -> Recipe:
    """The recipe with some corpora, given by path or name, used for testing only."""
    left = [_named(recipe, name).path for name in corpora]
    changed = [
        one.model_copy(update={"train": None, "dev": None, "test": one.test or "test"}) if one.path in left else one
        for one in recipe.data.corpora
    ]
    if all(one.train is None for one in changed):
        raise OnomaError("without these corpora there is nothing to train on")
    if all(one.dev is None for one in changed):
        raise OnomaError("without these corpora there is no dev data to choose the model on")
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"corpora": changed})})


def few_shot(
    recipe: Recipe,
    corpus: str,
    start: AnyPath,
    *,
    sentences: int = SHOTS,
    sample: int = 0,
    steps: int = FEW_SHOT_STEPS,
) -> Recipe:
    """Fine-tune a trained model on some sentences of a corpus, and nothing else.

    There is no development data in this setting: the number of steps is fixed, the last weights are used, and
    decisions are those of the paper (no threshold is chosen).
    """
    one = _named(recipe, corpus)
    split = one.train or "train"
    few = CorpusRecipe(
        path=one.path,
        train=split,
        dev=split,  # the same sentences: they only calibrate scores, which changes no decision
        test=one.test or "test",
        limit=sentences,
        dev_limit=sentences,
        sample_seed=sample,
        names=one.names,
    )
    total = round(steps * max(1.0, (sentences / SHOTS) ** 0.3))
    data = recipe.data.model_copy(
        update={"corpora": [few], "sampling": "proportional", "size_cap": None, "samples_per_epoch": None}
    )
    settings = FEW_SHOT_SETTINGS | {"max_steps": total, "eval_steps": total}  # only at the end
    return recipe.model_copy(
        update={
            "start": os.fspath(start),
            "parts": {},
            "seed": recipe.seed + sample,
            "data": data,
            "options": {name: value for name, value in recipe.options.items() if name != "hard_negatives"},
            "training": recipe.training.model_copy(update=settings),
            "stages": {},
        }
    )


def load_few_shot(recipe: AnyPath, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe for few-shot runs; changes of values that the protocol sets are an error."""
    own = {"start", "parts", "stages", "options.hard_negatives", "training.max_steps", "training.eval_steps"}
    own |= {"data.sampling", "data.size_cap", "data.samples_per_epoch"}
    own |= {f"training.{name}" for name in FEW_SHOT_SETTINGS}
    for change in changes:
        key = change.partition("=")[0]
        if key in own or key.startswith("stages."):
            raise OnomaError(f"--set {key}: the protocol sets this value. Fix: use --steps for the length of runs")
    return load_recipe(recipe, changes)


def _run(recipe: Recipe, folder: Path, data: AnyPath) -> dict[str, Any]:
    train(recipe, output=folder, data=data)
    metrics: dict[str, Any] = json.loads((folder / METRICS).read_text("utf-8"))
    return metrics


def _run_one_of_many(recipe: Recipe, folder: Path, data: AnyPath, keep_model: bool) -> dict[str, Any]:
    """A run whose model is removed after testing, unless it is to be kept."""
    done, model = folder / METRICS, folder / "model"
    if keep_model and not model.exists():
        done.unlink(missing_ok=True)  # it was tested and removed before
    known = done.is_file()
    metrics = _run(recipe, folder, data)
    if not known and not keep_model and os.environ.get("RANK", "0") == "0":
        shutil.rmtree(model)
    return metrics


def _outcome(protocol: str, recipe: Recipe, values: Iterable[Value], seeds: Iterable[int] | None = None) -> Outcome:
    seeds = [recipe.seed] if seeds is None else seeds
    return Outcome(protocol, recipe.system, recipe.encoder, tuple(seeds), tuple(values))


def _find_start(recipe: Recipe, start: AnyPath) -> Path:
    """The folder of the model to start from; the folder of a run is accepted, too."""
    model = open_single(start, "start from")
    if model.config.system != recipe.system:
        raise OnomaError(f"{start} is a model of {model.config.system}, but the recipe trains {recipe.system}")
    return model.path


def _require_test(one: CorpusRecipe, data: AnyPath) -> None:
    wanted = one.test or "test"
    if wanted not in find_splits(Path(data) / one.path):
        raise OnomaError(f"{one.path} has no split {wanted!r} to test on. Fix: name it as 'test' of this corpus")


def _require_sentences(recipe: Recipe, data: AnyPath) -> None:
    """With fewer sentences than asked for, a point of the curve would be wrong."""
    (one,) = recipe.data.corpora
    (corpus,) = load_part(recipe.data, Path(data), "train")
    if len(corpus) < (one.limit or 0):
        raise OnomaError(f"{one.path} has only {len(corpus)} sentences to train on, but {one.limit} are asked for")


def _name(one: CorpusRecipe, data: AnyPath) -> str:
    """The corpus's own name, as in the metrics of a run."""
    return read_info(Path(data) / one.path).name


def _named(recipe: Recipe, corpus: str) -> CorpusRecipe:
    """The corpus of a recipe with this path, or with this folder name if it is unique."""
    found = [one for one in recipe.data.corpora if corpus in (one.path, Path(one.path).name)]
    if not found:
        names = ", ".join(Path(one.path).name for one in recipe.data.corpora)
        raise OnomaError(f"the recipe has no corpus {corpus!r}; it has: {names}")
    paths = list(dict.fromkeys(one.path for one in found))
    if len(paths) > 1 and corpus not in paths:
        raise OnomaError(f"the recipe has several corpora {corpus!r}. Fix: give the path, {' or '.join(paths)}")
    return next(one for one in found if one.path == (corpus if corpus in paths else paths[0]))
