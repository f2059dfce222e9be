"""Documents with their entities for people and programs: a table, JSON, JSON lines, or a page with marked spans.

All but the table come piece by piece, so that a page or a file of any size can be written as documents are found.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TextIO

from onoma.data.files import atomic_write
from onoma.entities import Document, Entity

if TYPE_CHECKING:
    from rich.table import Table

Format = Literal["table", "json", "jsonl", "html"]

LIGHT, DARK = (70, 86), (45, 26)
"""Saturation and lightness of a mark's background, on a light and on a dark page."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def write(
    documents: Iterable[Document], labels: Sequence[str], format: Format, path: str | os.PathLike[str] | None = None
) -> None:
    """Write documents as they come to a file, or to standard output; `labels` are those that were asked for."""
    if path is not None:
        with atomic_write(path) as file:
            _write(documents, labels, format, file)
    else:
        _write(documents, labels, format, sys.stdout)


def _write(documents: Iterable[Document], labels: Sequence[str], format: Format, file: TextIO) -> None:
    match format:
        case "table":
            from rich.console import Console

            Console(file=file).print(as_table(documents))
        case "json":
            file.writelines(as_json(documents))
        case "jsonl":
            file.writelines(as_jsonl(documents))
        case "html":
            file.writelines(as_html(documents, labels))


def as_record(document: Document) -> dict[str, Any]:
    """A document as plain values; `onoma` reads them back as its format `jsonl`."""
    entities = [
        {"start": one.start, "end": one.end, "text": one.text, "label": one.label, "score": round(one.score, 4)}
        for one in document.entities
    ]
    name = {} if document.id is None else {"id": document.id}
    return {**name, "text": document.text, "entities": entities}


def as_jsonl(documents: Iterable[Document]) -> Iterator[str]:
    """One JSON object a line."""
    for document in documents:
        yield json.dumps(as_record(document), ensure_ascii=False) + "\n"


def as_json(documents: Iterable[Document]) -> Iterator[str]:
    """One JSON array, laid out to be read."""
    between = "[\n"
    for document in documents:
        yield between + json.dumps(as_record(document), ensure_ascii=False, indent=2)
        between = ",\n"
    yield "[]\n" if between == "[\n" else "\n]\n"


def as_table(documents: Iterable[Document]) -> Table:
    """A row for each entity, for a rich console; several documents are numbered from 1."""
    from rich.table import Table
    from rich.text import Text

    rows = [(number, entity) for number, document in enumerate(documents, 1) for entity in document.entities]
    several = any(number > 1 for number, _ in rows)
    table = Table()
    for column in ["document"] * several + ["start", "end", "text", "label", "score"]:
        table.add_column(column, justify="left" if column in ("text", "label") else "right", overflow="fold")
    for number, entity in rows:
        text = " ".join(entity.text.split())  # a mention may run over a line's end
        text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)  # which a terminal would obey
        cells = (str(entity.start), str(entity.end), text, entity.label, f"{entity.score:.2f}")
        table.add_row(*[str(number)] * several, *map(Text, cells))  # Text: brackets in a text are not rich's markup
    return table


def as_html(documents: Iterable[Document], labels: Sequence[str]) -> Iterator[str]:
    """A page of its own with every entity marked, those inside of others too, and a legend of the labels asked for."""
    hues = {label: _hue(number) for number, label in enumerate(dict.fromkeys(labels))}
    legend = "".join(f'<li><mark style="--hue: {hue}">{escape(label)}</mark></li>\n' for label, hue in hues.items())
    yield _PAGE_START.format(style=_STYLE, legend=legend)
    for document in documents:
        title = "" if document.id is None else f"<h2>{escape(document.id)}</h2>"
        yield f'<article dir="auto">{title}<p>{"".join(_marked(document, hues))}</p></article>\n'
    yield "</main>\n</body>\n</html>\n"


def _marked(document: Document, hues: dict[str, int]) -> Iterator[str]:
    """The text of a document with its entities as elements inside of each other.

    HTML knows no elements that cross: an entity that reaches over the end of the one it begins in is cut there and
    goes on behind it.
    """
    waiting = [(entity.start, -entity.end, number) for number, entity in enumerate(document.entities)]
    heapify(waiting)
    opened: list[int] = []  # ends of the elements that are open
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
    """Colours that lie far from each other, however many there are: each is a golden angle away from the last."""
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
