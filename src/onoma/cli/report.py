"""`onoma report`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.shared import (
    BackendName,
    BatchSize,
    Device,
    Json,
    Language,
    Limit,
    Names,
    OverlapOfCorpus,
    Threshold,
    TrainingCorpus,
    print_json,
    progress_bar,
)


def report(
    model: Annotated[str, typer.Argument(help="Model: a folder, a hub name, or `embedded`.")],
    corpora: Annotated[
        list[str], typer.Argument(metavar="CORPUS", help="Corpora: files, folders of splits, or FOLDER:SPLIT.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write; its folder is created.")] = Path(
        "report.html"
    ),
    against: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help="Another model to compare with; may be repeated.")
    ] = None,
    training: TrainingCorpus = None,
    split: Annotated[str | None, typer.Option(help="Split of corpus folders; by default test.")] = None,
    names: Names = "natural",
    language: Language = None,
    limit: Limit = None,
    threshold: Threshold = None,
    overlap: OverlapOfCorpus = None,
    errors: Annotated[int, typer.Option(min=0, help="Examples of errors of each model on a corpus.")] = 300,
    backend: BackendName = "auto",
    device: Device = None,
    batch_size: BatchSize = 64,
    as_json: Json = False,
) -> None:
    """Write a report about a model as one HTML file: scores, errors, calibration, thresholds, pictures."""
    from onoma.evaluation.analysis import study
    from onoma.evaluation.pages import render_report, require_report
    from onoma.evaluation.runs import load_models, open_corpus
    from onoma.evaluation.sources import as_sources, open_source
    from onoma.files import atomic_write
    from onoma.labels.parsing import parse_threshold

    require_report()
    thresholds = parse_threshold(threshold)
    gold = as_sources([open_source(one, split, names=names, language=language, limit=limit) for one in corpora])
    seen = open_corpus(training, usual=("train",), names=names, language=language) if training else None
    models = load_models([model, *(against or ())], backend, device)
    with atomic_write(output) as file, progress_bar(len(models) * sum(len(one.corpus) for one in gold)) as update:
        found = study(
            models,
            gold,
            training=seen,
            threshold=thresholds,
            overlap=overlap,
            batch_size=batch_size,
            errors=errors,
            on_progress=update,
            command=shlex.join(["onoma", *sys.argv[1:]]),
        )
        file.write(render_report(found))
    if as_json:
        print_json(found.to_dict())
    else:
        print(f"written to {output}")
