"""The benchmark of types by example on small sets: what is drawn, and what the records say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import types_by_example
from onoma.data import write
from tiny import documents


def test_records_of_a_small_run(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in types_by_example.BENCHMARKS["en"]:
        write(documents()[::7], tmp_path / "data" / "en" / name / "train.jsonl")
        write(documents()[1:60:9], tmp_path / "data" / "en" / name / "test.jsonl")
    output, options = tmp_path / "records.json", ("--language", "en", "--shots", "2", "--draws", "2")
    arguments = ("--data", tmp_path / "data", "--model", tiny_model, "--output", output, *options)
    monkeypatch.setattr(sys, "argv", ["types_by_example.py", *map(str, arguments)])
    types_by_example.main()
    rows = {row["metric"]: row for row in json.loads(output.read_text("utf-8"))}
    assert len(rows) == 2 * (len(types_by_example.BENCHMARKS["en"]) + 1)
    assert rows["embedded/name-only/conll2003/tiny/f1"]["value"] == 100.0
    taught = rows["embedded/2-examples/wnut17/tiny/f1"]
    assert taught["value"] > 90
    assert taught["seeds"] == [0, 1]
    assert "embedded/2-examples/average-of-9/tiny/f1" in rows
