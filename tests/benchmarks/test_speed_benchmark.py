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
    words += ["--long-turns", 2, "--turns", 2, "--note", "tiny"]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    monkeypatch.setattr(speed, "EMOJI", 3000)
    monkeypatch.setattr(speed, "MIXED_EMOJI", (300, 3000))
    stale = {"metric": "tiny/speed/none/none/7_labels_p50_ms", "value": 1.0}
    other = {"metric": "other/speed/none/none/7_labels_p50_ms", "value": 1.0}
    (tmp_path / "records.json").write_text(json.dumps([stale, other]), "utf-8")
    speed.main()
    rows = json.loads((tmp_path / "records.json").read_text("utf-8"))
    assert stale not in rows
    rows.remove(other)
    figures = {row["metric"].rpartition("/")[2]: row["value"] for row in rows}
    assert {row["metric"].split("/")[0] for row in rows} == {"tiny"}
    assert figures["20_labels_share_of_encoder_percent"] > 0
    assert figures["1_labels_times_of_fewest"] == 1
    assert figures["linear_times_cpu"] < 5
    assert figures["3000_words_memory_mb"] > 10
    assert figures["3000_emoji_s"] > 0
    assert figures["mixed_emoji_linear_times_cpu"] < 5
    assert figures["20_labels_memory_mb"] > 10
    assert 0 < figures["batch_size_8_p50_ms"] <= figures["batch_size_8_p99_ms"]
    assert "batch_size_256_p99_ms" not in figures  # too few calls
    (share,) = (row for row in rows if row["metric"].endswith("/20_labels_share_of_encoder_cpu_percent"))
    assert share["turns"] == 2
    assert share["range"][0] <= share["value"] <= share["range"][1]
    assert share["spread"] == pytest.approx((share["range"][1] - share["range"][0]) / 2**0.5, abs=1e-3)
    assert all(" threads, " in row["data"] and "; tiny" in row["data"] for row in rows)


def test_a_model_that_cannot_be_read() -> None:
    with pytest.raises(speed.OnomaError, match="cannot be read"):
        speed.read_long("no/such/folder", None, "words", 10)
