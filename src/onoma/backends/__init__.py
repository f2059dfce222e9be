"""What runs a trained system: `onnx` (no PyTorch needed) or `torch`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from onoma.backends.base import Backend
from onoma.config import ModelConfig
from onoma.errors import OnomaError

BackendName = Literal["auto", "onnx", "torch"]


def load_backend(
    folder: str | os.PathLike[str], backend: BackendName = "auto", device: str | None = None, threads: int | None = None
) -> Backend:
    """Load a model folder; "auto" takes onnx where the folder has a model.onnx."""
    folder = Path(folder)
    if backend == "auto":
        backend = "onnx" if (folder / "model.onnx").is_file() else "torch"
    if backend == "onnx":
        return _load_onnx(folder, threads)
    if backend != "torch":
        raise OnomaError(f"there is no backend {backend!r}; take auto, onnx or torch")
    try:
        from onoma.backends.torch import load
    except ModuleNotFoundError as error:
        fix = 'pip install "onoma[train]", or export the model to onnx'
        raise OnomaError(f"the torch backend needs {error.name}: {fix}") from error
    return load(folder, device)


def _load_onnx(folder: Path, threads: int | None) -> Backend:
    system = ModelConfig.load(folder).system
    if system == "binder":
        from onoma.systems.binder.onnx_runtime import OnnxBinder

        return OnnxBinder.load(folder, threads)
    if system == "suner":
        from onoma.systems.suner.onnx_runtime import OnnxSuner

        return OnnxSuner.load(folder, threads)
    raise OnomaError(f"the onnx backend has no system {system!r}, it has: binder, suner; take the torch backend")


__all__ = ["Backend", "BackendName", "load_backend"]
