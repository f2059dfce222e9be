"""Data: file formats, corpora, subsets, type inventories and statistics.

Names are imported when they are first used, so that extraction does not import the formats.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onoma.data.corpora import CorpusInfo, find_splits, load_corpus, load_splits, read_info
    from onoma.data.dictionary import Dictionary, Entry
    from onoma.data.formats import FORMATS, convert, detect, read, write
    from onoma.data.inventory import Inventory
    from onoma.data.joining import join_documents
    from onoma.data.statistics import describe
    from onoma.data.subsets import sample_documents, sample_mentions, split

_MODULES = {
    "corpora": ("CorpusInfo", "find_splits", "load_corpus", "load_splits", "read_info"),
    "dictionary": ("Dictionary", "Entry"),
    "formats": ("FORMATS", "convert", "detect", "read", "write"),
    "inventory": ("Inventory",),
    "joining": ("join_documents",),
    "statistics": ("describe",),
    "subsets": ("sample_documents", "sample_mentions", "split"),
}

__all__ = [
    "FORMATS",
    "CorpusInfo",
    "Dictionary",
    "Entry",
    "Inventory",
    "convert",
    "describe",
    "detect",
    "find_splits",
    "join_documents",
    "load_corpus",
    "load_splits",
    "read",
    "read_info",
    "sample_documents",
    "sample_mentions",
    "split",
    "write",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            from importlib import import_module

            value = globals()[name] = getattr(import_module(f"onoma.data.{module}"), name)
            return value
    raise AttributeError(f"module 'onoma.data' has no attribute {name!r}")
