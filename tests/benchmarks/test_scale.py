"""The benchmark of `onoma corpus` and the table that is computed from it, with the tiny model."""

from __future__ import annotations

import importlib.util
import subprocess
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
    words = ["scale.py", "--parts", "speed", "--engines", "local", "--documents", 200, "--turns", 2]
    words += ["--note", "tiny", "--model", model, "--output", output]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    scale.main()
    figures = Figures(read_records(output), {})
    ratio = figures.find(f"{sizing.PREFIX}local_2_workers_times_1")
    assert ratio is not None
    assert ratio.value > 0.2
    assert "1,000,000,000" in sizing.render(figures)
    rows = read_records(output)
    assert {row["data"].rpartition("; ")[2] for row in rows} == {"tiny"}
    (used,) = (row for row in rows if row["metric"].endswith("/local_1_worker_cpu_ms_per_document"))
    assert used["turns"] == 2
    assert used["value"] > 0


def test_processor_time_is_that_of_all_processes() -> None:
    busy = "import time\nwhile time.process_time() < 1.2: pass"
    with scale.ProcessorTime() as used:
        subprocess.run([sys.executable, "-c", busy], check=True)
    assert 0.4 < used.seconds < 3


def test_two_workers_of_ray_are_compared_with_one_local_worker() -> None:
    rates = {("local", 1): 100.0, ("local", 2): 190.0, ("ray", 1): 90.0, ("ray", 2): 170.0}
    measured = {key: [scale.Turn(rate, 1.0), scale.Turn(2 * rate, 1.0)] for key, rate in rates.items()}
    figures = {one.metric.rpartition("/")[2]: one for one in scale._speed_records(measured, 17.0, "own")}
    assert figures["ray_2_workers_times_local_1"].value == 1.7
    assert figures["ray_2_workers_times_1"].value == pytest.approx(1.8889)
    assert "ray_2_workers_times_local_1" not in {
        one.metric.rpartition("/")[2]
        for one in scale._speed_records({k: v for k, v in measured.items() if k[0] == "local"}, 17.0, "own")
    }


@pytest.mark.slow
def test_memory_of_the_local_engine(monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path) -> None:
    model, output = export(tiny_model, tmp_path / "onnx", int8=True), tmp_path / "records.json"
    words = ["scale.py", "--parts", "memory", "--engines", "local", "--short-documents", 41_000]
    monkeypatch.setattr(scale, "SAMPLE_SECONDS", 0.05)
    monkeypatch.setattr(sys, "argv", [*map(str, words), "--model", str(model), "--output", str(output)])
    scale.main()
    figures = {row["metric"].rpartition("/")[2]: row["value"] for row in read_records(output)}
    assert figures["local_late_peak_mb"] > 10
    assert figures["local_late_peak_times_early"] < 1.5


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
