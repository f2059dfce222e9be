"""The benchmark of `onoma corpus` and the table that is computed from it, with the tiny model."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import sizing
from figures import Figures
from onoma.models.export import export
from records import read_records

specification = importlib.util.spec_from_file_location("scale_benchmark", Path(sys.path[0]) / "scale.py")
assert specification is not None
assert specification.loader is not None
scale = importlib.util.module_from_spec(specification)
specification.loader.exec_module(scale)


@pytest.mark.slow
def test_speed_of_an_engine(monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path) -> None:
    model, output = export(tiny_model, tmp_path / "onnx", int8=True), tmp_path / "records.json"
    words = ["scale.py", "--parts", "speed", "--engines", "local", "--documents", 200, "--turns", 1]
    words += ["--model", model, "--output", output]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    scale.main()
    figures = Figures(read_records(output), {})
    ratio = figures.find(f"{sizing.PREFIX}local_2_workers_times_1")
    assert ratio is not None
    assert ratio.value > 0.2
    assert "1,000,000,000" in sizing.render(figures)


def test_one_row_in_a_hundred_is_damaged(tmp_path: Path) -> None:
    path = scale.write_corpus(tmp_path / "a.jsonl", ["a text"] * 300, damaged=True)
    lines = path.read_text("utf-8").splitlines()
    assert [number for number, line in enumerate(lines) if not line.endswith("}")] == [0, 100, 200]


def test_hours_and_costs_follow_from_the_rate() -> None:
    *_, last = sizing.table(1000.0, 0.05).splitlines()
    assert [cell.strip() for cell in last.strip("|").split("|")] == [
        "1,000,000,000",
        "277.8",
        "$13.89",
        "17 h",
        "4 h",
        "3 min",
    ]
    assert sizing.render(Figures([], {})) == sizing.NOT_MEASURED


def test_sizes_follow_from_figures_of_one_run() -> None:
    def record(measure: str, value: float, commit: str) -> dict[str, object]:
        return {"metric": sizing.PREFIX + measure, "value": value, "spread": None, "seeds": []} | {
            "command": "make it",
            "commit": commit,
        }

    rate = record("local_1_worker_documents_per_s", 1000.0, "a")
    words, ratio = (record(name, 2.0, "a") for name in ("words_per_document", "local_2_workers_times_1"))
    assert "documents of 2 words per second" in sizing.render(Figures([rate, words, ratio], {}))
    assert "1,000 documents per second" in sizing.render(Figures([rate, words | {"commit": "b"}, ratio], {}))
    assert sizing.render(Figures([rate, words, ratio | {"commit": "b"}], {})) == sizing.NOT_MEASURED
