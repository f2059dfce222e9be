"""The training run that a model belongs to."""

from __future__ import annotations

import json
import os
from pathlib import Path

from onoma.evaluation.curves import Point
from onoma.evaluation.history import MOST_POINTS, read_history


def write_lines(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_loss_and_dev_scores_of_a_run(tmp_path: Path) -> None:
    rows = [{"loss": 2.0, "step": 5}, {"eval_f1": 40.0, "eval_recall": 1, "step": 5}, {"loss": 1.0, "step": 10}]
    write_lines(tmp_path / "curve.jsonl", *rows)
    found = read_history(tmp_path / "model")
    assert found is not None
    (stage,) = found.stages
    assert stage.stage == "training"
    assert stage.lines == {"training loss": ((5, 2.0), (10, 1.0)), "dev F1": ((5, 40.0),)}


def test_stages_are_in_the_order_in_which_they_were_trained(tmp_path: Path) -> None:
    for place, name in enumerate(("detection", "classification")):
        write_lines(tmp_path / f"curve-{name}.jsonl", *({"loss": 1.0, "step": step} for step in range(3)))
        os.utime(tmp_path / f"curve-{name}.jsonl", (place, place))
    found = read_history(tmp_path / "model")
    assert found is not None
    assert [one.stage for one in found.stages] == ["detection", "classification"]


def test_two_points_of_the_loss_are_no_curve_and_the_check_has_dev_scores(tmp_path: Path) -> None:
    losses = [{"loss": 2.0, "step": 5}, {"loss": 1.0, "step": 10}]
    write_lines(tmp_path / "curve.jsonl", *losses)
    assert read_history(tmp_path / "model") is None
    write_lines(tmp_path / "check" / "curve.jsonl", *losses, {"eval_f1": 40.0, "step": 10})
    found = read_history(tmp_path / "onnx")
    assert found is not None
    (stage,) = found.stages
    assert stage.stage == "check: training"
    assert stage.lines["dev F1"] == ((10, 40.0),)


def test_few_shot_results_above_the_run(tmp_path: Path) -> None:
    values = [{"corpus": "news", "sentences": n, "f1": f1, "spread": None} for n, f1 in ((5, 20.0), (50, 60.0))]
    (tmp_path / "results.json").write_text(json.dumps({"values": values}), "utf-8")
    found = read_history(tmp_path / "5-shot" / "model")
    assert found is not None
    assert found.sizes == {"news": [Point(5, 20.0), Point(50, 60.0)]}


def test_damaged_logs_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{", "utf-8")
    (tmp_path / "curve.jsonl").write_text('{"loss": NaN, "step": 1}\n{\n[]\n{"loss": "x", "step": 2}\n', "utf-8")
    assert read_history(tmp_path / "model") is None
    assert read_history(tmp_path / "nowhere" / "model") is None


def test_long_runs_have_a_limited_number_of_points(tmp_path: Path) -> None:
    write_lines(tmp_path / "curve.jsonl", *({"loss": 1.0, "step": step} for step in range(5 * MOST_POINTS)))
    found = read_history(tmp_path / "model")
    assert found is not None
    assert 100 < len(found.stages[0].lines["training loss"]) <= MOST_POINTS
