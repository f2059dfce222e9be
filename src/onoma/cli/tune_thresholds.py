"""`onoma tune-thresholds`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.shared import (
    BackendName,
    BatchSize,
    CorpusPath,
    Device,
    Json,
    Language,
    Limit,
    Names,
    print_json,
    progress_bar,
    show,
)
from onoma.errors import OnomaError


def tune_thresholds(
    model: Annotated[str, typer.Argument(help="Model: a folder, a hub name or embedded.")],
    corpus: CorpusPath,
    split: Annotated[str | None, typer.Option(help="Split of a corpus folder; by default dev.")] = None,
    per_type: Annotated[bool, typer.Option("--per-type", help="Also a threshold for each frequent type.")] = False,
    output: Annotated[Path | None, typer.Option(help="New folder for the model with the new thresholds.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the new thresholds into the model folder.")] = False,
    names: Names = "natural",
    language: Language = None,
    limit: Limit = None,
    backend: BackendName = "auto",
    device: Device = None,
    batch_size: BatchSize = 64,
    as_json: Json = False,
) -> None:
    """Find the thresholds with the best strict F1 on a corpus. Nothing is written without --write or --output."""
    from onoma.evaluation.runs import DEV_SPLITS, open_corpus
    from onoma.evaluation.tuning import render_tuned, tune
    from onoma.extractor import load
    from onoma.models.hub import EMBEDDED, find_model

    folder = find_model(model)
    if write and folder in (EMBEDDED, *EMBEDDED.iterdir()):
        raise OnomaError("--write would change the installed package. Fix: use --output FOLDER")
    gold = open_corpus(corpus, split, usual=DEV_SPLITS, names=names, language=language, limit=limit)
    extractor = load(folder, backend, device)
    with progress_bar(len(gold)) as update:
        tuned = tune(extractor, gold, per_type=per_type, batch_size=batch_size, on_progress=update)
    if output:
        extractor.save_pretrained(output)
        tuned.config.save(output)
    if write:
        tuned.config.save(extractor.folder)
    if as_json:
        print_json(tuned.to_dict())
        return
    show(render_tuned(tuned))
    written = f"written to {output or extractor.folder}"
    print(written if output or write else "to keep these thresholds, use --write or --output")
