"""Fine-tuning with few data: 20 to 200 annotated sentences, a trained or embedded model, and no recipe.

OUTPUT/
    model/      the tuned model, and the other files of a training run
    onnx/       the same model in int8, which runs without PyTorch
    check/      if there is no dev split: a run on four fifths of the documents, tested on the others
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.data.corpora import find_splits, load_corpus, read_info
from onoma.errors import DataError
from onoma.evaluation.history import CHECK
from onoma.evaluation.runs import DEV_SPLITS
from onoma.models.config import CONFIG_FILE
from onoma.models.export import export
from onoma.models.folder import open_single
from onoma.models.hub import EMBEDDED_NAME
from onoma.training.card import write_card
from onoma.training.corpora import load_part
from onoma.training.recipe import Recipe, load_recipe
from onoma.training.run import METRICS, train

ONNX = "onnx"
MAX_DEV = 100  # documents: more would take longer than training
FEWEST_DOCUMENTS = 5
MOST_CHECKED = 400  # of more documents, a tenth is held out, and there is no second run
HELD_OUT, HELD_OUT_OF_MANY = 0.2, 0.1
STEPS = 80  # for 20 documents; more for more documents
SETTINGS: dict[str, Any] = {
    "batch_size": 8,
    "learning_rate": 8e-5,
    "head_learning_rate": 3e-4,
    "frozen_layers": "half",
    "start_share": "dev",
    "threshold_from": "start",
    "threshold_factor": 0.5,
    "dataloader_workers": 0,
    "checkpoints": False,  # the whole run takes minutes
    "cuda_graphs": False,  # not worthwhile for so few steps
}


@dataclass(frozen=True, slots=True)
class FineTuned:
    """A fine-tuned model."""

    model: Path
    onnx: Path  # the same in int8
    labels: tuple[str, ...]
    documents: int  # that it was trained on
    held_out: int  # documents on which the check was tested; 0: there is a dev split
    before: dict[str, float]  # scores of the start on these documents, or on dev
    after: dict[str, float]
    metrics: dict[str, Any]  # of the run


def few_data_recipe(
    data: str | os.PathLike[str],
    start: str = EMBEDDED_NAME,
    changes: Sequence[str] = (),
    *,
    dev_share: float = 0.0,
) -> Recipe:
    """A recipe for a corpus of some dozens of documents: a file or a folder, in any format.

    The number of steps depends on the number of documents. Lower layers and calibration stay those of the start. With a
    dev split, or with a share of the documents held out as dev, weights are chosen there: how far they may move away
    from the start. Otherwise the last weights are kept.
    """
    source = Path(data)
    splits = find_splits(source)
    train_split = _train_split(source, splits)
    dev = next((name for name in DEV_SPLITS if name in splits), "dev" if dev_share else None)
    documents = len(load_corpus(source, train_split))
    if documents < FEWEST_DOCUMENTS:
        fix = f"annotate at least {FEWEST_DOCUMENTS}"
        raise DataError(f"{documents} documents are too few to train on", path=source, fix=fix)
    corpus: dict[str, Any] = {"path": str(source.absolute()), "train": train_split, "dev": dev, "dev_limit": MAX_DEV}
    if dev_share:
        corpus["dev_share"] = dev_share
    steps = int(STEPS * max(1.0, documents / 20) ** 0.3)
    settings = SETTINGS | {"max_steps": steps, "eval_steps": -(-steps // 4) if dev in splits else steps}
    values = {
        "start": start,
        "data": {"corpora": [corpus], "names": "natural", "windows": "sentence", "drop_empty_windows": False},
        "training": settings if dev is not None else settings | {"start_share": 0.0},
    }
    return load_recipe(values, changes)


def _train_split(source: Path, splits: dict[str, Path]) -> str:
    if "train" in splits:
        return "train"
    others = [name for name in splits if name not in (*DEV_SPLITS, "test")]
    if len(others) != 1:
        fix = "name the file to train on train.jsonl, or give its path"
        raise DataError(f"there is no split 'train', only {', '.join(splits)}", path=source, fix=fix)
    return others[0]


def fine_tune(
    data: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    start: str = EMBEDDED_NAME,
    changes: Sequence[str] = (),
    on_run: Callable[[str], None] = lambda text: None,
) -> FineTuned:
    """Fine-tune a model on a small corpus, and export it in int8.

    Without a dev split there are two runs: the first one, on four fifths of the documents, is tested on the others,
    which tells what fine-tuning gains, and how far the weights should move away from the start; the second one is the
    model, trained on all documents. `output` is runs/NAME by default, after the corpus; `on_run` is called before each
    run.

    >>> fine_tune("drugs.jsonl", output="runs/drugs").onnx  # doctest: +SKIP
    """
    output = Path("runs", read_info(data).name) if output is None else Path(output)
    recipe = few_data_recipe(data, start, changes)
    held_out, measured = 0, None
    if recipe.data.corpora[0].dev is None:
        few = _count(recipe, "train") <= MOST_CHECKED
        checked = few_data_recipe(data, start, changes, dev_share=HELD_OUT if few else HELD_OUT_OF_MANY)
        if few:
            held_out = _count(checked, "dev")
            on_run(f"check: training on {_count(checked, 'train')} documents, testing on {held_out}")
            measured = _check(checked, output / CHECK)
            chosen = [f"training.start_share={measured['start_share']}"] if "start_share" in measured else []
            recipe = few_data_recipe(data, start, [*changes, *chosen])
        else:
            recipe = checked
    on_run(f"training on {_count(recipe, 'train')} documents")
    model = train(recipe, output=output)
    metrics = _read_metrics(output)
    config = open_single(model, "export").config
    if _is_main_process():
        if measured is not None:
            write_card(model, recipe, config, {**metrics, "check": measured["dev"]})
        if not (output / ONNX / CONFIG_FILE).is_file():
            export(model, output / ONNX, int8=True)
    scores = metrics if measured is None else measured
    (before,), (after,) = scores["start"]["dev"].values(), scores["dev"].values()
    labels = tuple(label for corpus in load_part(recipe.data, Path(), "train") for label in corpus.labels)
    return FineTuned(model, output / ONNX, labels, _count(recipe, "train"), held_out, before, after, metrics)


def _count(recipe: Recipe, part: str) -> int:
    """The number of documents of a part of the corpus."""
    documents = sum(map(len, load_part(recipe.data, Path(), part)))
    if not documents:
        source = recipe.data.corpora[0].path
        raise DataError(f"there is nothing to use as {part}", path=source, fix="annotate texts that differ")
    return documents


def _check(recipe: Recipe, output: Path) -> dict[str, Any]:
    """Train on a part of the documents; only the metrics are kept."""
    model = train(recipe, output=output)
    if _is_main_process():
        shutil.rmtree(model, ignore_errors=True)
    return _read_metrics(output)


def _is_main_process() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _read_metrics(run: Path) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((run / METRICS).read_text("utf-8"))
    return metrics
