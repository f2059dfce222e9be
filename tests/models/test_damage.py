"""Damaged model folders: one error that names the file or the folder and what to do, and exit code 2."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onoma
from onoma import OnomaError
from onoma.models.export import export
from onoma.onnx.writer import GraphInput, GraphWriter

TEXT, LABELS = "Tom flew to Paris .", ["person", "city"]


@pytest.fixture(scope="module")
def models(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tiny model for each backend."""
    return {"torch": tiny_model, "onnx": export(tiny_model, tmp_path_factory.mktemp("exported") / "tiny")}


@pytest.fixture
def copy(models: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """Copies the model for a backend."""
    return lambda backend: Path(shutil.copytree(models[backend], tmp_path / "model"))


def change_config(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")


def error_of(folder: Path, backend: str) -> str:
    with pytest.raises(OnomaError, match=r"(?s)Fix: .+") as caught:
        onoma.load(folder, backend=backend, device="cpu")
    message = str(caught.value)
    assert str(folder) in message
    return message


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_an_undamaged_model_works(copy: Callable[[str], Path], backend: str) -> None:
    found = onoma.load(copy(backend), backend=backend, device="cpu").extract(TEXT, LABELS)
    assert {one.label for one in found} == set(LABELS)


def cut(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


DAMAGE = {
    "missing": Path.unlink,
    "empty": lambda path: cut(path, 0),
    "truncated": lambda path: cut(path, 0.5),
    "cut at the end": lambda path: cut(path, 0.99),
    "zeros": replace_by_zeros,
    "another file": lambda path: path.write_text('{"a": 1}'),
    "pipe": replace_by_pipe,
    "folder": replace_by_folder,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    ("backend", "name"),
    [
        ("torch", "tokenizer.json"),
        ("torch", "config.json"),
        ("torch", "model.safetensors"),
        ("torch", "encoder/config.json"),
        ("onnx", "tokenizer.json"),
        ("onnx", "model.onnx"),
    ],
)
def test_a_damaged_file_is_one_error_that_names_it(
    copy: Callable[[str], Path], backend: str, name: str, damage: str
) -> None:
    folder = copy(backend)
    DAMAGE[damage](folder / name)
    message = error_of(folder, backend)
    assert Path(name).parts[0] in message


def test_an_unreadable_file_is_one_error(copy: Callable[[str], Path]) -> None:
    folder = copy("onnx")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to("tokenizer.json")  # a link to itself cannot be read by anybody
    assert "tokenizer.json" in error_of(folder, "onnx")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": 99}, "has format 99"),
        ({"scale": float("nan")}, "'scale' must be a number above 0"),
        ({"scale": 0}, "'scale' must be a number above 0"),
        ({"scale": -1}, "'scale' must be a number above 0"),
        ({"scale": 1e300}, "'scale' must be a number above 0"),
        ({"threshold": "0.5"}, "'threshold' must be a number"),
        ({"max_tokens": [64]}, "'max_tokens' must be an integer"),
        ({"max_tokens": 10**12}, "'max_tokens' must be an integer"),
        ({"types": {"city": 3}}, "'types' must be descriptions"),
        ({"options": {"max_width": "8"}}, "'max_width' must be an integer"),
        ({"options": {"max_width": 0}}, "'max_width' must be at least 1"),
        ({"options": {"size": 8}}, "unknown option 'size'"),
        ({"system": "suner"}, "option"),
    ],
)
@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_a_wrong_value_in_config_is_one_error(
    copy: Callable[[str], Path], backend: str, values: dict[str, Any], message: str
) -> None:
    folder = copy(backend)
    change_config(folder, **values)
    found = error_of(folder, backend)
    assert message in found
    assert str(folder / "config.json") in found


@pytest.mark.parametrize(("backend", "max_tokens"), [("torch", 129), ("onnx", 600), ("torch", 10**6), ("onnx", 10**6)])
def test_windows_beyond_the_positions_of_the_encoder_are_an_error_at_load(
    copy: Callable[[str], Path], backend: str, max_tokens: int
) -> None:
    folder = copy(backend)
    change_config(folder, max_tokens=max_tokens)
    error_of(folder, backend)


def test_a_graph_of_another_model_is_an_error_at_load(copy: Callable[[str], Path]) -> None:
    folder = copy("onnx")
    graph = GraphWriter()
    outputs = {"out": graph.embedding(np.zeros((5, 4), np.float32), "ids")}
    graph.save(folder / "model.onnx", {"ids": GraphInput(("texts", "tokens"))}, outputs)
    assert "model.onnx" in error_of(folder, "onnx")


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_a_tokenizer_of_another_model_is_an_error_at_load(copy: Callable[[str], Path], backend: str) -> None:
    folder = copy(backend)
    values = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = values["model"]["vocab"]
    vocabulary |= {f"word{number}": len(vocabulary) + number for number in range(500)}
    (folder / "tokenizer.json").write_text(json.dumps(values), "utf-8")
    error_of(folder, backend)


@pytest.mark.parametrize("token", ["[UNK]", "[CLS]"])
def test_a_tokenizer_without_its_special_tokens_is_an_error_at_load(copy: Callable[[str], Path], token: str) -> None:
    folder = copy("onnx")
    values = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    if token == "[UNK]":
        values["model"]["unk_token"] = "[NONE]"
    else:
        values["post_processor"]["special_tokens"].pop(token)  # makes the library panic
    (folder / "tokenizer.json").write_text(json.dumps(values), "utf-8")
    assert str(folder / "tokenizer.json") in error_of(folder, "onnx")


def test_a_damaged_model_exits_with_2(copy: Callable[[str], Path], command: Callable[..., Any]) -> None:
    folder = copy("onnx")
    cut(folder / "tokenizer.json", 0.5)
    for verb in (("extract", TEXT, "--labels", "city", "--model", folder), ("info", folder / "tokenizer.json")):
        outcome = command(*verb)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: {folder / 'tokenizer.json'}")
    assert "Fix: " in outcome.err
