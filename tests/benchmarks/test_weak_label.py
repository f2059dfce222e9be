"""The benchmark of labelling with a dictionary, on a few sentences."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import weak_label
from onoma import Document
from onoma.data import write

NAMES = ("Ines Duarte", "Omar Haddad", "Greta Lund", "Li Wei", "Bergen", "Lisbon")


def test_figures_are_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    documents = [
        Document.from_spans(f"{name} was seen on day {day}.", [(0, len(name), "name")])
        for name in NAMES
        for day in range(50)
    ]
    write(documents, tmp_path / "data" / "small" / "train.jsonl")
    (tmp_path / "data" / "notes").mkdir()
    monkeypatch.setattr(weak_label, "FREQUENT", 200_000)
    words = ["--data", tmp_path / "data", "--megabytes", 1, "--entries", 60, "--output", tmp_path / "records.json"]
    monkeypatch.setattr(sys, "argv", ["weak_label.py", *map(str, words)])
    weak_label.main()
    figures = {row["metric"]: row["value"] for row in json.loads((tmp_path / "records.json").read_text("utf-8"))}
    assert figures["weak-label/60-entries/mixed-texts/none/mb_per_s"] > 0
    assert figures["weak-label/60-entries/mixed-texts/none/peak_memory_mb"] > 10
    assert figures["weak-label/60-entries/mixed-texts/none/entries_used"] >= len(NAMES)
    assert figures["weak-label/60-entries/mixed-texts/none/mentions_per_kb"] > 5
