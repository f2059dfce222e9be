"""Readers and writers of all data formats: what goes in and out are Documents."""

from onoma.data.formats.base import Format
from onoma.data.formats.registry import FORMATS, convert, detect, read, write

__all__ = ["FORMATS", "Format", "convert", "detect", "read", "write"]
