"""Readers and writers for all data formats. All of them yield and accept `Document`s."""

from onoma.data.formats.base import Format
from onoma.data.formats.registry import FORMATS, convert, detect, read, write

__all__ = ["FORMATS", "Format", "convert", "detect", "read", "write"]
