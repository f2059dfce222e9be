"""`onoma evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.shared import (
    BackendName,
    BatchSize,
    CorpusPath,
    Device,
    Examples,
    Json,
    Language,
    Limit,
    Model,
    Names,
    OverlapOfCorpus,
    Threshold,
    TrainingCorpus,
    print_json,
    progress_bar,
    show,
)


def evaluate(
    corpus: CorpusPath,
    model: Model = None,
    examples: Examples = None,
    split: Annotated[str | None, typer.Option(help="Split of a corpus folder; by default test.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="Score this file of predictions instead of a model.")] = None,
    names: Names = "natural",
    language: Language = None,
    limit: Limit = None,
    threshold: Threshold = None,
    overlap: OverlapOfCorpus = None,
    backend: BackendName = "auto",
    device: Device = None,
    batch_size: BatchSize = 64,
    missed: Annotated[
        Path | None,
        typer.Option(help="File (.csv, .jsonl) for predictions that the gold lacks, to accept or reject."),
    ] = None,
    errors: Annotated[int, typer.Option(min=0, help="Also show N examples of errors in their context.")] = 0,
    training: TrainingCorpus = None,
    as_json: Json = False,
) -> None:
    """Score a model, or a file of predictions, on a corpus; all types of the corpus are asked for at once."""
    from onoma.data.review import check_name, write_candidates
    from onoma.evaluation.review import missed_candidates
    from onoma.evaluation.runs import open_corpus, open_examples, render_run, run, score_file
    from onoma.extractor import load
    from onoma.labels.parsing import parse_threshold

    if missed:
        check_name(missed)
    seen = open_corpus(training, usual=("train",), names=names, language=language) if training else None
    gold = open_corpus(corpus, split, names=names, language=language, limit=limit)
    if predictions:
        outcome = score_file(predictions, gold, limit, training=seen, errors=errors)
    else:
        thresholds, extractor = parse_threshold(threshold), load(model, backend, device)
        if examples:
            extractor = extractor.teach(open_examples(examples, gold.labels, names=names, language=language))
        with progress_bar(len(gold)) as update:
            outcome = run(
                extractor,
                gold,
                threshold=thresholds,
                overlap=overlap,
                batch_size=batch_size,
                training=seen,
                errors=errors,
                on_progress=update,
            )
    written = write_candidates(missed_candidates(gold, outcome.predicted), missed) if missed else 0
    if as_json:
        print_json(outcome.to_dict() | ({"missed": written} if missed else {}))
    else:
        show(render_run(outcome))
        if missed:
            print(f"{written} predictions that the gold lacks were written to {missed}, the most confident first")
