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
    from onoma.entities import Document
    from onoma.extractor import Section


def extract(
    source: Annotated[str, typer.Argument(help="A text, a file (.txt, .jsonl), or - for standard input.")],
    labels: LabelNames = None,
    types: TypesFile = None,
    examples: Examples = None,
    model: Model = None,
    threshold: Threshold = None,
    overlap: Annotated[Overlap, typer.Option(help="Whether mentions may contain each other, or cross.")] = "flat",
    output_format: Annotated[
        Literal["table", "json", "jsonl", "html"], typer.Option("--format", help="Format of the output.")
    ] = "table",
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
    from onoma.data.rendering import write_documents, write_tables
    from onoma.data.texts import STANDARD_INPUT, read_texts
    from onoma.extractor import load
    from onoma.labels.parsing import parse_labels, parse_threshold

    if examples:
        from onoma.evaluation.runs import open_examples

    given = read_labels(labels, types)
    shown = open_examples(examples, (one.name for one in parse_labels(given)) if given else None) if examples else None
    thresholds = parse_threshold(threshold)
    texts = read_texts(source, by_line=lines or (source == STANDARD_INPUT and output_format == "jsonl"))
    extractor = load(model, backend, device, style=style)
    if shown is not None:
        extractor = extractor.teach(shown)
    asked = parse_labels(given or (shown.types if shown else extractor.examples.labels))

    def read(documents: Iterator[Document]) -> Iterator[Section]:
        sections = extractor.stream_sections(
            (document.text for document in documents),
            asked,
            threshold=thresholds,
            overlap=overlap,
            batch_size=batch_size,
        )
        return _with_progress(sections, TextProgress(texts.characters))

    if output_format == "table":
        write_tables(((section.text, section.entities) for section in read(texts.documents)), output)
    else:
        documents, again = tee(texts.documents)
        annotated = _annotated(documents, read(again))
        write_documents(annotated, [one.name for one in asked], output_format, output)


def _with_progress(sections: Iterator[Section], progress: TextProgress) -> Iterator[Section]:
    finished = 0  # characters of finished texts
    for section in sections:
        progress.update(finished + section.end)
        if section.is_last:
            finished += section.end
        yield section


def _annotated(documents: Iterator[Document], sections: Iterator[Section]) -> Iterator[Document]:
    """Documents with the entities of their sections."""
    for document in documents:
        section = next(sections)
        entities = list(section.entities)
        while not section.is_last:
            section = next(sections)
            entities += section.entities
        yield replace(document, entities=tuple(entities), annotated=None)
