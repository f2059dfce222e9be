"""The checks for GPUs, with simulated CUDA graphs, on tiny models."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import check_gpu
from onoma.systems.suner.single_pass import SinglePass
from simulated_graphs import SimulatedGraphs

torch.set_num_threads(1)
SIZE = ["--device", "cpu", "--layers", "1", "--hidden", "32", "--heads", "2"]
SIZE += ["--shapes", "20x16", "5x12", "--rounds", "1", "--repeats", "1", "--threads", "1", "2"]


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("blocks", "suner"):
        name = f"onoma.systems.{module}.torch_runtime.InferenceGraphs"
        monkeypatch.setattr(name, lambda device: SimulatedGraphs())
    monkeypatch.setattr(check_gpu, "VARIANTS", check_gpu.VARIANTS[:2])
    monkeypatch.setattr(check_gpu, "TINY_SHAPES", ((4, 12),))


@pytest.mark.slow
def test_all_checks_pass_and_times_are_reported(
    simulated: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["check_gpu.py", *SIZE, "--output", str(tmp_path / "report.json")])
    assert check_gpu.main() == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert json.loads((tmp_path / "report.json").read_text("utf-8")) == report
    assert report["failures"] == []
    assert report["checks"]["large fused"]["graphs"] == 2
    assert all(one["shared"] == 1 for one in report["checks"].values() if "shared" in one)
    assert report["checks"]["large replay"]["small_budgets_refused"]
    assert set(report["times"]) == {"encoder", "fused", "two-stage"}
    assert report["times"]["fused"]["graphs_2_threads_ms"] > 0
    assert "graphs_1_threads_ms / encoder" in report["ratios"]
    assert 1 < report["candidates"]["fused"] < 4


@pytest.mark.slow
def test_wrong_results_are_noticed(
    simulated: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right: Any = SinglePass._packed

    def wrong(self: SinglePass, positions: Any, chosen: Any) -> Any:
        packed = right(self, positions, chosen)
        return packed._replace(texts=packed.texts.roll(1))

    monkeypatch.setattr(SinglePass, "_packed", wrong)
    monkeypatch.setattr(sys, "argv", ["check_gpu.py", *SIZE])
    assert check_gpu.main() == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "tiny suner {}" in report["failures"]
