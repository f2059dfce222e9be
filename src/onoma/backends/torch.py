"""Models run by PyTorch: saving them to a folder and loading them from one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from onoma.config import ModelConfig
from onoma.errors import OnomaError
from onoma.subwords import Subwords
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.systems.blocks.encoders import ENCODER_FOLDER, empty_encoder
from onoma.systems.suner.model import Suner
from onoma.systems.suner.options import SunerOptions
from onoma.systems.suner.torch_runtime import TorchSuner

WEIGHTS = "model.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def save(
    model: nn.Module, config: ModelConfig, tokenizer_folder: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> None:
    """Write configuration, tokenizer and weights of a trained model into a folder."""
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        source = Path(tokenizer_folder) / name
        if source.is_file() and source.parent.resolve() != folder.resolve():
            shutil.copyfile(source, folder / name)
    encoder: Any = model.text_encoder
    encoder.config.save_pretrained(folder / ENCODER_FOLDER)
    temporary = folder / f"{WEIGHTS}.partial"
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}, temporary)
    os.replace(temporary, folder / WEIGHTS)
    config.save(folder)


def load(folder: str | os.PathLike[str], device: str | None = None) -> TorchBinder | TorchSuner:
    """Load a model folder; on a GPU if there is one, unless told otherwise."""
    folder = Path(folder)
    config = ModelConfig.load(folder)
    weights = load_weights(folder)  # first: without them, the rest of the folder is of no use here
    model = build(config, folder)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise OnomaError(f"{folder / WEIGHTS} does not fit its config.json ({error}); get the model again") from error
    model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
    runtime = TorchBinder if isinstance(model, Binder) else TorchSuner
    return runtime(model, config, Subwords.load(folder))  # type: ignore[arg-type]


def load_weights(folder: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The weights of a model folder."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(folder) / WEIGHTS
    if not path.is_file():
        exported = (Path(folder) / "model.onnx").is_file()
        fix = "take the backend onnx, or auto" if exported else "give a folder that `onoma train` has written"
        raise OnomaError(f"{folder} has no {WEIGHTS}, which the torch backend needs. Fix: {fix}")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise OnomaError(f"{path} is damaged ({error}); get the model again") from error


def build(config: ModelConfig, folder: str | os.PathLike[str]) -> Binder | Suner:
    """An untrained model of the shape that a configuration describes."""
    if config.system == "binder":
        options = BinderOptions.of(config.options)
        type_encoder = None if options.shared_encoder or options.types == "atomic" else empty_encoder(folder)
        return Binder(empty_encoder(folder), type_encoder, options, config.max_tokens, len(config.types))
    if config.system == "suner":
        choices = SunerOptions.of(config.options)
        detection_encoder = empty_encoder(folder) if choices.form == "two-stage" else None
        return Suner(empty_encoder(folder), detection_encoder, choices)
    raise OnomaError(f"this version of Onoma has no system {config.system!r}; it has: binder, suner")
