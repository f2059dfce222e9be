"""Data: files of many formats, corpora, samples, mixtures and type inventories."""

from onoma.data.corpora import CorpusInfo, find_splits, load_corpus, load_splits, read_info
from onoma.data.formats import FORMATS, convert, detect, read, write
from onoma.data.inventory import Inventory
from onoma.data.mixtures import Mixture
from onoma.data.sampling import sample_documents, sample_mentions, split

__all__ = [
    "FORMATS",
    "CorpusInfo",
    "Inventory",
    "Mixture",
    "convert",
    "detect",
    "find_splits",
    "load_corpus",
    "load_splits",
    "read",
    "read_info",
    "sample_documents",
    "sample_mentions",
    "split",
    "write",
]
