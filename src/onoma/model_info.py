"""What there is to know of a model folder without loading it, for `onoma info`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onoma.config import ModelConfig
from onoma.extractor import ROUTED
from onoma.hub import find_model
from onoma.routing import read_routes

if TYPE_CHECKING:
    from rich.table import Table

SHOWN_TYPES = 8


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A single model."""

    folder: str
    scripts: tuple[str, ...]  # of the texts that it reads, where a folder holds several; empty: all others
    system: str
    encoder: str
    language: str | None
    backends: tuple[str, ...]
    megabytes: float
    threshold: float
    max_tokens: int
    max_width: int | None
    types: tuple[str, ...]  # that it was trained on; empty: it is meant for any

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def describe_model(name: str | os.PathLike[str] | None = None) -> list[ModelInfo]:
    """The models of a folder, one or several; the embedded ones without a name."""
    folder = find_model(name)
    config = ModelConfig.load(folder)
    if config.system != ROUTED:
        return [_describe(folder, ())]
    return [_describe(path, scripts) for path, scripts in read_routes(config, folder)]


def _describe(folder: Path, scripts: tuple[str, ...]) -> ModelInfo:
    config = ModelConfig.load(folder)
    backends = {"onnx": "*.onnx", "torch": "*.safetensors"}
    return ModelInfo(
        folder=str(folder),
        scripts=scripts,
        system=config.system,
        encoder=config.encoder,
        language=config.options.get("language"),
        backends=tuple(name for name, files in backends.items() if any(folder.glob(files))),
        megabytes=round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1),
        threshold=config.threshold,
        max_tokens=config.max_tokens,
        max_width=config.options.get("max_width"),
        types=tuple(config.types),
    )


def render_models(models: list[ModelInfo]) -> Table:
    """A column a model, for a rich console."""
    from rich.markup import escape
    from rich.table import Table

    rows = {
        "system": lambda one: one.system,
        "encoder": lambda one: one.encoder,
        "language": lambda one: one.language or "not told",
        "texts": lambda one: ", ".join(one.scripts) or ("all others" if len(models) > 1 else "all"),
        "runs by": lambda one: ", ".join(one.backends),
        "size": lambda one: f"{one.megabytes} MB",
        "default threshold": lambda one: f"{one.threshold:.2f}",
        "tokens of a window": lambda one: str(one.max_tokens),
        "words of a mention, at most": lambda one: str(one.max_width or "no limit"),
        "types": _spell_types,
    }
    table = Table("", *(escape(Path(one.folder).name) for one in models))
    for name, show in rows.items():
        table.add_row(name, *(escape(show(one)) for one in models))
    return table


def _spell_types(model: ModelInfo) -> str:
    if not model.types:
        return "any"
    more = len(model.types) - SHOWN_TYPES
    return ", ".join(model.types[:SHOWN_TYPES]) + (f" and {more:,} more" if more > 0 else "")
