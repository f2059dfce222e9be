"""`onoma train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.shared import Changes, Data, Json, is_main_process, print_json


def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe: a YAML file.")],
    output: Annotated[Path, typer.Option(help="Folder of the run; an interrupted run continues there.")],
    data: Data = Path("."),
    changes: Changes = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for tokenised corpora, which other runs can use.")] = None,
    as_json: Json = False,
) -> None:
    """Train a model, choose its weights on dev, and test it.

    For several GPUs: torchrun --nproc-per-node 4 -m onoma train.
    """
    from onoma.training import train as run_recipe

    folder = run_recipe(recipe, output=output, data=data, changes=changes or (), cache=cache)
    if not is_main_process():
        return
    metrics = json.loads((output / "metrics.json").read_text("utf-8"))
    if as_json:
        print_json({"model": str(folder), **metrics})
        return
    for part in ("dev", "test"):
        for name, scores in metrics[part].items():
            values = (f"{measure} {scores[measure]:.2f}" for measure in ("precision", "recall", "f1"))
            print(f"{part} of {name}: {', '.join(values)}")
    print(f"written to {folder}")
