"""`onoma weak-label`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from onoma.cli.shared import FORMAT_NAMES, Json, print_json, show, spinner, text_progress_bar


def weak_label(
    dictionaries: Annotated[
        list[Path],
        typer.Argument(help="Dictionaries: lines of entries, entry and type separated by a tab, JSON lines, YAML."),
    ],
    corpus: Annotated[str, typer.Argument(help="Corpus, text file, or folder of text files (each line a document).")],
    output: Annotated[Path, typer.Argument(help="File or folder to write.")],
    entry_type: Annotated[
        str | None, typer.Option("--type", help="Type of entries in files that name none; by default the file's name.")
    ] = None,
    ambiguous: Annotated[
        Literal["skip", "first", "all"],
        typer.Option(help="Entries of several types: skip them, use the first type, or all types."),
    ] = "skip",
    stop: Annotated[
        list[Path] | None, typer.Option(help="File of phrases that are not labelled, one per line; may be repeated.")
    ] = None,
    not_before: Annotated[
        list[str] | None,
        typer.Option(help='No entry is labelled directly before these: "Hilton, Street"; may be repeated.'),
    ] = None,
    not_after: Annotated[
        list[str] | None, typer.Option(help='No entry is labelled directly after these: "Mr., Dr."; may be repeated.')
    ] = None,
    match_case: Annotated[bool, typer.Option("--match-case", help='"Paris" does not match "PARIS".')] = False,
    match_width: Annotated[bool, typer.Option("--match-width", help="Full and half width differ.")] = False,
    match_traditional: Annotated[
        bool, typer.Option("--match-traditional", help="Traditional and simplified Chinese characters differ.")
    ] = False,
    source_format: Annotated[
        str | None, typer.Option("--from", help=f"Format of CORPUS: {FORMAT_NAMES}, or text.")
    ] = None,
    target_format: Annotated[str | None, typer.Option("--to", help="Format of OUTPUT.")] = None,
    as_json: Json = False,
) -> None:
    """Label a corpus with dictionaries, print the coverage and, where the corpus has gold, precision and recall."""
    from onoma.data.dictionary import Dictionary, read_phrases
    from onoma.data.streaming import stream_documents
    from onoma.evaluation.weak_labels import render_coverage
    from onoma.evaluation.weak_labels import weak_label as label_and_write

    stream = stream_documents(corpus, source_format)
    with spinner("reading dictionaries"):
        dictionary = Dictionary.load(
            dictionaries,
            type=entry_type,
            ambiguous=ambiguous,
            stop=[phrase for path in stop or () for phrase in read_phrases(path)],
            not_before=_split(not_before),
            not_after=_split(not_after),
            match_case=match_case,
            match_width=match_width,
            match_traditional=match_traditional,
        )
    with text_progress_bar(stream.bytes) as update:
        coverage = label_and_write(dictionary, stream.documents, output, target_format, update)
    if as_json:
        print_json({**coverage.to_dict(), "target": str(output)})
    else:
        show(render_coverage(coverage))
        print(f"{coverage.documents} documents written to {output}")


def _split(texts: list[str] | None) -> list[str]:
    from onoma.labels.parsing import split_labels

    return [phrase for text in texts or () for phrase in split_labels(text) if phrase]
