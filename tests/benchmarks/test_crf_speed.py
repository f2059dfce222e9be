"""The comparison with pytorch-crf, on a few words."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import crf_speed
from onoma.errors import OnomaError

torch.set_num_threads(1)


def test_figures_are_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["--sentences", 4, "--words", 12, "--types", 2, "--threads", 1, "--repeats", 3]
    monkeypatch.setattr(sys, "argv", ["crf_speed.py", *map(str, words), "--output", str(tmp_path / "records.json")])
    crf_speed.main()
    rows = json.loads((tmp_path / "records.json").read_text("utf-8"))
    assert {row["metric"] for row in rows} == {
        "crf/speed/random/none/times_pytorch_crf",
        "crf/speed/random/none/times_pytorch_crf_viterbi",
        *(f"{name}/speed/random/none/{work}_ms" for name in ("crf", "pytorch-crf") for work in ("loss", "viterbi")),
    }
    assert all(row["value"] > 0 for row in rows)
    assert "4 × 12 × 5 tags, 1 threads" in rows[0]["data"]


def test_different_results_are_an_error() -> None:
    with pytest.raises(OnomaError, match="loss: our CRF and pytorch-crf differ"):
        crf_speed.check("loss", crf_speed.Task(lambda: ([1.0],), lambda: ([2.0],)))
