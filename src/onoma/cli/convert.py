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
    merge: Annotated[
        Path | None, typer.Option(help="Add the accepted mentions of a file that `evaluate --missed` wrote.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Convert annotated data between formats, which are detected by content and name if they are not given."""
    from onoma.data.corpora import read_info
    from onoma.data.formats import convert as convert_file
    from onoma.data.review import ReviewMerger

    merger = ReviewMerger(merge, read_info(source)) if merge else None
    with progress_bar() as update:
        change = merger.apply if merger else None
        count = convert_file(source, target, source_format, target_format, update, change)
    if as_json:
        print_json({"documents": count, "target": str(target)} | (merger.to_dict() if merger else {}))
        return
    print(f"{count} documents written to {target}")
    if merger is not None:
        print(f"{merger.added} mentions added, {merger.removed} removed; {merger.present} were there before")
