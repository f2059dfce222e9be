"""`onoma train`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from onoma.cli.shared import Changes, Json, is_main_process, print_json
from onoma.errors import OnomaError

SHOWN_LABELS = 10
"""Of the types of a model, in the command that uses it."""


def train(
    recipe: Annotated[Path | None, typer.Argument(help="Recipe: a YAML file. Without one, give --start.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the run; an interrupted run continues there.", show_default=False)
    ] = None,
    data: Annotated[
        Path, typer.Option(help="Folder of the corpora that the recipe names; without a recipe, a corpus.")
    ] = Path("."),
    start: Annotated[
        str | None, typer.Option(help="Model to fine-tune: embedded, a folder or a hub name.", show_default=False)
    ] = None,
    changes: Changes = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for tokenised corpora, which other runs can use.")] = None,
    as_json: Json = False,
) -> None:
    """Train a model, choose its weights on dev, and test it; or fine-tune a model on some dozens of sentences.

    For several GPUs: torchrun --nproc-per-node 4 -m onoma train.
    """
    if recipe is None:
        _fine_tune(start, data, output, changes or (), as_json)
        return
    if output is None:
        raise OnomaError("a training run needs a folder to write to. Fix: give --output, such as --output runs/drugs")
    from onoma.training import train as run_recipe

    changes = [*(changes or ()), *([] if start is None else [f"start={json.dumps(start)}", "encoder=''"])]
    folder = run_recipe(recipe, output=output, data=data, changes=changes, cache=cache)
    if not is_main_process():
        return
    metrics = json.loads((output / "metrics.json").read_text("utf-8"))
    if as_json:
        print_json({"model": str(folder), **metrics})
        return
    _print_scores(metrics)
    print(f"written to {folder}")


def _print_scores(metrics: dict[str, Any]) -> None:
    for part in ("dev", "test"):
        for name, scores in metrics[part].items():
            values = (f"{measure} {scores[measure]:.2f}" for measure in ("precision", "recall", "f1"))
            before = metrics.get("start", {}).get(part, {}).get(name)
            gained = "" if before is None else f" (f1 of the start: {before['f1']:.2f})"
            print(f"{part} of {name}: {', '.join(values)}{gained}")


def _fine_tune(start: str | None, data: Path, output: Path | None, changes: Sequence[str], as_json: bool) -> None:
    """Fine-tune a model without a recipe, and print what was gained and how to use it."""
    if start is None:
        raise OnomaError(
            "there is no recipe. Fix: give one, such as recipes/binder/conll2003.yaml, or a model to fine-tune: "
            "onoma train --start embedded --data CORPUS"
        )
    from onoma.training import fine_tune

    tuned = fine_tune(data, output=output, start=start, changes=changes, on_run=_report)
    if not is_main_process():
        return
    if as_json:
        measured = {"before": tuned.before, "after": tuned.after, "held_out": tuned.held_out}
        print_json({"model": str(tuned.model), "onnx": str(tuned.onnx), **measured, **tuned.metrics})
        return
    if tuned.held_out:
        rest = tuned.documents - tuned.held_out
        print(f"check: trained on {rest} documents, tested on {tuned.held_out} others")
    _print_gain("of the check" if tuned.held_out else "on dev", tuned.before, tuned.after)
    for name, scores in tuned.metrics["test"].items():
        _print_gain(f"on test of {name}", tuned.metrics["start"]["test"][name], scores)
    size = sum(path.stat().st_size for path in tuned.onnx.iterdir()) / 1e6
    print(f"trained on {tuned.documents} documents, written to {tuned.model}, in int8 to {tuned.onnx} ({size:.1f} MB)")
    print(how_to_use(tuned.onnx, tuned.labels))


def how_to_use(model: Path, labels: Sequence[str]) -> str:
    """The command that extracts with a model, and how many of its types it leaves out."""
    named, more = ", ".join(labels[:SHOWN_LABELS]), len(labels) - SHOWN_LABELS
    rest = f" (and {more} more: onoma info {model})" if more > 0 else ""
    return f'use it: onoma extract TEXT --model {model} --labels "{named}"{rest}'


def _print_gain(where: str, before: dict[str, float], after: dict[str, float]) -> None:
    print(f"f1 {where}: {before['f1']:.2f} before, {after['f1']:.2f} after")


def _report(text: str) -> None:
    if is_main_process():
        print(text, file=sys.stderr, flush=True)
