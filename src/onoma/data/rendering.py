"""Output of documents with their entities: tables, JSON, JSON lines, CSV, Parquet, or an HTML page.

Everything is written document by document, so that output of any size appears while documents are read.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from heapq import heapify, heappop, heappush
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TextIO

from onoma.data.texts import Located
from onoma.entities import Document, Entity
from onoma.errors import DataError, OnomaError
from onoma.files import atomic_write, atomic_write_bytes
from onoma.text.terminal import printable

if TYPE_CHECKING:
    from rich.table import Table

OutputFormat = Literal["json", "jsonl", "html"]

LIGHT, DARK = (70, 86), (45, 26)
"""Saturation and lightness (in percent) of the background of entities, on a light and on a dark page."""
ROW_COLUMNS = ("file", "document", "id", "start", "end", "text", "label", "score")
"""The columns of CSV and Parquet; `document` counts the documents of a file from 1."""
ROWS_PER_GROUP = 50_000
"""Rows that are written to Parquet at once."""
SCORE_DIGITS = 4
"""Decimals of scores in every format."""
SECONDS_BETWEEN_TABLES = 5.0
"""How often rows are written while documents are read."""


def write_documents(
    documents: Iterable[Document],
    labels: Sequence[str],
    format: OutputFormat,
    path: str | os.PathLike[str] | None = None,
) -> None:
    """Write documents one by one, in UTF-8, to a file or to standard output; `labels` are for the legend of HTML."""
    with _open_output(path, utf8=True) as file:
        match format:
            case "json":
                pieces = as_json(documents)
            case "jsonl":
                pieces = as_jsonl(documents)
            case "html":
                pieces = as_html(documents, labels)
        for piece in pieces:
            file.write(piece)
            file.flush()


def write_csv(documents: Iterable[Located], path: str | os.PathLike[str] | None = None) -> None:
    """Write one row per entity as CSV, in UTF-8, to a file or to standard output."""
    with _open_output(path, utf8=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(ROW_COLUMNS)
        for one in documents:
            writer.writerows(_rows(one))
            file.flush()


def write_parquet(documents: Iterable[Located], path: str | os.PathLike[str] | None) -> None:
    """Write one row per entity as a Parquet file."""
    if path is None:
        raise OnomaError("parquet is a binary format, which needs a file. Fix: --output found.parquet")
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise OnomaError('parquet output needs pyarrow. Fix: pip install "onoma[parquet]"') from error
    kinds = {"document": "int64", "start": "int64", "end": "int64", "score": "float64"}
    schema = pyarrow.schema([(name, kinds.get(name, "string")) for name in ROW_COLUMNS])
    rows = (row for one in documents for row in _rows(one))
    with atomic_write_bytes(path) as file, parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(rows, ROWS_PER_GROUP)):
            writer.write_batch(pyarrow.record_batch(list(zip(*group, strict=True)), schema=schema))


def _rows(one: Located) -> Iterator[tuple[Any, ...]]:
    """A row per entity, with the values of `ROW_COLUMNS`."""
    identifier = None if one.document.id is None else str(one.document.id)
    for entity in one.document.entities:
        values = entity.to_dict() | {"score": round(entity.score, SCORE_DIGITS)}
        yield one.file, one.number, identifier, *values.values()


def write_tables(
    entities: Iterable[tuple[int | str, Sequence[Entity]]], path: str | os.PathLike[str] | None = None
) -> None:
    """Write entities as a table to a file or to standard output.

    Each item of `entities` is the number or name of a document, counted from 1, and entities of that document. If
    reading them takes long, rows are written every few seconds, as tables of equal width.
    """
    from rich.console import Console

    with _open_output(path) as file:
        console = Console(file=file)
        rows: list[tuple[int | str, Entity]] = []
        started, parts = time.monotonic(), 0
        for number, found in entities:
            rows += [(number, entity) for entity in found]
            if rows and time.monotonic() - started > SECONDS_BETWEEN_TABLES:
                console.print(as_table(rows, fixed=True, header=not parts))  # which also flushes
                rows, started, parts = [], time.monotonic(), parts + 1
        if rows or not parts:
            console.print(as_table(rows, fixed=parts > 0, header=not parts))


def _open_output(path: str | os.PathLike[str] | None, *, utf8: bool = False) -> AbstractContextManager[TextIO]:
    """The file, or standard output, which writes UTF-8 whatever the locale if `utf8` is set."""
    if path is not None:
        return atomic_write(path)
    if sys.stdout is None:
        raise DataError("standard output is closed", fix="name a file to write, or leave standard output open")
    if utf8 and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return nullcontext(sys.stdout)


def as_record(document: Document) -> dict[str, Any]:
    """A document as plain values, readable as the format `jsonl`."""
    record: dict[str, Any] = {} if document.id is None else {"id": document.id}
    record["text"] = document.text
    record["entities"] = [one.to_dict() | {"score": round(one.score, SCORE_DIGITS)} for one in document.entities]
    return record | {key: value for key, value in document.meta.items() if key not in record}


def as_jsonl(documents: Iterable[Document]) -> Iterator[str]:
    """One JSON object per line."""
    for document in documents:
        yield json.dumps(as_record(document), ensure_ascii=False) + "\n"


def as_json(documents: Iterable[Document]) -> Iterator[str]:
    """One JSON array, indented."""
    before = "[\n"
    for document in documents:
        yield before + json.dumps(as_record(document), ensure_ascii=False, indent=2)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def as_table(rows: Sequence[tuple[int | str, Entity]], *, fixed: bool = False, header: bool = True) -> Table:
    """A table for a rich console; rows are entities with the number of their document, counted from 1, or its name.

    With `fixed`, the widths of columns do not depend on the rows.
    """
    from rich.table import Table
    from rich.text import Text

    several = fixed or any(number != 1 for number, _ in rows)
    named = any(isinstance(number, str) for number, _ in rows)
    table = Table(show_header=header, expand=fixed)
    for column in ["document"] * several + ["start", "end", "text", "label", "score"]:
        is_text = column in ("text", "label") or (named and column == "document")
        width = None if is_text or not fixed else 10
        table.add_column(
            column, justify="left" if is_text else "right", overflow="fold", width=width, ratio=1 if is_text else None
        )
    for number, entity in rows:
        text, label = (printable(" ".join(one.split())) for one in (entity.text, entity.label))  # without line breaks
        cells = (str(entity.start), str(entity.end), text, label, f"{entity.score:.2f}")
        table.add_row(*[str(number)] * several, *map(Text, cells))  # as Text, brackets are not markup
    return table


def as_html(documents: Iterable[Document], labels: Sequence[str]) -> Iterator[str]:
    """A complete page with all entities highlighted, including nested ones, and a legend of the labels."""
    hues = {label: _hue(number) for number, label in enumerate(dict.fromkeys(labels))}
    legend = "".join(f'<li><mark style="--hue: {hue}">{escape(label)}</mark></li>\n' for label, hue in hues.items())
    yield _PAGE_START.format(style=_STYLE, legend=legend)
    for document in documents:
        name = document.meta.get("file") if document.id is None else document.id
        title = "" if name is None else f"<h2>{escape(str(name))}</h2>"
        yield f'<article dir="auto">{title}<p>{"".join(_highlighted(document, hues))}</p></article>\n'
    yield "</main>\n</body>\n</html>\n"


def _highlighted(document: Document, hues: dict[str, int]) -> Iterator[str]:
    """The text of a document with its entities as nested elements.

    HTML elements cannot cross, so an entity that crosses the end of the element it starts in is split there.
    """
    waiting = [(entity.start, -entity.end, number) for number, entity in enumerate(document.entities)]
    heapify(waiting)
    opened: list[int] = []  # ends of the open elements
    position = 0
    while waiting or opened:
        if opened and (not waiting or opened[-1] <= waiting[0][0]):
            yield escape(document.text[position : opened[-1]]) + "</mark>"
            position = opened.pop()
            continue
        start, end, number = heappop(waiting)
        if opened and -end > opened[-1]:
            heappush(waiting, (opened[-1], end, number))
            end = -opened[-1]
        entity = document.entities[number]
        hue = hues.setdefault(entity.label, _hue(len(hues)))
        yield escape(document.text[position:start]) + _opening(entity, hue, start > entity.start)
        opened.append(-end)
        position = start
    yield escape(document.text[position:])


def _hue(number: int) -> int:
    """Distinct hues for any number of labels: each is the golden angle away from the previous one."""
    return round(number * 137.508) % 360


def _opening(entity: Entity, hue: int, continued: bool) -> str:
    label = escape(entity.label)
    name = "" if continued else f"<span>{label}</span>"
    return f'<mark style="--hue: {hue}" title="{label}, {entity.score:.2f}">{name}'


_STYLE = f"""
:root {{ color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --saturation: {LIGHT[0]}%; --lightness: {LIGHT[1]}% }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #f2f2f2; --paper: #161616; --saturation: {DARK[0]}%; --lightness: {DARK[1]}% }}
}}
body {{ background: var(--paper); color: var(--ink); font: 1.05rem/2.1 system-ui, sans-serif; margin: 2rem auto;
  max-width: 50rem; padding: 0 1rem }}
h2 {{ font-size: 1rem; margin: 0 }}
ul {{ display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; padding: 0 }}
article {{ border-top: 1px solid #8886; padding: .5rem 0 }}
p {{ margin: .5rem 0; overflow-wrap: anywhere; white-space: pre-wrap }}
mark {{ background: hsl(var(--hue) var(--saturation) var(--lightness)); border-radius: .3em; color: inherit;
  outline: 1px solid #8888; padding: .15em .3em }}
mark span {{ font-size: .7em; font-weight: 600; margin-inline-end: .4em; user-select: none }}
""".strip()

_PAGE_START = """<!DOCTYPE html>
<html lang="">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Entities</title>
<style>
{style}
</style>
</head>
<body>
<main>
<ul aria-label="Labels">
{legend}</ul>
"""
