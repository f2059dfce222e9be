"""The command line, one file per verb. Commands read their arguments and leave all work to the library.

Libraries are imported inside the commands, so that `onoma --help` answers at once.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Annotated, NoReturn

import typer

from onoma import __version__
from onoma.cli.bench import bench
from onoma.cli.compare import compare
from onoma.cli.convert import convert
from onoma.cli.corpus import corpus
from onoma.cli.evaluate import evaluate
from onoma.cli.export import export
from onoma.cli.extract import extract
from onoma.cli.info import info
from onoma.cli.report import report
from onoma.cli.serve import serve
from onoma.cli.train import train
from onoma.cli.tune_thresholds import tune_thresholds
from onoma.cli.weak_label import weak_label
from onoma.errors import OnomaError
from onoma.text.terminal import printable

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP

app = typer.Typer(
    name="onoma",
    help="Name the entity types you want, in words; get back every mention, with exact offsets.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(
    epilog='Example: onoma extract "Tom flew to Paris." --labels "person, city"\n\n'
    "Example: onoma extract notes.txt --examples dosages.jsonl\n\n"
    "Example: onoma extract reports/*.txt --labels company --output companies.csv"
)(extract)
app.command(
    epilog="Example: onoma train recipes/binder/conll2003.yaml --data data --output runs/conll --set seed=1\n\n"
    "Example: onoma train --start embedded --data drugs.jsonl --output runs/drugs"
)(train)
app.command(
    epilog="Example: onoma compare binder.yaml suner.yaml --data data/drugs --seeds 0,1,2 --output runs/compare"
)(compare)
app.command(epilog="Example: onoma evaluate data/drugs --split test --model runs/drugs")(evaluate)
app.command(
    epilog="Example: onoma report runs/drugs data/drugs -o report.html\n\n"
    "Example: onoma report runs/drugs data/drugs --against embedded --training data/drugs:train"
)(report)
app.command("tune-thresholds", epilog="Example: onoma tune-thresholds runs/drugs data/drugs --per-type --write")(
    tune_thresholds
)
app.command(epilog="Example: onoma export runs/drugs/model models/drugs --int8")(export)
app.command(epilog="Example: onoma convert train.conll train.jsonl")(convert)
app.command("weak-label", epilog="Example: onoma weak-label drugs.txt diseases.tsv news.txt labelled.jsonl")(weak_label)
app.command(epilog="Examples: onoma info data/drugs, onoma info train.conll --json, onoma info runs/drugs, onoma info")(
    info
)
app.command(epilog="Example: onoma serve --model embedded --model drugs=runs/drugs --port 8000")(serve)
app.command(
    epilog='Example: onoma corpus news.jsonl.gz annotated --labels "person, city"\n\n'
    'Example: onoma corpus "s3://b/news/*.parquet" s3://b/annotated --labels person --engine ray --address auto'
)(corpus)
app.add_typer(bench, name="bench")


class _Terminated(BaseException):
    """SIGTERM or SIGHUP was received; half-written files are removed on the way out, as after an error."""

    def __init__(self, number: int) -> None:
        self.number = number


def main() -> NoReturn:
    """Run a command: exit code 0 when done, 2 on bad input or use, 1 on failure, the message on stderr."""
    _prepare()
    try:
        app()
    except OnomaError as error:
        _stop(f"error: {error}", 2)
    except BrokenPipeError:  # the reader of our output has exited, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    except _Terminated as received:
        _stop("terminated", 128 + received.number)
    except Exception as error:
        if os.environ.get("ONOMA_DEBUG"):
            raise
        _stop(f"failed: {type(error).__name__}: {error} (set ONOMA_DEBUG=1 to see where)", 1)
    sys.exit(0)


def _prepare() -> None:
    _fill_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 shows escapes instead of an error
    caught = [one for one in _SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]  # as after `nohup`
    for number in caught:
        signal.signal(number, _terminate)
    if hasattr(os, "register_at_fork"):  # worker processes end at once
        os.register_at_fork(after_in_child=lambda: [signal.signal(number, signal.SIG_DFL) for number in caught])


def _fill_closed_streams() -> None:
    """Reserve the numbers of standard streams that the caller closed, so that no other file gets them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)  # to `print`, None would mean standard output


def _terminate(number: int, frame: object) -> NoReturn:
    raise _Terminated(number)


def _stop(message: str, code: int) -> NoReturn:
    print(printable(message), file=sys.stderr)
    sys.exit(code)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"onoma {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""
