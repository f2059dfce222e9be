"""What several commands share: their options, and ways of printing."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from onoma.text.terminal import printable

if TYPE_CHECKING:
    from onoma.entities import EntityType

FORMAT_NAMES = "jsonl, tokens, conll, brat, doccano, gliner, spacy or pubtator"
SECONDS_BETWEEN_LINES = 10.0

LabelNames = Annotated[
    list[str] | None,
    typer.Option(
        "--labels", help='Entity types to extract: "person, city"; may be repeated, and "a, b" in quotes is one label.'
    ),
]
TypesFile = Annotated[Path | None, typer.Option("--types", help="YAML file of types: name: description.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Model = Annotated[
    str | None, typer.Option("--model", help="Model: a folder, a hub name or embedded; by default the embedded one.")
]
BackendName = Annotated[Literal["auto", "onnx", "torch"], typer.Option(help="What runs the model.")]
Device = Annotated[str | None, typer.Option(help="Device for torch, such as cpu or cuda.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Windows that the model reads at once.")]
Overlap = Literal["flat", "nested", "any"]


def _overlap(value: str) -> str:
    """Typer's own message for a wrong choice quotes another library."""
    if value not in get_args(Overlap):
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(get_args(Overlap))}")
    return value


OverlapOfCorpus = Annotated[
    Overlap | None,
    typer.Option(
        parser=_overlap,
        metavar=f"<{'|'.join(get_args(Overlap))}>",
        help="By default nested if the corpus is, else flat.",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Read only the first N documents.")]
Threshold = Annotated[
    str | None, typer.Option(help='Minimum score: 0.4, precise, balanced, complete, or "drug=0.4, person=precise".')
]
Names = Annotated[
    Literal["natural", "inventory", "labels"],
    typer.Option(help="Names of types: from meta.json, from Onoma's inventory, or the labels of the file."),
]
Language = Annotated[str | None, typer.Option(help="Language of type names that exist in several: en or zh.")]
Examples = Annotated[
    str | None, typer.Option(help="Corpus with marked examples of types: a file, a folder of splits, or FOLDER:SPLIT.")
]
CorpusPath = Annotated[str, typer.Argument(help="Corpus: a file, a folder of splits, or FOLDER:SPLIT.")]
TrainingCorpus = Annotated[
    str | None, typer.Option("--training", help="Training data of the model: scores by whether it has seen a mention.")
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value, such as training.epochs=3.")
]
Data = Annotated[Path, typer.Option(help="Folder of the corpora that the recipe names.")]


def read_labels(labels: list[str] | None, types: Path | None) -> list[str | EntityType]:
    """What the options --labels and --types name; empty if they are not given."""
    from onoma.labels.parsing import read_types, split_labels

    named = [name for text in labels or () for name in split_labels(text) if name]
    return [*named, *(read_types(types) if types else ())]


def print_json(value: Any) -> None:
    """Print a value as JSON, in UTF-8 whatever the locale."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    print(json.dumps(value, ensure_ascii=False, indent=2))


def show(renderable: Any) -> None:
    """Print tables; rich is imported only if there are any."""
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment

    class Printable:
        """The renderable without control characters of labels and names, which a terminal would obey."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
            for segment in console.render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    Console().print(Printable())


def is_main_process() -> bool:
    """Among several processes that train together, only rank 0 prints."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def progress_bar(total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A progress bar over documents on stderr, if it is a terminal; yields a function that sets the number done."""
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
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def text_progress_bar(total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A progress bar over megabytes of text, with the speed; yields a function that sets the number of bytes done."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("text"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def spinner(doing: str) -> Iterator[None]:
    """A spinner on stderr, if it is a terminal, during work of unknown length."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(doing) if console.is_terminal else nullcontext():
        yield


class TextProgress:
    """Progress of extraction as a line on stderr every few seconds: what was read, rate and remaining time."""

    def __init__(self, total: int | None, unit: str = "characters", before: int = 0) -> None:
        """`total` characters, if known; `before` of them were read by an earlier run."""
        self.total, self.unit, self.before = total, unit, before
        self.started = self.printed = time.monotonic()

    def update(self, done: int) -> None:
        """Report the characters that have been read so far."""
        now = time.monotonic()
        if now - self.printed < SECONDS_BETWEEN_LINES or done <= self.before:
            return
        self.printed = now
        rate = (done - self.before) / (now - self.started)
        line = f"read {done:,} {self.unit}"
        if self.total:
            left = round((self.total - done) / rate)
            line += f" of {self.total:,} ({done / self.total:.0%}), {rate:,.0f} per second, {_duration(left)} left"
        else:
            line += f", {rate:,.0f} per second"
        print(line, file=sys.stderr, flush=True)


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
