"""Corpora of any size: annotated by processes on one machine or by Ray Data on many."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onoma.scale.corpus import Summary, annotate_corpus
    from onoma.scale.frames import annotate

__all__ = ["Summary", "annotate", "annotate_corpus"]

_LATER = {
    "Summary": "onoma.scale.corpus",
    "annotate": "onoma.scale.frames",
    "annotate_corpus": "onoma.scale.corpus",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'onoma.scale' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value
