"""Reads files once before they are annotated: their groups of rows and, for Parquet, the types of their columns.

With several large files, the engine does this side by side; `python -m onoma.scale.scan` is the program of its
processes.
"""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from onoma.errors import DataError, OnomaError
from onoma.scale.columns import ColumnTypes, read_schema, unify
from onoma.scale.manifest import Manifest, SourceFile
from onoma.scale.plan import FilePlan, cut_shards, scan
from onoma.scale.rows import Row, missing_column
from onoma.scale.service import Answer, serve

MANY_BYTES = 50_000_000
"""Bytes of several files from which they are read side by side."""

ScanFiles = Callable[[Sequence[dict[str, Any]]], Iterator[tuple[int, Answer]]]
OnPlan = Callable[[int], None]

_REPORTED_ROWS = 1024


class Scanned(NamedTuple):
    """What is found in a file."""

    plan: FilePlan
    columns: list[str]
    schema: Any  # of pyarrow; None if the output is not Parquet


def plan_run(asked: Manifest, scan_files: ScanFiles, on_plan: OnPlan) -> Manifest:
    """The manifest with a plan; `scan_files` reads many files. `on_plan` is called with the rows that were read."""
    settings = asked.settings
    is_typed = settings.output_format == "parquet"
    requests = [
        {
            "name": file.name,
            "format": file.format,
            "separator": file.separator,
            "text_column": settings.text_column,
            "entities_column": settings.entities_column,
            "is_typed": is_typed,
        }
        for file in asked.files
    ]
    is_large = len(requests) > 1 and sum(file.bytes for file in asked.files) > MANY_BYTES
    found, rows = dict[int, Scanned](), 0
    for number, answer in scan_files(requests) if is_large else _scan_here(requests, on_plan):
        found[number] = _read_answer(answer)
        rows += found[number].plan.rows
        on_plan(rows)
    scanned = [found[number] for number in range(len(requests))]
    names = [file.name for file in asked.files]
    for file, one in zip(asked.files, scanned, strict=True):
        check_table(file.name, one.columns, settings.text_column, settings.entities_column)
    return asked.planned(
        [one.plan.rows for one in scanned],
        [one.columns for one in scanned],
        cut_shards([one.plan for one in scanned], asked.rows_per_shard),
        unify([one.schema for one in scanned], names) if is_typed else None,
    )


def check_table(name: str, columns: Sequence[str], text_column: str, entities_column: str) -> None:
    """Raise an error for a table without texts, or with a column where entities are to be written."""
    if entities_column in columns:
        fix = "give another name with --entities-column"
        raise DataError(f"there is a column {entities_column!r} already", path=name, fix=fix)
    if columns and text_column not in columns:
        raise missing_column(name, text_column, columns)


def _scan_here(requests: Sequence[dict[str, Any]], on_plan: OnPlan) -> Iterator[tuple[int, Answer]]:
    """The plans of files that this process reads itself."""
    before = 0
    for number, request in enumerate(requests):
        answer = scan_file(request, partial(_report, on_plan, before))
        before += answer["rows"]
        yield number, answer


def _report(on_plan: OnPlan, before: int, rows: int) -> None:
    on_plan(before + rows)


def scan_file(request: dict[str, Any], on_plan: OnPlan = lambda rows: None) -> Answer:
    """What is found in a file, as plain values."""
    file = SourceFile(request["name"], 0, request["format"], separator=request["separator"])
    reader = file.open(request["text_column"])
    schema = None
    if request["is_typed"]:
        types = ColumnTypes(reader, request["entities_column"])
        rows = reader.sizes() if reader.is_typed else types.watch(reader.rows())
        plan = scan(_reported(rows, on_plan))
        schema = base64.b64encode(types.schema().serialize()).decode("ascii")
    else:
        plan = scan(_reported(reader.sizes(), on_plan))
    groups = {name: getattr(plan, name).tolist() for name in ("first", "offset", "before")}
    return {"rows": plan.rows, "bytes": plan.bytes, **groups, "columns": reader.columns, "schema": schema}


def _reported(rows: Iterator[Row], on_plan: OnPlan) -> Iterator[Row]:
    for number, row in enumerate(rows):
        if number % _REPORTED_ROWS == 0:
            on_plan(number)
        yield row


def _read_answer(answer: Answer) -> Scanned:
    if "failed" in answer:
        raise OnomaError(answer["failed"])
    groups = (array("q", answer[name]) for name in ("first", "offset", "before"))
    return Scanned(FilePlan(answer["rows"], answer["bytes"], *groups), answer["columns"], read_schema(answer["schema"]))


if __name__ == "__main__":
    serve(lambda: lambda task: scan_file(json.loads(task)))
