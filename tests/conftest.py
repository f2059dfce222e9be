"""Settings and models for all tests."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from onoma import Extractor
    from onoma.inputs.tokenizer import WordTokenizer

COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("onoma", COMMON, derandomize=True, max_examples=50)
settings.register_profile("thorough", COMMON, max_examples=1000)  # pytest --hypothesis-profile=thorough
settings.load_profile("onoma")


def pytest_collection_finish() -> None:
    """The modules that are loaded now stay loaded: without them, garbage collection is many times faster."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny trained BINDER; see `tiny.py`."""
    import torch  # only tests that need a model pay for PyTorch

    from tiny import tiny_binder

    torch.set_num_threads(1)  # with tensors this small, more threads are slower
    return tiny_binder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def ner(tiny_model: Path) -> Extractor:
    """The tiny model, loaded."""
    from onoma import load

    return load(tiny_model, backend="torch", device="cpu")


@pytest.fixture(scope="session")
def onnx_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model in int8, without PyTorch."""
    from onoma.models.export import export

    return export(tiny_model, tmp_path_factory.mktemp("models") / "onnx", int8=True)


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights, for training."""
    import torch

    from tiny_training import save_encoder

    torch.set_num_threads(1)
    return save_encoder(tmp_path_factory.mktemp("encoders") / "tiny-bert")


@pytest.fixture(scope="session")
def tokenizer(encoder_folder: Path) -> WordTokenizer:
    """The tokenizer of that encoder."""
    from onoma.inputs.tokenizer import WordTokenizer

    return WordTokenizer.load(encoder_folder)


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus `small`, for training."""
    from tiny_training import write_corpus

    return write_corpus(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def recipe_values(encoder_folder: Path) -> dict[str, Any]:
    """The values of a recipe that learns the small corpus in a few seconds."""
    from tiny_training import small_recipe

    return small_recipe(encoder_folder)


class Outcome(NamedTuple):
    """The exit code of a command and what it printed."""

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
