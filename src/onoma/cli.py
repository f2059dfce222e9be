"""The command line: thin. Each command reads its arguments here and does its work in the library.

Libraries are imported inside of the commands, so that `onoma --help` answers at once.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from onoma import __version__
from onoma.cli_bench import bench
from onoma.cli_shrink import shrinking
from onoma.errors import OnomaError

app = typer.Typer(
    name="onoma",
    help="Name the entity types you want, in words; get back every mention, with exact offsets.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench, name="bench")
app.add_typer(shrinking)
FORMAT_NAMES = "jsonl, tokens, conll, brat, doccano, gliner, spacy or pubtator"
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Model = Annotated[
    str | None, typer.Option("--model", help="Model: a folder or a hub name; by default the embedded one.")
]
Backend = Annotated[Literal["auto", "onnx", "torch"], typer.Option(help="What runs the model.")]
Device = Annotated[str | None, typer.Option(help="Where torch runs it, such as cpu or cuda.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Windows that the model reads at once.")]
Overlap = Literal["flat", "nested", "any"]
Limit = Annotated[int | None, typer.Option(min=1, help="Take only the first so many documents.")]
Threshold = Annotated[str | None, typer.Option(help='Score to reach: 0.4, or "drug=0.4, person=0.6".')]
Names = Annotated[
    Literal["natural", "inventory", "labels"],
    typer.Option(help="Types are asked for by the words of meta.json, by Onoma's inventory, or by the bare labels."),
]
Language = Annotated[str | None, typer.Option(help="Language of the names, where there are several: en or zh.")]
CorpusPath = Annotated[str, typer.Argument(help="Corpus: a file, a folder of splits, or FOLDER:SPLIT.")]


def main() -> NoReturn:
    """Run a command: exit code 0 when done, 2 on bad input or use, 1 on failure, the message on stderr."""
    _prepare()
    try:
        app()
    except OnomaError as error:
        _stop(f"error: {error}", 2)
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("ONOMA_DEBUG"):
            raise
        _stop(f"failed: {type(error).__name__}: {error} (set ONOMA_DEBUG=1 to see where)", 1)
    sys.exit(0)


def _prepare() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 shows \u escapes, not an error
    # asked to end, the program leaves by the same way as on an error, and half-written files are removed
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _stop(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def _show(what: Any) -> None:
    """Print tables; rich is imported only where there are any."""
    from rich.console import Console

    Console().print(what)


@contextmanager
def _progress(total: int | None = None) -> Iterator[Callable[[], None]]:
    """A progress bar over documents on stderr; gives the function to call after each."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("documents"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)


