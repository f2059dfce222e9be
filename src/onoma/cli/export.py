"""`onoma export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.shared import Json, print_json


def export(
    model: Annotated[str, typer.Argument(help="Model: a folder, a hub name or embedded/en.")],
    output: Annotated[Path, typer.Argument(help="New folder to write.")],
    int8: Annotated[bool, typer.Option("--int8", help="Weights in 8 bits: a quarter of the size, and faster.")] = False,
    as_json: Json = False,
) -> None:
    """Write a model that runs without PyTorch (ONNX)."""
    from onoma.models.export import export as export_model

    folder = export_model(model, output, int8)
    size = sum(path.stat().st_size for path in folder.iterdir())
    if as_json:
        print_json({"model": str(folder), "bytes": size})
    else:
        print(f"written to {folder} ({size / 1e6:.1f} MB)")
