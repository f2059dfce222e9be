"""The benchmarks of the runtime without PyTorch, on the tiny model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import agreement
import runtime
from onoma.data import write
from tiny import corpus


def run(monkeypatch: pytest.MonkeyPatch, module: object, tiny_model: Path, folder: Path) -> dict[str, float]:
    """The figures that a benchmark records, by measure."""
    write(corpus().documents[:40], folder / "tiny.jsonl")
    output = folder / "records.json"
    words = ["benchmark", tiny_model, "--corpus", folder / "tiny.jsonl", "--limit", 30, "--output", output]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    monkeypatch.setattr(module, "TURNS", 1)
    module.main()  # type: ignore[attr-defined]
    return {row["metric"].split("/")[-1]: row["value"] for row in json.loads(output.read_text("utf-8"))}


def test_agreement(monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path) -> None:
    figures = run(monkeypatch, agreement, tiny_model, tmp_path)
    assert figures["torch_f1"] == figures["onnx_f1"] > 90
    assert figures["onnx_largest_score_difference"] < 1e-3
    assert figures["onnx_sentences_with_the_same_entities_percent"] == 100
    assert figures["onnx-int8_largest_score_difference"] < 0.3
    assert figures["onnx-int8_megabytes"] < figures["onnx_megabytes"]


def test_runtime(monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path) -> None:
    figures = run(monkeypatch, runtime, tiny_model, tmp_path)
    assert figures["encoder_sentences_per_s"] > 0
    assert figures["5_types_sentences_per_s"] > 0
    assert 0 < figures["start_s"] < 60