@contextmanager
def _spinner(doing: str) -> Iterator[None]:
    """A sign of life on stderr, on a terminal, while work goes on whose length is not known."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(doing) if console.is_terminal else nullcontext():
        yield


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"onoma {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command(epilog="Example: onoma convert train.conll train.jsonl")
def convert(
    source: Annotated[Path, typer.Argument(help="File or folder to read (.xz and .gz too).")],
    target: Annotated[Path, typer.Argument(help="File or folder to write.")],
    source_format: Annotated[str | None, typer.Option("--from", help=f"Format of SOURCE: {FORMAT_NAMES}.")] = None,
    target_format: Annotated[str | None, typer.Option("--to", help="Format of TARGET, likewise.")] = None,
    as_json: Json = False,
) -> None:
    """Convert annotated data between formats. Formats are told by name and content where not given."""
    from onoma.data import convert as convert_file

    with _progress() as advance:
        count = convert_file(source, target, source_format, target_format, advance)
    if as_json:
        _print_json({"documents": count, "target": str(target)})
    else:
        print(f"{count} documents written to {target}")


@app.command(epilog="Examples: onoma info data/drugs, onoma info train.conll --json, onoma info runs/drugs, onoma info")
def info(
    source: Annotated[
        str | None, typer.Argument(help="Corpus (a file, a folder of splits, FOLDER:SPLIT) or model folder.")
    ] = None,
    data_format: Annotated[str | None, typer.Option("--format", help=f"Format: {FORMAT_NAMES}.")] = None,
    as_json: Json = False,
) -> None:
    """Describe a corpus, with warnings about doubtful labels, or a model; without either, the embedded model."""
    from onoma.config import is_model
    from onoma.data.description import describe_splits, render
    from onoma.model_info import describe_model, render_models

    if source is None or is_model(source) or is_model(Path(source) / "model"):  # the folder of a run holds its model
        models = describe_model(source)
        if as_json:
            _print_json({"models": [one.to_dict() for one in models]})
        else:
            _show(render_models(models))
        return
    with _spinner("reading and counting"):
        description = describe_splits(source, format=data_format)
    if as_json:
        _print_json(description.to_dict())
    else:
        _show(render(description))


@app.command(epilog='Example: onoma extract "Tom flew to Paris." --labels "person, city"')
def extract(
    source: Annotated[str, typer.Argument(help="A text, a file (.txt, .jsonl), or - for standard input.")],
    labels: Annotated[str, typer.Option(help='What to look for: "person, city".')] = "",
    types: Annotated[Path | None, typer.Option(help="YAML file of types: name: description.")] = None,
    model: Model = None,
    threshold: Threshold = None,
    overlap: Annotated[Overlap, typer.Option(help="Whether mentions may lie inside of each other, or cross.")] = "flat",
    output_format: Annotated[
        Literal["table", "json", "jsonl", "html"], typer.Option("--format", help="How to show what is found.")
    ] = "table",
    output: Annotated[Path | None, typer.Option(help="File to write instead of the terminal.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Take each line of plain text as a document.")] = False,
    backend: Backend = "auto",
    device: Device = None,
    batch_size: BatchSize = 64,
    style: Annotated[str | None, typer.Option(help="Annotate as in this corpus, if the model knows it.")] = None,
) -> None:
    """Find entities of any types that you can name. From standard input to jsonl, each line is a document."""
    from onoma.asking import asked_types, parse_threshold, read_types, split_list
    from onoma.data.texts import STANDARD_INPUT, read_texts
    from onoma.extractor import load
    from onoma.rendering import write

    named = [name for name in split_list(labels) if name]
    asked = asked_types([*named, *(read_types(types) if types else ())])
    limits = parse_threshold(threshold)
    documents = read_texts(source, by_line=lines or (source == STANDARD_INPUT and output_format == "jsonl"))
    extractor = load(model, backend, device, style=style)
    found = extractor.annotate(documents, asked, threshold=limits, overlap=overlap, batch_size=batch_size)
    write(found, [one.name for one in asked], output_format, output)


@app.command(epilog="Example: onoma evaluate data/drugs --split test --model runs/drugs")
def evaluate(
    corpus: CorpusPath,
    model: Model = None,
    split: Annotated[str | None, typer.Option(help="Split of a corpus folder; by default test.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="Score this file of predictions; no model is run.")] = None,
    names: Names = "natural",
    language: Language = None,
    limit: Limit = None,
    threshold: Threshold = None,
    overlap: Annotated[Overlap | None, typer.Option(help="By default nested if the corpus is, else flat.")] = None,
    backend: Backend = "auto",
    device: Device = None,
    batch_size: BatchSize = 64,
    as_json: Json = False,
) -> None:
    """Score a model, or a file of predictions, on a corpus: all types of the corpus are asked for at once."""
    from onoma.asking import parse_threshold
    from onoma.evaluation.runs import open_corpus, render_run, run, score_file
    from onoma.extractor import load

    gold = open_corpus(corpus, split, names=names, language=language, limit=limit)
    if predictions:
        outcome = score_file(predictions, gold, limit)
    else:
        limits, extractor = parse_threshold(threshold), load(model, backend, device)
        with _progress(len(gold)) as advance:
            outcome = run(
                extractor, gold, threshold=limits, overlap=overlap, batch_size=batch_size, on_document=advance
            )
    if as_json:
        _print_json(outcome.to_dict())
    else:
        _show(render_run(outcome))


@app.command("tune-thresholds", epilog="Example: onoma tune-thresholds runs/drugs data/drugs --per-type --write")
def tune_thresholds(
    model: Annotated[str, typer.Argument(help="Model: a folder or a hub name.")],
    corpus: CorpusPath,
    split: Annotated[str | None, typer.Option(help="Split of a corpus folder; by default dev.")] = None,
    per_type: Annotated[bool, typer.Option("--per-type", help="A threshold for each frequent type, too.")] = False,
    output: Annotated[Path | None, typer.Option(help="New folder for the model with the new thresholds.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the new thresholds into the model folder.")] = False,
    names: Names = "natural",
    language: Language = None,
    limit: Limit = None,
    backend: Backend = "auto",
    device: Device = None,
    batch_size: BatchSize = 64,
    as_json: Json = False,
) -> None:
    """Find the thresholds that give the best strict F1 on a corpus. Nothing is written unless you say where."""
    from onoma.evaluation.runs import DEV_SPLITS, open_corpus
    from onoma.evaluation.tuning import render_tuned, tune
    from onoma.extractor import load

    gold = open_corpus(corpus, split, usual=DEV_SPLITS, names=names, language=language, limit=limit)
    extractor = load(model, backend, device)
    with _progress(len(gold)) as advance:
        tuned = tune(extractor, gold, per_type=per_type, batch_size=batch_size, on_document=advance)
    if output:
        extractor.save_pretrained(output)
        tuned.config.save(output)
    if write:
        tuned.config.save(extractor.folder)
    if as_json:
        _print_json(tuned.to_dict())
    else:
        _show(render_tuned(tuned))
        print(
            f"written to {output or extractor.folder}" if output or write else "to keep these, give --write or --output"
        )


@app.command(epilog="Example: onoma train recipes/binder/conll2003.yaml --data data --output runs/conll --set seed=1")
def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe: a YAML file.")],
    output: Annotated[Path, typer.Option(help="Folder of the run; an interrupted run goes on there.")],
    data: Annotated[Path, typer.Option(help="Folder in which the corpora of the recipe lie.")] = Path("."),
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value, such as training.epochs=3.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder to keep tokenised corpora in, for other runs.")] = None,
    as_json: Json = False,
) -> None:
    """Train a model, choose it on dev, measure it on test.

    For several GPUs: torchrun --nproc-per-node 4 -m onoma train.
    """
    from onoma.training import train as run_recipe

    folder = run_recipe(recipe, output=output, data=data, changes=changes or (), cache=cache)
    if os.environ.get("RANK", "0") != "0":  # of several processes, the first one speaks
        return
    metrics = json.loads((output / "metrics.json").read_text("utf-8"))
    if as_json:
        _print_json({"model": str(folder), **metrics})
        return
    for part in ("dev", "test"):
        for name, scores in metrics[part].items():
            values = (f"{measure} {scores[measure]:.2f}" for measure in ("precision", "recall", "f1"))
            print(f"{part} of {name}: {', '.join(values)}")
    print(f"written to {folder}")


@app.command(epilog="Example: onoma export runs/drugs/model models/drugs --int8")
def export(
    model: Annotated[str, typer.Argument(help="Model: a folder or a hub name.")],
    output: Annotated[Path, typer.Argument(help="New folder to write.")],
    int8: Annotated[bool, typer.Option("--int8", help="Weights in 8 bits: a quarter of the size, and faster.")] = False,
    as_json: Json = False,
) -> None:
    """Write a model in a form that runs without PyTorch (ONNX)."""
    from onoma.export import export as export_model

    folder = export_model(model, output, int8)
    size = sum(path.stat().st_size for path in folder.iterdir())
    if as_json:
        _print_json({"model": str(folder), "bytes": size})
    else:
        print(f"written to {folder} ({size / 1e6:.1f} MB)")
