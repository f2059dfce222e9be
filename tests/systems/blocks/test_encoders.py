"""Pretrained encoders from folders, and errors about names that cannot be loaded."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from onoma import OnomaError
from onoma.systems.blocks.encoders import (
    ENCODER_FOLDER,
    by_length,
    empty_encoder,
    load_encoder,
    max_positions,
    mean_pool,
    save_tokenizer,
)
from tiny_encoders import tiny_encoder

torch.set_num_threads(1)


@pytest.mark.parametrize(
    "load", [load_encoder, lambda name: save_tokenizer(name, "unused")], ids=["encoder", "tokenizer"]
)
@pytest.mark.parametrize(
    "name", ["/no/such/encoder", "./encoder", "../encoders/bert", "models/encoders/bert", "~/bert"]
)
def test_a_path_that_does_not_exist_is_reported_as_a_path(name: str, load: object) -> None:
    with pytest.raises(OnomaError, match="there is no encoder folder") as caught:
        load(name)  # type: ignore[operator]
    assert repr(name) in str(caught.value)
    assert "huggingface" not in str(caught.value).lower()


def test_a_name_with_one_slash_may_be_a_folder_or_a_hub_name(tmp_path: Path) -> None:
    program = """
import os
os.environ["HF_HUB_OFFLINE"] = "1"
from onoma.systems.blocks.encoders import load_encoder
try:
    load_encoder("encoders/missing")
except ValueError as error:
    print(error)
"""
    environment = {**os.environ, "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    assert done.stdout.startswith("there is no folder 'encoders/missing', and no encoder of this name on the hub")
    assert "Fix: check the path" in done.stdout


def test_a_folder_without_an_encoder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"cannot load the encoder .*Fix: give a folder with config\.json"):
        load_encoder(tmp_path)


class _Trap(NamedTuple):
    """A copy of an encoder folder that asks for Python code of its own, which leaves a marker when it is run."""

    folder: Path
    marker: Path


@pytest.fixture
def trap(encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Trap:
    folder, marker = tmp_path / "trap", tmp_path / "code-was-run"
    shutil.copytree(encoder_folder, folder)
    (folder / "trap.py").write_text(f"open({str(marker)!r}, 'w')\nclass Config: pass\nModel = Tokenizer = Config\n")
    code = {"AutoConfig": "trap.Config", "AutoModel": "trap.Model", "AutoTokenizer": ["trap.Tokenizer", None]}
    for name in ("config.json", "tokenizer_config.json"):
        values = json.loads((folder / name).read_text()) if (folder / name).is_file() else {}
        values |= {"model_type": "trap", "auto_map": code, "tokenizer_class": "TrapTokenizer"}
        (folder / name).write_text(json.dumps(values))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"y\n" * 20)))  # transformers would ask there
    return _Trap(folder, marker)


@pytest.mark.parametrize("load", [load_encoder, lambda name: save_tokenizer(str(name), "unused")])
def test_code_of_an_encoder_is_never_run(trap: _Trap, load: Callable[[Path], object]) -> None:
    with pytest.raises(OnomaError, match="Python code that is stored with it, which Onoma never runs"):
        load(trap.folder)
    assert not trap.marker.exists()
    assert sys.stdin.readline() == "y\n"  # nothing was asked


@pytest.mark.parametrize("source", ["Tom flew to Paris.", "-"])
def test_code_in_a_model_folder_is_never_run(
    trap: _Trap, tiny_model: Path, tmp_path: Path, command: Callable[..., Any], source: str
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    shutil.rmtree(model / ENCODER_FOLDER)
    shutil.copytree(trap.folder, model / ENCODER_FOLDER)
    outcome = command("extract", source, "--labels", "person", "--model", model, "--backend", "torch")
    assert outcome.code == 2
    assert "never runs" in outcome.err
    assert not trap.marker.exists()


def test_a_damaged_encoder_config_is_an_error_with_its_path(tiny_model: Path, tmp_path: Path) -> None:
    for number, content in enumerate(
        ["{", "[1]", '{"model_type": "bert", "hidden_size": "wide"}', '{"model_type": 7}']
    ):
        folder = tmp_path / str(number) / ENCODER_FOLDER
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(content)
        with pytest.raises(OnomaError, match=r"cannot load the encoder .*Fix: save or download") as caught:
            empty_encoder(folder.parent)
        assert str(folder) in str(caught.value)
    with pytest.raises(OnomaError, match="there is no encoder folder"):
        empty_encoder(tmp_path / "missing")


def test_an_empty_encoder_has_the_architecture_of_the_folder(encoder_folder: Path, tmp_path: Path) -> None:
    encoder = load_encoder(encoder_folder)
    encoder.config.save_pretrained(tmp_path / ENCODER_FOLDER)  # type: ignore[union-attr, operator]
    empty = empty_encoder(tmp_path)
    assert {name: one.shape for name, one in empty.state_dict().items()} == {
        name: one.shape for name, one in encoder.state_dict().items()
    }
    assert not any("pooler" in name for name in empty.state_dict())


def test_loading_prints_nothing(encoder_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load_encoder(encoder_folder)
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_rows_of_similar_length_are_encoded_together_and_come_back_in_order() -> None:
    mask = torch.arange(9) < torch.tensor([[3], [9], [1], [4], [4], [2], [8]])
    ids = torch.randint(1, 50, mask.shape, generator=torch.Generator().manual_seed(0)) * mask
    shapes = []

    def total(ids: Tensor, mask: Tensor) -> Tensor:
        shapes.append(tuple(ids.shape))
        return (ids * mask).sum(1)

    assert torch.equal(by_length(total, ids, mask, rows=3), ids.sum(1))
    assert shapes == [(3, 3), (3, 8), (1, 9)]


def test_mean_pooling_ignores_padding() -> None:
    states = torch.tensor([[[1.0], [3.0], [100.0]], [[2.0], [100.0], [100.0]]])
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    assert mean_pool(states, mask).tolist() == [[2.0], [2.0]]


@pytest.mark.parametrize(("family", "positions"), [("bert", 40), ("roberta", 42), ("mpnet", 42)])
def test_an_encoder_reads_as_many_tokens_as_it_has_positions(family: str, positions: int) -> None:
    encoder = tiny_encoder(family, max_position_embeddings=positions)
    assert max_positions(encoder) == 40
    encoder(input_ids=torch.full((1, 40), 7))
    with pytest.raises((IndexError, RuntimeError)):
        encoder(input_ids=torch.full((1, 41), 7))
