"""Small files under the names that the commands of the documentation read."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import shutil
from itertools import product
from pathlib import Path

import pyarrow
from pyarrow import parquet

from onoma.models.hub import EMBEDDED

ROOT = Path(__file__).resolve().parent.parent
DRUGS = ("aspirin", "ibuprofen", "codeine", "insulin", "warfarin", "heparin", "morphine", "naproxen")
DOSES = ("10 mg", "two tablets", "5 ml", "40 units")
PATTERNS = {"train": "She takes {} of {} .", "dev": "He was given {} of {} today .", "test": "We stopped {} of {} ."}
NEWS = ("Ann flew to Oslo.", "It rained in Bergen.", "Maria Silva of Fjord Optics takes aspirin in Paris.")


def make_files(folder: Path) -> None:
    """Write all of them, with links to the embedded model in place of trained ones."""
    for name in ("data/drugs", "data/news", "reports", "news", "models"):
        (folder / name).mkdir(parents=True)
    for name, (split, pattern) in product(("drugs", "news"), PATTERNS.items()):
        _write_lines(folder / f"data/{name}/{split}.jsonl", _annotated(pattern))
    _write_lines(folder / "found.jsonl", _annotated(PATTERNS["test"]))
    _write_lines(folder / "dosages.jsonl", [_marked("Take 75 mg daily.", "75 mg", "dosage")])
    _write_texts(folder)
    for name in ("runs/drugs", "runs/former", "runs/repairs/onnx"):
        link_model(EMBEDDED / "en", folder / name)
    link_model(EMBEDDED, folder / "models/mine")
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")


def _write_texts(folder: Path) -> None:
    texts = "".join(f"{one}\n" for one in NEWS)
    for name in ("notes.txt", "news.txt", "reports/may.txt", "reports/june.txt"):
        (folder / name).write_text(texts, encoding="utf-8")
    (folder / "chat.log.gz").write_bytes(gzip.compress(texts.encode()))
    lines = "".join(json.dumps({"text": one}) + "\n" for one in NEWS).encode()
    for name in ("news.jsonl.gz", "news/2024-01.jsonl.gz"):
        (folder / name).write_bytes(gzip.compress(lines))
    (folder / "huge.jsonl.xz").write_bytes(lzma.compress(lines))
    (folder / "drug.txt").write_text("\n".join(DRUGS), encoding="utf-8")
    (folder / "places.tsv").write_text("Oslo\tcity\nParis\tcity\n", encoding="utf-8")
    (folder / "common.txt").write_text("the\n", encoding="utf-8")
    tokens = {"tokenized_text": NEWS[0].split(), "ner": [[0, 0, "person"]]}
    (folder / "gliner_train.json").write_text(json.dumps([tokens]), encoding="utf-8")
    parquet.write_table(pyarrow.table({"body": NEWS}), folder / "articles.parquet")
    with (folder / "tickets.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([one] for one in NEWS)])


def link_model(source: Path, target: Path) -> None:
    """A model folder whose configuration may be changed; its other files are links."""
    for path in source.rglob("*"):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "config.json":
            shutil.copyfile(path, copy)
        elif path.is_file():
            copy.symlink_to(path)


def _annotated(pattern: str) -> list[dict[str, object]]:
    rows = []
    for number, drug in enumerate(DRUGS):
        text = pattern.format(DOSES[number % len(DOSES)], drug)
        rows.append(
            {"text": text, "entities": [_span(text, DOSES[number % len(DOSES)], "dose"), _span(text, drug, "drug")]}
        )
    return rows


def _marked(text: str, mention: str, label: str) -> dict[str, object]:
    return {"text": text, "entities": [_span(text, mention, label)]}


def _span(text: str, mention: str, label: str) -> dict[str, object]:
    start = text.index(mention)
    return {"start": start, "end": start + len(mention), "label": label}


def _write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
