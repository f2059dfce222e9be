"""`onoma serve`: options. `tests/serve/test_run.py` starts it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command

from onoma.cli import app
from onoma.models.hub import EMBEDDED
from onoma.serve.settings import Limits, ServeSettings, read_api_key
from onoma.serve.sources import parse_sources

ROOT = Path(__file__).parents[2]


def test_help_has_an_example_and_the_defaults_of_the_settings(command: Callable[..., object]) -> None:
    shown = command("serve", "--help")
    assert "Example: onoma serve" in shown.out  # type: ignore[attr-defined]
    options = {one.name: one.default for one in get_command(app).commands["serve"].params}  # type: ignore[attr-defined]
    assert options["host"] == "127.0.0.1"
    assert {f"max_{name}": value for name, value in Limits().to_dict().items()}.items() <= options.items()
    settings = ServeSettings()
    assert (options["queue_tokens"], options["timeout"]) == (settings.queue_tokens, settings.timeout)
    assert options["shutdown_timeout"] == settings.shutdown_timeout


def test_a_missing_extra_is_named(command: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "onoma.serve.run", raising=False)
    outcome = command("serve")
    assert outcome.code == 2  # type: ignore[attr-defined]
    assert 'pip install "onoma[serve]"' in outcome.err  # type: ignore[attr-defined]


def test_models_are_named_as_everywhere() -> None:
    sources = parse_sources(["embedded", "embedded/zh", "english=embedded/en"])
    assert {one.name: one.load(1).folder for one in sources} == {
        "embedded": EMBEDDED,
        "zh": EMBEDDED / "zh",
        "english": EMBEDDED / "en",
    }
    assert all(one.is_onnx for one in sources)


def test_the_key_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONOMA_API_KEY", raising=False)
    assert read_api_key(None) is None
    monkeypatch.setenv("ONOMA_API_KEY", "from environment")
    assert read_api_key(None) == "from environment"
    (tmp_path / "key").write_text("from file\n")
    assert read_api_key(tmp_path / "key") == "from file"
    (tmp_path / "key").write_text("\n")
    with pytest.raises(ValueError, match="is empty"):
        read_api_key(tmp_path / "key")


def test_the_container_file_starts_the_command_with_options_that_exist() -> None:
    rows = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    (entry,) = [json.loads(row.removeprefix("ENTRYPOINT ")) for row in rows if row.startswith("ENTRYPOINT")]
    assert entry[:2] == ["onoma", "serve"]
    get_command(app).commands["serve"].make_context("serve", entry[2:])  # type: ignore[attr-defined]
    for row in rows:
        if row.startswith("COPY ") and "--from" not in row:
            assert all((ROOT / name).exists() for name in row.split()[1:-1])
