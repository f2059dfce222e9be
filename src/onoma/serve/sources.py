"""The models to serve as they are named on the command line: NAME=MODEL, or MODEL alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onoma.errors import OnomaError
from onoma.extractor import Extractor, load
from onoma.models.folder import ONNX_FILE, ModelFolder, open_folder
from onoma.models.hub import EMBEDDED_NAME
from onoma.systems.base import Backend

_NAME = re.compile(r"[\w.-]{1,100}")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model and the name under which it is served."""

    name: str
    model: str  # a folder, a hub name, or "embedded"
    backend: Backend = "auto"
    device: str | None = None

    @property
    def is_onnx(self) -> bool:
        """Whether onnxruntime will run the model, or all models of its folder."""
        if self.backend != "auto":
            return self.backend == "onnx"
        folder = open_folder(self.model)
        return all(one.has(ONNX_FILE) for one in ([folder] if isinstance(folder, ModelFolder) else folder.models()))

    def load(self, threads: int | None) -> Extractor:
        """Load the model, or all models of its folder."""
        extractor = load(self.model, self.backend, self.device, threads)
        extractor.load_all()
        return extractor


def parse_sources(models: Sequence[str], backend: Backend = "auto", device: str | None = None) -> list[ModelSource]:
    """The models that are named on the command line; without any, the embedded one.

    >>> [one.name for one in parse_sources(["drugs=runs/a", "models/people", "embedded"])]
    ['drugs', 'people', 'embedded']
    """
    sources = [_parse(text, backend, device) for text in models or [EMBEDDED_NAME]]
    names = [one.name for one in sources]
    for name in names:
        if not _NAME.fullmatch(name):
            raise OnomaError(f"{name!r} cannot be the name of a model. Fix: name it: --model NAME=FOLDER, in letters")
        if names.count(name) > 1:
            raise OnomaError(f"two models have the name {name!r}. Fix: give them names: --model NAME=FOLDER")
    return sources


def _parse(text: str, backend: Backend, device: str | None) -> ModelSource:
    name, equals, model = text.partition("=")
    if not equals:
        model, name = text, Path(text).resolve().name
    return ModelSource(name, model, backend, device)


def load_all(sources: Sequence[ModelSource], threads: int | None) -> dict[str, Extractor]:
    """The models by name."""
    return {one.name: one.load(threads) for one in sources}
