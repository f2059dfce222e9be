"""Checks of options, before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterable

from onoma.errors import OnomaError
from onoma.models.folder import ONNX_FILE, RoutedFolder, open_folder
from onoma.scale.manifest import Settings

_TAB = ("\\t", "tab")  # as it is written on the command line


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise an error unless a value is None or one of the choices."""
    known = list(dict.fromkeys(choices))
    if value is not None and value not in known:
        raise OnomaError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def check_workers(workers: int | None, gpus_per_worker: float) -> None:
    """Raise an error unless these are numbers that can be used."""
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise OnomaError(
            f"workers must be an integer of at least 1, got {workers!r}. Fix: leave it out for one per core"
        )
    if not isinstance(gpus_per_worker, (int, float)) or not 0 <= gpus_per_worker < float("inf"):
        raise OnomaError(f"gpus_per_worker must be a number of at least 0, got {gpus_per_worker!r}")


def check_separator(separator: str | None) -> str | None:
    """The separator of CSV; a tab may be written in words."""
    if separator in _TAB:
        return "\t"
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise OnomaError(f"a separator must be one character, such as ';', or 'tab', got {separator!r}")
    return separator


def check_device(settings: Settings, gpus_per_worker: float) -> None:
    """Raise an error if a GPU is asked for but the model runs on onnxruntime, which uses the CPU."""
    is_on_gpu = settings.device not in (None, "cpu") or gpus_per_worker
    if not is_on_gpu or settings.backend == "torch":
        return
    folder = open_folder(settings.model)
    folders = folder.models() if isinstance(folder, RoutedFolder) else [folder]
    if settings.backend == "onnx" or any(one.has(ONNX_FILE) for one in folders):
        fix = (
            "choose a model that was saved by PyTorch and --backend torch, or leave out --device and --gpus-per-worker"
        )
        raise OnomaError(f"the onnx backend runs on CPUs only, not on GPUs. Fix: {fix}")
