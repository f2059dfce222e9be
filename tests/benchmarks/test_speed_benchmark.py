"""The benchmark of speed against the bare encoder, on the tiny model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import speed
from onoma.models.export import export


def test_the_figures_that_are_recorded(monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path) -> None:
    folder = export(tiny_model, tmp_path / "model", int8=True)
    words = ["speed.py", "--model", folder, "--name", "tiny", "--limit", 10, "--turns", 1, "--label-counts", 1, 20]
    words += ["--text-lengths", 20, "--long-texts", 300, 3000, "--output", tmp_path / "records.json"]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    monkeypatch.setattr(speed, "EMOJI", 3000)
    speed.main()
    rows = json.loads((tmp_path / "records.json").read_text("utf-8"))
    figures = {row["metric"].rpartition("/")[2]: row["value"] for row in rows}
    assert {row["metric"].split("/")[0] for row in rows} == {"tiny"}
    assert figures["20_labels_share_of_encoder_percent"] > 0
    assert figures["1_labels_times_of_fewest"] == 1
    assert figures["linear_times_cpu"] < 5
    assert figures["3000_words_memory_mb"] > 10
    assert figures["3000_emoji_s"] > 0


def test_a_model_that_cannot_be_read() -> None:
    with pytest.raises(speed.OnomaError, match="cannot be read"):
        speed.read_long("no/such/folder", None, 10)
