"""Rows for the tiny model, and what `onoma corpus` makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tiny import documents

TEXTS = [document.text for document in documents()]


def make_rows(count: int) -> list[dict[str, Any]]:
    """Texts of different lengths, with other columns."""
    return [
        {"id": number, "text": " ".join(TEXTS[number % 140 :: 140 - number % 30]), "weight": number / 8}
        for number in range(count)
    ]


def write_lines(path: Path, rows: list[Any]) -> Path:
    """JSON lines; a string is written as it is."""
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read_shards(folder: Path) -> list[Any]:
    """The rows of all shards of JSON lines or Parquet, in their order."""
    rows: list[Any] = []
    for path in sorted(folder.glob("part-*")):
        if path.suffix == ".parquet":
            from pyarrow.parquet import read_table

            rows += read_table(path).to_pylist()
        else:
            rows += map(json.loads, path.read_text("utf-8").splitlines())
    return rows


def read_bytes(folder: Path) -> dict[str, bytes]:
    """All files of the result but the lock and the manifest."""
    files = (path for path in folder.iterdir() if path.name not in ("_lock", "_manifest.json"))
    return {path.name: path.read_bytes() for path in files}


def read_errors(folder: Path) -> list[tuple[str, int]]:
    """File and row of each line of the side file."""
    lines = (folder / "_errors.jsonl").read_text("utf-8").splitlines()
    return [(Path(one["file"]).name, one["row"]) for one in map(json.loads, lines)]


def found(rows: list[Any]) -> list[list[tuple[str, str]]]:
    """Text and label of the entities of each row."""
    return [[(one["text"], one["label"]) for one in row["entities"]] for row in rows]
