"""Settings and models that all tests share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from onoma import Extractor

settings.register_profile("onoma", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("onoma")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny trained BINDER; see `tiny.py`."""
    import torch  # only tests that need a model pay for PyTorch

    from tiny import tiny_binder

    torch.set_num_threads(1)  # more only get in each other's way with tensors so small
    return tiny_binder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def ner(tiny_model: Path) -> Extractor:
    """The tiny model, loaded."""
    from onoma import load

    return load(tiny_model, backend="torch", device="cpu")


class Outcome(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: object
    out: str
    err: str


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs `onoma` with arguments, as a shell would."""
    from onoma.cli import main

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["onoma", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return Outcome(stopped.value.code, *capsys.readouterr())

    return run
