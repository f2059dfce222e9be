"""The command `onoma shrink`: thin, as those of `cli.py`, of which it is a part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onoma.errors import OnomaError

if TYPE_CHECKING:
    from onoma.training.shrinking import Report

shrinking = typer.Typer()


@shrinking.command(epilog="Example: onoma shrink bert-base-chinese encoders/small --layers 0,6,11 --texts data/drugs")
def shrink(
    encoder: Annotated[str, typer.Argument(help="Encoder like BERT: a folder or a hub name.")],
    output: Annotated[Path, typer.Argument(help="New folder to write.")],
    layers: Annotated[str, typer.Option(help="Layers to keep, counted from 0.")],
    texts: Annotated[
        list[str] | None,
        typer.Option(help="Keep only tokens that these use: a corpus, FOLDER:SPLIT, or a text file; may be repeated."),
    ] = None,
    least: Annotated[int, typer.Option(min=1, help="Times that a token must occur in the texts.")] = 2,
    inner: Annotated[int | None, typer.Option(min=1, help="Neurons to keep in each feed-forward part.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Make a small encoder out of a larger one, to start a training from: fewer layers, tokens and neurons."""
    numbers = [part.strip() for part in layers.split(",")]
    if not all(part.isdecimal() for part in numbers):
        raise OnomaError(f"--layers takes numbers of layers such as 0,6,11, got {layers!r}")
    try:
        from onoma.training.shrinking import Vocabulary, texts_of
        from onoma.training.shrinking import shrink as shrink_encoder
    except ModuleNotFoundError as error:
        raise OnomaError(f'shrink needs {error.name}: pip install "onoma[train]"') from error
    vocabulary = Vocabulary(texts_of(texts), least) if texts else None
    report = shrink_encoder(encoder, output, layers=[int(part) for part in numbers], vocabulary=vocabulary, inner=inner)
    if as_json:
        print(json.dumps({"encoder": str(output), **report.to_dict()}, indent=2))
    else:
        _show(report)
        print(f"written to {output}")


def _show(report: Report) -> None:
    before, after = report.before, report.after
    for name in ("layers", "inner", "tokens", "parameters"):
        print(f"{name}: {getattr(before, name):,} -> {getattr(after, name):,}")
    print(f"in int8, about: {before.int8_bytes / 1e6:.1f} MB -> {after.int8_bytes / 1e6:.1f} MB")
    if report.unknown_before is not None:
        print(f"unknown tokens in the texts: {report.unknown_before:.3%} -> {report.unknown_after:.3%}")
