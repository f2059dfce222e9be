"""`onoma bench`: training and testing by the protocols of papers, and speed."""

from __future__ import annotations

import json
import shlex
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onoma.cli.shared import BackendName, Changes, Data, Device, Json, Model, is_main_process, print_json, show
from onoma.errors import OnomaError

if TYPE_CHECKING:
    from onoma.training.outcomes import Outcome

bench = typer.Typer(
    help="Train and test as papers do: joint, zero-shot, few-shot, and learning curves; measure speed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
RecipePath = Annotated[Path, typer.Argument(metavar="RECIPE", help="Recipe: a YAML file.")]
Runs = Annotated[Path, typer.Option(help="Folder of the runs and of results.json; finished runs are not repeated.")]
Start = Annotated[
    str, typer.Option(help="Trained model to start from, made with the same recipe: a folder or hub name.")
]
Corpora = Annotated[list[str], typer.Option("--corpus", metavar="NAME", help="Corpus of the recipe; may be repeated.")]
Samples = Annotated[int, typer.Option(min=1, help="Repetitions, each with other sentences.")]
Steps = Annotated[int, typer.Option(min=1, help="Steps for 20 sentences; more are used for more sentences.")]
KeepModels = Annotated[bool, typer.Option("--keep-models", help="Keep the model of every run, not only its scores.")]


@bench.command("joint", epilog="Example: onoma bench joint recipes/suner/joint.yaml --data corpora --output runs/joint")
def bench_joint(
    recipe: RecipePath, output: Runs, data: Data = Path("."), changes: Changes = None, as_json: Json = False
) -> None:
    """Train one model for all corpora of a recipe, and test it on each of them."""
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
    left_out: Annotated[list[str], typer.Option(metavar="NAME", help="Corpus to exclude; may be repeated.")],
    data: Data = Path("."),
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Train without some corpora of a recipe, and test on these."""
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
    corpora: Corpora,
    sentences: Annotated[int, typer.Option(min=1, help="Sentences to train on.")] = 20,
    samples: Samples = 3,
    steps: Steps = 120,
    keep_models: KeepModels = False,
    data: Data = Path("."),
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Fine-tune a trained model on a few sentences of a corpus; mean and spread over several choices of them."""
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
    corpora: Corpora,
    sizes: Annotated[str, typer.Option(help="Numbers of sentences to train on.")] = "20,50,100,200,500",
    samples: Samples = 3,
    steps: Steps = 120,
    plot: Annotated[Path | None, typer.Option(help="File to draw the curve into: .svg, .png or .pdf.")] = None,
    keep_models: KeepModels = False,
    data: Data = Path("."),
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Few-shot with increasing numbers of sentences: a learning curve, as a table and as a plot."""
    from onoma.evaluation.curves import plot_curves, require_plot

    numbers = _numbers(sizes, "--sizes")
    if plot:
        require_plot(plot)  # before long work
    from onoma.training.protocols import learning_curve, load_few_shot

    outcome = learning_curve(
        load_few_shot(recipe, changes or ()),
        corpora,
        start,
        output=output,
        data=data,
        sizes=numbers,
        samples=samples,
        steps=steps,
        keep_models=keep_models,
        on_run=_announce,
    )
    _finish(outcome, output, as_json)
    if plot and is_main_process():
        plot_curves(outcome.curves(), plot)


@bench.command("speed", epilog="Example: onoma bench speed --model runs/drugs/model --label-counts 1,10,100")
def bench_speed(
    model: Model = None,
    texts: Annotated[
        str | None, typer.Option(help="File to read texts from: JSON lines, or one text per line; by default a sample.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="Texts that are read in each turn.")] = 200,
    label_counts: Annotated[str, typer.Option(help="Numbers of labels to ask for.")] = "1,10,100,1000,5000",
    text_lengths: Annotated[
        str, typer.Option(help="Lengths of single texts, in words; 0: leave this out.")
    ] = "10,100,1000,10000,100000",
    batch_sizes: Annotated[str, typer.Option(help="Batch sizes; 0: leave this out.")] = "1,8,64,256",
    turns: Annotated[int, typer.Option(min=1, help="Repetitions; rates are medians over them.")] = 5,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads for onnx; by default one per usable core.")
    ] = None,
    backend: BackendName = "auto",
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Measure sentences and words per second, latency, memory and start-up time on this machine.

    The rate of the bare encoder on the same tokens is the limit of what extraction can reach. The numbers of labels
    and the encoder take turns, so that other work on the machine slows all of them down alike.
    """
    from onoma.evaluation.speed import SpeedSettings, measure_speed, sample_sentences
    from onoma.extractor import load

    settings = SpeedSettings(
        _numbers(label_counts, "--label-counts"),
        [] if text_lengths.strip() == "0" else _numbers(text_lengths, "--text-lengths"),
        [] if batch_sizes.strip() == "0" else _numbers(batch_sizes, "--batch-sizes"),
        turns,
        lambda doing: print(f"measuring: {doing}", file=sys.stderr, flush=True),
    )
    if texts is None:
        chosen = sample_sentences(sentences)
    else:
        from onoma.data.texts import read_texts

        chosen = [one.text for one in islice(read_texts(texts, by_line=True).documents, sentences)]
    found = measure_speed(load(model, backend, device, threads), chosen, settings)
    if as_json:
        print_json(found)
        return
    from onoma.evaluation.speed_tables import render_speed

    show(render_speed(found))


def _numbers(text: str, option: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise OnomaError(f"{option} takes numbers such as 20,50,100, got {text!r}")
    return [int(part) for part in parts]


def _finish(outcome: Outcome, output: Path, as_json: bool) -> None:
    """Write the results of a protocol, and show them."""
    if not is_main_process():
        return
    path = outcome.write(output, shlex.join(["onoma", *sys.argv[1:]]))
    if as_json:
        print_json(json.loads(path.read_text("utf-8")))
        return
    from onoma.training.outcomes import render_outcome

    show(render_outcome(outcome))
    print(f"written to {path}")


def _announce(what: str) -> None:
    if is_main_process():
        print(what, file=sys.stderr)
