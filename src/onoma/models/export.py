"""Trained models as ONNX, to run without PyTorch."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onoma.errors import OnomaError
from onoma.files import atomic_folder, atomic_write
from onoma.labels.examples import EXAMPLES_FILE
from onoma.labels.translation import TRANSLATIONS_FILE
from onoma.models.config import ModelConfig
from onoma.models.folder import CARD_FILE, TOKENIZER_FILES, WEIGHTS_FILE, copy_files, open_single
from onoma.systems.registry import get_system

if TYPE_CHECKING:
    from onoma.data.inventory import Language


def export(model: str | os.PathLike[str], output: str | os.PathLike[str], int8: bool = False) -> Path:
    """Write a model folder, or a model of the hub, as a new model folder that does not need PyTorch.

    With `int8` it is about a quarter as large and more than twice as fast; scores change a little.

    >>> export("runs/drugs/model", "models/drugs", int8=True)  # doctest: +SKIP
    """
    source, output = open_single(model, "export"), Path(output)
    if not source.has(WEIGHTS_FILE):
        raise OnomaError(f"{source.path} has no {WEIGHTS_FILE}: only models saved by PyTorch can be exported")
    system = get_system(source.config.system)
    try:
        from onoma.models.weights import load_model

        trained = load_model(source, device="cpu")
        with atomic_folder(output) as folder:
            system.export(trained, folder, int8=int8)
            copy_files((*TOKENIZER_FILES, TRANSLATIONS_FILE, EXAMPLES_FILE, *system.artifacts), source.path, folder)
            source.config.save(folder)
            _write_card(source.path, folder, source.config, int8)
    except ModuleNotFoundError as error:
        raise OnomaError(f'export needs {error.name}. Fix: pip install "onoma[train]"') from error
    return output


def write_translations(folder: str | os.PathLike[str], language: Language, config: ModelConfig) -> None:
    """Name the language that a model reads best in its folder, with the translations of labels of the other one.

    The names and descriptions are those of Onoma's type inventory, and of its table of common labels.
    """
    from onoma.data.translations import label_translations

    rows = (
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(target, ensure_ascii=False)}"
        for name, target in label_translations(language).items()
    )
    with atomic_write(Path(folder) / TRANSLATIONS_FILE) as file:
        file.write("{\n" + ",\n".join(rows) + "\n}\n")  # one label per line
    replace(config, language=language).save(folder)


def _write_card(source: Path, folder: Path, config: ModelConfig, int8: bool) -> None:
    """The model's own card, or a short one, with a section on the export."""
    path = source / CARD_FILE
    card = path.read_text("utf-8") if path.is_file() else f"# {config.system.upper()} on {config.encoder}\n"
    weights = "int8 (heads in float16, layer norms in float32)" if int8 else "float32"
    with atomic_write(folder / CARD_FILE) as file:
        file.write(f"{card.rstrip()}\n\n## Export\nONNX with weights in {weights}; it does not need PyTorch.\n")
        if int8:
            file.write("The results above were measured before the export; int8 may change them by some tenths.\n")
