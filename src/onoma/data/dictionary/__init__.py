"""Labelling of texts with dictionaries."""

from onoma.data.dictionary.dictionary import Batch, Dictionary
from onoma.data.dictionary.entries import Entry, read_entries, read_phrases

__all__ = ["Batch", "Dictionary", "Entry", "read_entries", "read_phrases"]
