"""The commands `onoma bench ...`: thin, as those of `cli.py`, of which they are a part."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onoma.errors import OnomaError

if TYPE_CHECKING:
    from onoma.training.outcomes import Outcome

bench = typer.Typer(
    help="Train and measure as papers do: joint, zero-shot, few-shot, and over the size of the training data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
RecipePath = Annotated[Path, typer.Argument(metavar="RECIPE", help="Recipe: a YAML file.")]
Runs = Annotated[Path, typer.Option(help="Folder of the runs and of results.json; what is finished there stays.")]
Data = Annotated[Path, typer.Option(help="Folder in which the corpora of the recipe lie.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Changes = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the recipe.")]
Start = Annotated[
    str, typer.Option(help="Trained model to start from, made with the same recipe: a folder or hub name.")
]
Shown = Annotated[list[str], typer.Option("--corpus", metavar="NAME", help="Corpus of the recipe; may be repeated.")]
Samples = Annotated[int, typer.Option(min=1, help="Times that it is repeated, each with other sentences.")]
Steps = Annotated[int, typer.Option(min=1, help="Steps of a run with 20 sentences; with more of them, more.")]
KeepModels = Annotated[bool, typer.Option("--keep-models", help="Keep the model of every run, not only its scores.")]


@bench.command("joint", epilog="Example: onoma bench joint recipes/suner/joint.yaml --data corpora --output runs/joint")
def bench_joint(
    recipe: RecipePath, output: Runs, data: Data = Path("."), changes: Changes = None, as_json: Json = False
) -> None:
    """Train one model for all corpora of a recipe, and measure it on each of them."""
    from onoma.training.protocols import joint
    from onoma.training.recipe import load_recipe

    _finish(joint(load_recipe(recipe, changes or ()), output=output, data=data), output, as_json)


@bench.command(
    "zero-shot",
    epilog="Example: onoma bench zero-shot recipes/suner/zero_shot.yaml --left-out conll2003 "
    "--data corpora --output runs/zero",
)
def bench_zero_shot(
    recipe: RecipePath,
    output: Runs,
    left_out: Annotated[list[str], typer.Option(metavar="NAME", help="Corpus to leave out; may be repeated.")],
    data: Data = Path("."),
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Train on the other corpora of a recipe, and measure on those that were left out."""
    from onoma.training.protocols import zero_shot
    from onoma.training.recipe import load_recipe

    _finish(zero_shot(load_recipe(recipe, changes or ()), left_out, output=output, data=data), output, as_json)


@bench.command(
    "few-shot",
    epilog="Example: onoma bench few-shot recipes/suner/zero_shot.yaml --start runs/zero --corpus conll2003 "
    "--data corpora --output runs/few",
)
def bench_few_shot(
    recipe: RecipePath,
    output: Runs,
    start: Start,
    corpora: Shown,
    sentences: Annotated[int, typer.Option(min=1, help="Sentences to train on.")] = 20,
    samples: Samples = 3,
    steps: Steps = 120,
    keep_models: KeepModels = False,
    data: Data = Path("."),
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Go on from a trained model with a few sentences of a corpus; mean and spread over several choices of them."""
    from onoma.training.protocols import learning_curve, load_few_shot

    outcome = learning_curve(
        load_few_shot(recipe, changes or ()),
        corpora,
        start,
        output=output,
        data=data,
        sizes=[sentences],
        samples=samples,
        steps=steps,
        keep_models=keep_models,
        on_run=_announce,
    )
    _finish(outcome, output, as_json)


@bench.command(
    "curve",
    epilog="Example: onoma bench curve recipes/suner/zero_shot.yaml --start runs/zero --corpus mit_movie_eng "
    "--data corpora --output runs/curve --plot curve.svg",
)
def bench_curve(
    recipe: RecipePath,
    output: Runs,
    start: Start,
    corpora: Shown,
    sizes: Annotated[str, typer.Option(help="Numbers of sentences to train on.")] = "20,50,100,200,500",
    samples: Samples = 3,
    steps: Steps = 120,
    plot: Annotated[Path | None, typer.Option(help="File to draw the curve into: .svg, .png or .pdf.")] = None,
    keep_models: KeepModels = False,
    data: Data = Path("."),
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Few-shot with more and more sentences: a learning curve, as a table and as a plot."""
    from onoma.evaluation.curves import plot_curves, require_plot

    numbers = [part.strip() for part in sizes.split(",")]
    if not all(part.isdecimal() and int(part) for part in numbers):
        raise OnomaError(f"--sizes takes numbers of sentences such as 20,50,100, got {sizes!r}")
    if plot:
        require_plot(plot)  # hours before it is needed
    from onoma.training.protocols import learning_curve, load_few_shot

    outcome = learning_curve(
        load_few_shot(recipe, changes or ()),
        corpora,
        start,
        output=output,
        data=data,
        sizes=[int(part) for part in numbers],
        samples=samples,
        steps=steps,
        keep_models=keep_models,
        on_run=_announce,
    )
    _finish(outcome, output, as_json)
    if plot and _is_first_process():
        plot_curves(outcome.curves(), plot)


def _finish(outcome: Outcome, output: Path, as_json: bool) -> None:
    """Write the results of a protocol, and show them."""
    if not _is_first_process():
        return
    path = outcome.write(output, shlex.join(["onoma", *sys.argv[1:]]))
    if as_json:
        print(path.read_text("utf-8"))
        return
    from rich.console import Console

    from onoma.training.outcomes import render_outcome

    Console().print(render_outcome(outcome))
    print(f"written to {path}")


def _announce(what: str) -> None:
    if _is_first_process():
        print(what, file=sys.stderr)


def _is_first_process() -> bool:
    """Of several processes that train together, the first one speaks."""
    return os.environ.get("RANK", "0") == "0"
