"""The command line: thin. Each command reads its arguments here and does its work in the library.

Libraries are imported inside of the commands, so that `onoma --help` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from onoma import __version__
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
FORMAT_NAMES = "jsonl, tokens, conll, brat, doccano, gliner, spacy or pubtator"
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


def main() -> NoReturn:
    """Run a command: exit code 0 when done, 2 on bad input or use, 1 on failure, the message on stderr."""
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


def _stop(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"onoma {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")] = False,
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
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from onoma.data import convert as convert_file

    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("documents", total=None)
        count = convert_file(source, target, source_format, target_format, lambda: progress.advance(task))
    if as_json:
        _print_json({"documents": count, "target": str(target)})
    else:
        print(f"{count} documents written to {target}")


@app.command(epilog="Example: onoma info data/drugs    or: onoma info train.conll --json")
def info(
    corpus: Annotated[str, typer.Argument(help="Corpus: a file, a folder of splits, or FOLDER:SPLIT.")],
    data_format: Annotated[str | None, typer.Option("--format", help=f"Format: {FORMAT_NAMES}.")] = None,
    as_json: Json = False,
) -> None:
    """Describe a corpus: its size, types and lengths, and warnings about doubtful labels."""
    from onoma.data.description import describe_splits, render

    description = describe_splits(corpus, format=data_format)
    if as_json:
        _print_json(description.to_dict())
    else:
        from rich.console import Console

        Console().print(render(description))
