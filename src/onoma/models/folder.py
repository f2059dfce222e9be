"""Model folders: found by path or hub name, opened once, saved and copied.

config.json         see `onoma.models.config`
model.safetensors   weights for PyTorch, with encoder/config.json; or
model.onnx, ...     graphs for onnxruntime
tokenizer.json      and other files of the tokenizer
labels.json         translations of labels, for models with a language
examples.json       marked examples of types that a model was taught
README.md           the card
and the artifacts of the system, such as a lexicon or a data store
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from onoma.errors import OnomaError
from onoma.labels.examples import EXAMPLES_FILE
from onoma.labels.translation import TRANSLATIONS_FILE
from onoma.models.config import CONFIG_FILE, ModelConfig, RoutedConfig, load_config
from onoma.models.hub import find_model

WEIGHTS_FILE = "model.safetensors"
ONNX_FILE = "model.onnx"
CARD_FILE = "README.md"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The folder of one model, with its configuration, which is read once."""

    path: Path
    config: ModelConfig

    def has(self, name: str) -> bool:
        """Whether the folder has a file of this name."""
        return (self.path / name).is_file()

    def digest(self, backend: str) -> str:
        """Identifies weights, tokenizer and artifacts, and what runs them: encoded types depend on all of these."""
        digest = hashlib.sha256(backend.encode())
        for path in sorted(self.path.iterdir()):
            if path.is_file() and path.name not in (CONFIG_FILE, CARD_FILE, TRANSLATIONS_FILE, EXAMPLES_FILE):
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class RoutedFolder:
    """A folder that holds several models."""

    path: Path
    config: RoutedConfig

    def models(self) -> list[ModelFolder]:
        """The folder of each route."""
        return [open_single(self.path / route.folder, "route to") for route in self.config.routes]


def open_folder(name: str | os.PathLike[str] | None = None) -> ModelFolder | RoutedFolder:
    """Open a model folder, given by path, by hub name, or as `embedded` or None for the embedded model."""
    path = find_model(name)
    config = load_config(path)
    return RoutedFolder(path, config) if isinstance(config, RoutedConfig) else ModelFolder(path, config)


def open_single(name: str | os.PathLike[str] | None, action: str) -> ModelFolder:
    """Open the folder of one model; a folder with several models is refused, because `action` takes one at a time."""
    folder = open_folder(name)
    if isinstance(folder, RoutedFolder):
        models = ", ".join(str(folder.path / route.folder) for route in folder.config.routes)
        raise OnomaError(f"{folder.path} holds several models. Fix: {action} one of them: {models}")
    return folder


def copy_files(names: tuple[str, ...], source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy those files that exist from one folder to another."""
    for name in names:
        path = Path(source) / name
        if path.is_file() and path.parent.resolve() != Path(target).resolve():
            shutil.copyfile(path, Path(target) / name)
