"""`onoma extract`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from onoma.cli.shared import (
    BackendName,
    BatchSize,
    Device,
    Examples,
    LabelNames,
    Model,
    Overlap,
    TextProgress,
    Threshold,
    TypesFile,
    read_labels,
)

if TYPE_CHECKING:
    from onoma.data.texts import Located
    from onoma.entities import Entity
    from onoma.reading import Section

Format = Literal["table", "json", "jsonl", "html", "csv", "parquet"]

_FORMATS: dict[str, Format] = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".html": "html",
    ".htm": "html",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""What the name of an output file stands for."""


def extract(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="A text, files (.txt, .jsonl), or - for standard input."),
    ],
    labels: LabelNames = None,
    types: TypesFile = None,
    examples: Examples = None,
    model: Model = None,
    threshold: Threshold = None,
    overlap: Annotated[Overlap, typer.Option(help="Whether mentions may contain each other, or cross.")] = "flat",
    output_format: Annotated[
        Format | None,
        typer.Option("--format", help="Format of the output; by default that of the name of --output, or table."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File to write instead of standard output.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Read each line of plain text as a document.")] = False,
    backend: BackendName = "auto",
    device: Device = None,
    batch_size: BatchSize = 64,
    style: Annotated[str | None, typer.Option(help="Annotate as in this corpus, if the model knows it.")] = None,
) -> None:
    """Find entities of any types that you can name. With jsonl output, each line of standard input is a document.

    Without labels, the types of the examples are looked for, those of --examples or those that the model was taught.
    """
    from onoma.data.rendering import write_csv, write_documents, write_parquet, write_tables
    from onoma.data.texts import STANDARD_INPUT, read_sources
    from onoma.extractor import load
    from onoma.files import plain_suffix
    from onoma.labels.parsing import parse_labels, parse_threshold

    if examples:
        from onoma.evaluation.runs import open_examples

    given = read_labels(labels, types)
    shown = open_examples(examples, (one.name for one in parse_labels(given)) if given else None) if examples else None
    thresholds = parse_threshold(threshold)
    form = output_format or _FORMATS.get(plain_suffix(output or ""), "table")
    texts = read_sources(sources, by_line=lines or (sources == [STANDARD_INPUT] and form == "jsonl"))
    extractor = load(model, backend, device, style=style)
    if shown is not None:
        extractor = extractor.teach(shown)
    asked = parse_labels(given or (shown.types if shown else extractor.examples.labels))

    documents, again = tee(texts.documents)
    sections = extractor.stream_sections(
        (one.document.text for one in again), asked, threshold=thresholds, overlap=overlap, batch_size=batch_size
    )
    sections = _with_progress(sections, TextProgress(texts.characters))
    match form:
        case "table":
            write_tables(_named(documents, sections, len(sources) > 1), output)
        case "csv":
            write_csv(_annotated(documents, sections), output)
        case "parquet":
            write_parquet(_annotated(documents, sections), output)
        case _:
            found = (one.document for one in _annotated(documents, sections))
            write_documents(found, [one.name for one in asked], form, output)


def _with_progress(sections: Iterator[Section], progress: TextProgress) -> Iterator[Section]:
    finished = 0  # characters of finished texts
    for section in sections:
        progress.update(finished + section.end)
        if section.is_last:
            finished += section.end
        yield section


def _named(
    documents: Iterator[Located], sections: Iterator[Section], several: bool
) -> Iterator[tuple[int | str, list[Entity]]]:
    """The entities of sections, with the number of their document, or its name if there are several files."""
    current: Located | None = None
    for section in sections:
        current = current or next(documents)
        yield current.name if several else current.number, section.entities
        if section.is_last:
            current = None


def _annotated(documents: Iterator[Located], sections: Iterator[Section]) -> Iterator[Located]:
    """Documents with the entities of their sections."""
    for one in documents:
        section = next(sections)
        entities = list(section.entities)
        while not section.is_last:
            section = next(sections)
            entities += section.entities
        yield one._replace(document=replace(one.document, entities=tuple(entities), annotated=None))
