"""What `onoma info` shows of a model folder, without loading the model."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onoma.labels.presets import BETAS, preset_threshold
from onoma.models.folder import ModelFolder, open_folder

if TYPE_CHECKING:
    from rich.table import Table

SHOWN_TYPES = 8


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model."""

    folder: str
    scripts: tuple[str, ...]  # of the texts it reads, in a folder with several models; empty: all other texts
    system: str
    encoder: str
    language: str | None
    backends: tuple[str, ...]
    megabytes: float
    threshold: float
    presets: dict[str, float]  # the thresholds that "precise" and "complete" stand for
    max_tokens: int
    max_width: int | None
    types: tuple[str, ...]  # that it was trained on; empty: it is meant for any type

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def describe_model(name: str | os.PathLike[str] | None = None) -> list[ModelInfo]:
    """The models of a folder, one or several; without a name, the embedded ones."""
    folder = open_folder(name)
    if isinstance(folder, ModelFolder):
        return [_describe(folder, ())]
    routes = zip(folder.models(), folder.config.routes, strict=True)
    return [_describe(model, route.scripts) for model, route in routes]


def _describe(folder: ModelFolder, scripts: tuple[str, ...]) -> ModelInfo:
    config, path = folder.config, folder.path
    backends = {"onnx": "*.onnx", "torch": "*.safetensors"}
    return ModelInfo(
        folder=str(path),
        scripts=scripts,
        system=config.system,
        encoder=config.encoder,
        language=config.language,
        backends=tuple(name for name, files in backends.items() if any(path.glob(files))),
        megabytes=round(sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6, 1),
        threshold=config.threshold,
        presets={name: round(preset_threshold(name, None, config.threshold, config.presets), 4) for name in BETAS},
        max_tokens=config.max_tokens,
        max_width=config.options.get("max_width"),
        types=tuple(config.types),
    )


def render_models(models: list[ModelInfo]) -> Table:
    """A table with one column per model, for a rich console."""
    from rich.markup import escape
    from rich.table import Table

    rows = {
        "system": lambda one: one.system,
        "encoder": lambda one: one.encoder,
        "language": lambda one: one.language or "not specified",
        "texts": lambda one: ", ".join(one.scripts) or ("all others" if len(models) > 1 else "all"),
        "backends": lambda one: ", ".join(one.backends),
        "size": lambda one: f"{one.megabytes} MB",
        "default threshold": lambda one: f"{one.threshold:.2f}",
        "precise and complete": lambda one: " and ".join(f"{value:.2f}" for value in one.presets.values()),
        "tokens per window": lambda one: str(one.max_tokens),
        "longest mention, in words": lambda one: str(one.max_width or "no limit"),
        "types": _list_types,
    }
    table = Table("", *(escape(Path(one.folder).name) for one in models))
    for name, show in rows.items():
        table.add_row(name, *(escape(show(one)) for one in models))
    return table


def _list_types(model: ModelInfo) -> str:
    if not model.types:
        return "any"
    more = len(model.types) - SHOWN_TYPES
    return ", ".join(model.types[:SHOWN_TYPES]) + (f" and {more:,} more" if more > 0 else "")
