"""Reads files once before they are annotated: their groups of rows and, for Parquet, the types of their columns.

With several large files, the engine does this side by side; `python -m onoma.scale.scan` is the program of its
processes.
"""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from onoma.errors import OnomaError
from onoma.scale.columns import ColumnTypes, read_schema, unify
from onoma.scale.manifest import Manifest, SourceFile
from onoma.scale.plan import FilePlan, cut_shards, scan
from onoma.scale.service import Answer, serve

MANY_BYTES = 50_000_000
"""Bytes of several files from which they are read side by side."""

ScanFiles = Callable[[Sequence[dict[str, Any]]], Iterator[tuple[int, Answer]]]


class Scanned(NamedTuple):
    """What is found in a file."""

    plan: FilePlan
    columns: list[str]
    schema: Any  # of pyarrow; None if the output is not Parquet


def plan_run(asked: Manifest, scan_files: ScanFiles) -> Manifest:
    """The manifest with a plan; `scan_files` reads many files."""
    is_typed = asked.settings.output_format == "parquet"
    requests = [
        {"name": file.name, "format": file.format, "text_column": asked.settings.text_column, "is_typed": is_typed}
        for file in asked.files
    ]
    is_large = len(requests) > 1 and sum(file.bytes for file in asked.files) > MANY_BYTES
    found = dict(scan_files(requests)) if is_large else dict(enumerate(map(scan_file, requests)))
    scanned = [_read_answer(found[number]) for number in range(len(requests))]
    names = [file.name for file in asked.files]
    return asked.planned(
        [one.plan.rows for one in scanned],
        [one.columns for one in scanned],
        cut_shards([one.plan for one in scanned], asked.rows_per_shard),
        unify([one.schema for one in scanned], names) if is_typed else None,
    )


def scan_file(request: dict[str, Any]) -> Answer:
    """What is found in a file, as plain values."""
    reader = SourceFile(request["name"], 0, request["format"]).open(request["text_column"])
    schema = None
    if request["is_typed"]:
        types = ColumnTypes(reader)
        plan = scan(reader.sizes() if reader.is_typed else types.watch(reader.rows()))
        schema = base64.b64encode(types.schema().serialize()).decode("ascii")
    else:
        plan = scan(reader.sizes())
    groups = {name: getattr(plan, name).tolist() for name in ("first", "offset", "before")}
    return {"rows": plan.rows, "bytes": plan.bytes, **groups, "columns": reader.columns, "schema": schema}


def _read_answer(answer: Answer) -> Scanned:
    if "failed" in answer:
        raise OnomaError(answer["failed"])
    groups = (array("q", answer[name]) for name in ("first", "offset", "before"))
    return Scanned(FilePlan(answer["rows"], answer["bytes"], *groups), answer["columns"], read_schema(answer["schema"]))


if __name__ == "__main__":
    serve(lambda: lambda task: scan_file(json.loads(task)))
