"""`onoma info`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.shared import FORMAT_NAMES, Json, print_json, show, spinner


def info(
    source: Annotated[
        str | None,
        typer.Argument(help="Corpus (a file, a folder of splits, FOLDER:SPLIT), model folder, or `embedded`."),
    ] = None,
    data_format: Annotated[str | None, typer.Option("--format", help=f"Format: {FORMAT_NAMES}.")] = None,
    as_json: Json = False,
) -> None:
    """Describe a corpus, with warnings about doubtful labels, or a model; without SOURCE, the embedded model."""
    from onoma.models.config import is_model_folder
    from onoma.models.hub import is_embedded_name

    if (
        source is None
        or is_embedded_name(source)
        or is_model_folder(source)
        or is_model_folder(Path(source) / "model")  # of a training run
    ):
        from onoma.models.info import describe_model, render_models

        models = describe_model(source)
        if as_json:
            print_json({"models": [one.to_dict() for one in models]})
        else:
            show(render_models(models))
        return
    from onoma.data.description import describe_splits, render

    with spinner("reading and counting"):
        description = describe_splits(source, format=data_format)
    if as_json:
        print_json(description.to_dict())
    else:
        show(render(description))
