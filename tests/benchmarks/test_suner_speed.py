"""The benchmark of SUNER's speed beside other systems, on tiny models and sentences."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import suner_speed
from onoma.models.config import ModelConfig
from onoma.models.weights import save_model
from onoma.systems.punifiedner.model import PUnifiedNer
from onoma.systems.punifiedner.options import PUnifiedNerOptions
from records import main_with_errors
from tiny_suner import tiny_suner
from tiny_t5 import save_t5

torch.set_num_threads(1)


def save_suner(form: str, tokenizer_folder: Path, folder: Path) -> Path:
    model = tiny_suner("mpnet", {"vocab_size": 400}, form=form, dataset_prefix=form != "one-stage")
    config = ModelConfig("suner", max_tokens=40, overlap=4, datasets=("small",), options=asdict(model.options))
    save_model(model, config, tokenizer_folder, folder)
    return folder


def save_punifiedner(folder: Path, t5_folder: Path) -> Path:
    from onoma.systems.blocks.encoders import load_t5

    options = PUnifiedNerOptions(max_answer_tokens=4)
    model = PUnifiedNer(load_t5(t5_folder), options)
    save_model(model, ModelConfig("punifiedner", max_tokens=60, options=asdict(options)), t5_folder, folder)
    return folder


@pytest.fixture
def arguments(tiny_model: Path, encoder_folder: Path, data_folder: Path, tmp_path: Path) -> list[str]:
    values: dict[str, object] = {
        "--two-stage": save_suner("two-stage", encoder_folder, tmp_path / "two-stage"),
        "--fused": save_suner("fused", encoder_folder, tmp_path / "fused"),
        "--data": data_folder,
        "--corpus": "small",
        "--batch-size": 4,
        "--repeats": 2,
        "--rounds": 1,
        "--threads": 2,
        "--output": tmp_path / "records.json",
    }
    return [str(word) for pair in values.items() for word in pair]


def test_all_systems_are_measured_and_profiled(
    arguments: list[str],
    tiny_model: Path,
    encoder_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = {
        "--one-stage": save_suner("one-stage", encoder_folder, tmp_path / "one-stage"),
        "--binder": tiny_model,
        "--punifiedner": save_punifiedner(tmp_path / "generator", save_t5(tmp_path / "t5")),
        "--profile": tmp_path / "profile",
    }
    words = [str(word) for pair in more.items() for word in pair]
    monkeypatch.setattr(sys, "argv", ["suner_speed.py", *arguments, *words, "--generator-batch-sizes", "8", "16"])
    suner_speed.main()
    rows = {row["metric"]: row for row in json.loads((tmp_path / "records.json").read_text("utf-8"))}
    by_system: dict[str, set[str]] = {}
    for metric in rows:
        name, setting, corpus, encoder, measure = metric.split("/")
        assert (setting, corpus) == ("speed", "small")
        assert encoder == ("flan-t5-base" if name == "punifiedner" else "mpnet-base")
        by_system.setdefault(name, set()).add(measure)
    always = {"sentences_per_s", "times_encoder", "parameters", "f1"}
    assert by_system == {
        "encoder": {"sentences_per_s", "times_encoder"},
        "suner": always | {"times_punifiedner", "candidates_per_sentence"},
        "suner-fused": always | {"times_punifiedner", "candidates_per_sentence", "times_two_stage"},
        "suner-one-stage": always | {"times_punifiedner"},
        "binder": always,
        "punifiedner": always,
    }
    value = {metric: row["value"] for metric, row in rows.items()}
    assert value["encoder/speed/small/mpnet-base/times_encoder"] == 1
    assert value["binder/speed/small/mpnet-base/f1"] > 90
    fused, two = (value[f"{name}/speed/small/mpnet-base/sentences_per_s"] for name in ("suner-fused", "suner"))
    assert value["suner-fused/speed/small/mpnet-base/times_two_stage"] == pytest.approx(fused / two, rel=1e-2)
    assert value["suner/speed/small/mpnet-base/parameters"] > value["suner-fused/speed/small/mpnet-base/parameters"]
    assert value["suner-fused/speed/small/mpnet-base/candidates_per_sentence"] > 0

    profile = json.loads((tmp_path / "profile" / "profile.json").read_text("utf-8"))
    parts = {"copy", "encode", "detect", "choose", "markers", "match", "copy back", "proposals", "rest"}
    assert set(profile["suner-fused"]["parts_ms"]) == set(profile["suner"]["parts_ms"]) == parts
    assert all(one > 0 for one in profile["suner-fused"]["parts_ms"].values())
    assert profile["encoder"]["operators"] < profile["suner-fused"]["operators"]
    assert "aten::addmm" in (tmp_path / "profile" / "profile_suner-fused.txt").read_text("utf-8")
    assert profile["batch_ms"]["1 threads"].keys() == {"encoder", "suner", "suner-fused"}
    assert profile["kernel"]["proposals"] == profile["kernel"]["proposals_of_both"] > 0
    assert "punifiedner in batches of 16" in capsys.readouterr().out


def test_only_the_two_forms_are_needed(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["suner_speed.py", *arguments])
    suner_speed.main()
    rows = json.loads((tmp_path / "records.json").read_text("utf-8"))
    assert {row["metric"].split("/")[0] for row in rows} == {"encoder", "suner", "suner-fused"}
    assert "--output" not in rows[0]["command"]


def test_a_folder_without_a_model_is_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["suner_speed.py", *arguments, "--binder", str(tmp_path / "nothing")])
    with pytest.raises(SystemExit) as stopped:
        main_with_errors(suner_speed.main)
    assert stopped.value.code == 2
    assert "nothing" in capsys.readouterr().err
