"""`onoma convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.shared import FORMAT_NAMES, Json, print_json, progress_bar


def convert(
    source: Annotated[Path, typer.Argument(help="File or folder to read (.xz and .gz, too).")],
    target: Annotated[Path, typer.Argument(help="File or folder to write.")],
    source_format: Annotated[str | None, typer.Option("--from", help=f"Format of SOURCE: {FORMAT_NAMES}.")] = None,
    target_format: Annotated[str | None, typer.Option("--to", help="Format of TARGET.")] = None,
    as_json: Json = False,
) -> None:
    """Convert annotated data between formats, which are detected by content and name if they are not given."""
    from onoma.data.formats import convert as convert_file

    with progress_bar() as update:
        count = convert_file(source, target, source_format, target_format, update)
    if as_json:
        print_json({"documents": count, "target": str(target)})
    else:
        print(f"{count} documents written to {target}")
