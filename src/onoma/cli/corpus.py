"""`onoma corpus`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from onoma.cli.shared import (
    BackendName,
    BatchSize,
    Device,
    Json,
    LabelNames,
    Model,
    Overlap,
    TextProgress,
    Threshold,
    TypesFile,
    print_json,
    read_labels,
)


def corpus(
    sources: Annotated[
        list[str],
        typer.Argument(help="Files (.jsonl, .parquet, .csv, .tsv, .txt, also compressed), folders, patterns or URLs."),
    ],
    output: Annotated[str, typer.Argument(help="Folder or URL to write; an interrupted run continues there.")],
    labels: LabelNames = None,
    types: TypesFile = None,
    model: Model = None,
    threshold: Threshold = None,
    overlap: Annotated[Overlap, typer.Option(help="Whether mentions may contain each other, or cross.")] = "flat",
    several_labels: Annotated[
        bool, typer.Option("--several-labels", help="Report all labels of a mention that reach their thresholds.")
    ] = False,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Processes on this machine, or Ray Data on one or many.")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes or actors, each with a model; by default one per core.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster, such as auto; by default one is started on this machine.")
    ] = None,
    gpus_per_worker: Annotated[float, typer.Option(min=0.0, help="GPUs of each Ray actor, such as 1 or 0.25.")] = 0.0,
    text_column: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    entities_column: Annotated[str, typer.Option(help="Column to add.")] = "entities",
    source_format: Annotated[
        Literal["jsonl", "parquet", "csv", "tsv", "text"] | None,
        typer.Option("--from", help="Format of the files; by default as their names say."),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help='What separates the columns of CSV files: ";", tab, ...; by default a comma.')
    ] = None,
    target_format: Annotated[
        Literal["jsonl", "jsonl.gz", "parquet"] | None,
        typer.Option("--to", help="Format of the output; by default parquet for Parquet, else jsonl."),
    ] = None,
    rows_per_shard: Annotated[
        int | None,
        typer.Option(min=1, help="About how many rows a file of the output has, at least 256; by default 4,096."),
    ] = None,
    backend: BackendName = "auto",
    device: Device = None,
    batch_size: BatchSize = 64,
    style: Annotated[str | None, typer.Option(help="Annotate as in this corpus, if the model knows it.")] = None,
    as_json: Json = False,
) -> None:
    """Annotate a corpus of any size: all columns are kept, and one with entities is added.

    Rows that cannot be annotated are listed with the reason in OUTPUT/_errors.jsonl.
    """
    from onoma.labels.parsing import parse_threshold
    from onoma.scale.corpus import annotate_corpus

    summary = annotate_corpus(
        sources,
        output,
        read_labels(labels, types),
        model=model,
        threshold=parse_threshold(threshold),
        overlap=overlap,
        several_labels=several_labels,
        batch_size=batch_size,
        backend=backend,
        device=device,
        style=style,
        text_column=text_column,
        entities_column=entities_column,
        input_format=source_format,
        separator=separator,
        output_format=target_format,
        rows_per_shard=rows_per_shard,
        engine=engine,
        workers=workers,
        address=address,
        gpus_per_worker=gpus_per_worker,
        on_progress=_Progress(),
        on_plan=_PlanProgress(),
    )
    if as_json:
        print_json(summary.to_dict())
        return
    documents, entities = _count(summary.documents, "document"), _count(summary.entities, "entity", "entities")
    print(f"{documents} with {entities} written to {summary.output}")
    if summary.errors:
        print(f"rows that could not be annotated: {summary.errors:,}, see {summary.output}/_errors.jsonl")


def _count(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


class _PlanProgress:
    """Progress over the documents that are read to plan the run."""

    def __init__(self) -> None:
        self.lines: TextProgress | None = None

    def __call__(self, done: int) -> None:
        if self.lines is None:
            self.lines = TextProgress(None, "documents to plan the run", before=done)
        self.lines.update(done)


class _Progress:
    """Progress over documents; those of an earlier run do not count for the rate."""

    def __init__(self) -> None:
        self.lines: TextProgress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self.lines is None:
            self.lines = TextProgress(total, "documents", before=done)
        self.lines.update(done)
