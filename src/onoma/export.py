"""Trained models as ONNX, to be run without PyTorch."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from onoma.config import ModelConfig
from onoma.data.files import atomic_folder, atomic_write
from onoma.errors import OnomaError
from onoma.hub import find_model
from onoma.label_names import write_label_names
from onoma.routing import require_single


def export(model: str | os.PathLike[str], output: str | os.PathLike[str], int8: bool = False) -> Path:
    """Write a model folder, or a model of the hub, as a new model folder that needs no PyTorch.

    With `int8` it is about a quarter as large and more than twice as fast; scores change a little.

    >>> export("runs/drugs/model", "models/drugs", int8=True)  # doctest: +SKIP
    """
    try:
        from onoma.backends.torch import TOKENIZER_FILES, WEIGHTS, load
        from onoma.systems.binder.export import export_binder
        from onoma.systems.binder.model import Binder
        from onoma.systems.suner.export import export_suner
    except ModuleNotFoundError as error:
        raise OnomaError(f'export needs {error.name}: pip install "onoma[train]"') from error
    source, output = find_model(model), Path(output)
    require_single(source, "export")
    if not (source / WEIGHTS).is_file():
        raise OnomaError(f"{source} has no {WEIGHTS}: only models saved by PyTorch can be exported")
    trained = load(source, device="cpu")
    with atomic_folder(output) as folder:
        if isinstance(trained.model, Binder):
            export_binder(trained.model, folder, int8=int8)
        else:
            export_suner(trained.model, folder, int8=int8)
        for name in TOKENIZER_FILES:
            if (source / name).is_file():
                shutil.copyfile(source / name, folder / name)
        trained.config.save(folder)
        if language := trained.config.options.get("language"):
            write_label_names(folder, language)
        _write_card(source, folder, trained.config, int8)
    return output


def _write_card(source: Path, folder: Path, config: ModelConfig, int8: bool) -> None:
    """The model's own card, or a short one, and what was done here."""
    path = source / "README.md"
    card = path.read_text("utf-8") if path.is_file() else f"# {config.system.upper()} on {config.encoder}\n"
    weights = "int8 (heads in float16, layer norms in float32)" if int8 else "float32"
    with atomic_write(folder / "README.md") as file:
        file.write(f"{card.rstrip()}\n\n## Export\nONNX with weights in {weights}; needs no PyTorch.\n")
        if int8:
            file.write("The results above were measured before; in int8 they may differ by some tenths of a point.\n")
