"""`onoma compare`."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from onoma.cli.shared import Changes, Json, is_main_process, print_json, show
from onoma.errors import OnomaError


def compare(
    recipes: Annotated[list[Path], typer.Argument(metavar="RECIPE", help="Recipes: YAML files.")],
    data: Annotated[
        Path, typer.Option(help="Folder of the corpora that the recipes name, or one corpus for all of them.")
    ] = Path("."),
    output: Annotated[
        Path, typer.Option(help="Folder of the runs and of comparison.json; finished runs are not repeated.")
    ] = Path("runs/compare"),
    seeds: Annotated[str, typer.Option(help="Seeds; each recipe is trained with each of them.")] = "0,1,2",
    changes: Changes = None,
    variants: Annotated[
        list[str] | None,
        typer.Option(
            "--vary", metavar="KEY=VALUE", help="Train each recipe with this change as well; may be repeated."
        ),
    ] = None,
    against: Annotated[
        Literal["first", "best"], typer.Option(help="Baseline: the first recipe, or the best one on dev.")
    ] = "first",
    samples: Annotated[int, typer.Option(min=1, help="Replicates of the bootstrap.")] = 1000,
    as_json: Json = False,
) -> None:
    """Train several recipes on the same data, and compare them: means over seeds, spread and significance."""
    numbers = re.split(r"[\s,]+", seeds.strip())
    if not all(part.isdecimal() and int(part) < 2**32 for part in numbers):
        raise OnomaError(f"--seeds takes numbers from 0 to {2**32 - 1} such as 0,1,2, got {seeds!r}")
    try:
        from onoma.training.compare import compare as compare_recipes
        from onoma.training.compare import load_recipes, render_comparison
    except ModuleNotFoundError as error:
        raise OnomaError(f'training needs {error.name}. Fix: pip install "onoma[train]"') from error

    results = compare_recipes(
        load_recipes(recipes, data, changes or (), variants or ()),
        seeds=[int(part) for part in numbers],
        output=output,
        data=data,
        against=against,
        samples=samples,
        on_run=_announce,
    )
    if not is_main_process():
        return
    path = results.write(output, shlex.join(["onoma", *sys.argv[1:]]))
    if as_json:
        print_json(json.loads(path.read_text("utf-8")))
        return
    show(render_comparison(results))
    print(f"written to {path}")


def _announce(what: str) -> None:
    if is_main_process():
        print(what, file=sys.stderr)
