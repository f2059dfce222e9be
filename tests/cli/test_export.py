"""`onoma export`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onoma


def test_an_exported_model_runs_on_onnx(command: Callable[..., Any], tiny_model: Path, tmp_path: Path) -> None:
    outcome = command("export", tiny_model, tmp_path / "onnx")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1].startswith(f"written to {tmp_path / 'onnx'} (")
    ner = onoma.load(tmp_path / "onnx")
    assert ner.runtime.backend == "onnx"
    assert [one.text for one in ner.extract("Tom flew to Paris .", ["city"])] == ["Paris"]


def test_json_for_programs(command: Callable[..., Any], tiny_model: Path, tmp_path: Path) -> None:
    outcome = command("export", tiny_model, tmp_path / "int8", "--int8", "--json")
    size = sum(path.stat().st_size for path in (tmp_path / "int8").iterdir())
    assert json.loads(outcome.out) == {"model": str(tmp_path / "int8"), "bytes": size}


def test_an_existing_folder_is_not_overwritten(command: Callable[..., Any], tiny_model: Path) -> None:
    outcome = command("export", tiny_model, tiny_model)
    assert outcome.code == 2
    assert "exists already" in outcome.err


def test_help_has_an_example(command: Callable[..., Any]) -> None:
    assert "Example: onoma export" in command("export", "--help").out
