"""Onoma: name the entity types you want, in words; get back every mention, with exact offsets."""

from typing import TYPE_CHECKING, Any

from onoma.entities import Corpus, Document, Entity, EntityType
from onoma.errors import DataError, OnomaError

if TYPE_CHECKING:
    from onoma.evaluation.runs import evaluate
    from onoma.extractor import Extractor, load
    from onoma.training import train

__version__ = "0.1.0"

__all__ = [
    "Corpus",
    "DataError",
    "Document",
    "Entity",
    "EntityType",
    "Extractor",
    "OnomaError",
    "__version__",
    "evaluate",
    "load",
    "train",
]

_LATER = {
    "Extractor": "onoma.extractor",
    "evaluate": "onoma.evaluation.runs",
    "load": "onoma.extractor",
    "train": "onoma.training",
}
"""What is imported when it is first used, so that `import onoma` is done at once."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'onoma' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
