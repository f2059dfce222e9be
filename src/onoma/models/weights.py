"""Weights of trained models in PyTorch: saving them to a model folder and loading them from one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from onoma.errors import OnomaError
from onoma.files import atomic_path
from onoma.models.config import ModelConfig
from onoma.models.folder import ONNX_FILE, TOKENIZER_FILES, WEIGHTS_FILE, ModelFolder, copy_files
from onoma.systems.blocks.encoders import ENCODER_FOLDER
from onoma.systems.registry import get_system


def save_model(
    model: nn.Module,
    config: ModelConfig,
    tokenizer_folder: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    artifacts: dict[str, bytes] | None = None,
) -> None:
    """Write configuration, tokenizer, weights and artifacts of a trained model into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    copy_files(TOKENIZER_FILES, tokenizer_folder, folder)
    encoder: Any = model.text_encoder
    encoder.config.save_pretrained(folder / ENCODER_FOLDER)
    for name, content in (artifacts or {}).items():
        with atomic_path(folder / name) as path:
            path.write_bytes(content)
    save_weights(model, folder / WEIGHTS_FILE)
    config.save(folder)


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights of a model into a file."""
    save_tensors(dict(model.state_dict()), path)


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors into a file."""
    from safetensors.torch import save_file

    with atomic_path(path) as temporary:
        save_file({name: one.detach().cpu().clone().contiguous() for name, one in tensors.items()}, temporary)


def load_model(folder: ModelFolder, device: str | None = None) -> nn.Module:
    """The trained model of a folder, in evaluation mode, on a GPU if there is one unless `device` names another."""
    weights = load_weights(folder.path)  # first, because the rest is useless without them
    model = get_system(folder.config.system).build(folder.config, folder.path)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise OnomaError(
            f"{folder.path / WEIGHTS_FILE} does not fit its config.json ({reason}). Fix: get the model again"
        ) from error
    return model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()


def load_weights(folder: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The weights of a model folder."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(folder) / WEIGHTS_FILE
    if not path.is_file():
        exported = (Path(folder) / ONNX_FILE).is_file()
        fix = "use the backend onnx, or auto" if exported else "give a folder that `onoma train` has written"
        raise OnomaError(f"{folder} has no {WEIGHTS_FILE}, which the torch backend needs. Fix: {fix}")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise OnomaError(f"{path} is damaged ({error}). Fix: get the model again") from error
