"""Other names of types: people ask for persons as "PER", "people" or "name of a person", and sometimes for nonsense.

A file of aliases has one type per line: {"name": "person", "aliases": ["PER", "people", "name of a person"]}.
"""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np

from onoma.data.formats.records import read_records

Aliases = dict[str, list[str]]
"""Name of a type -> other names of it."""

EXAMPLE = '{"name": "person", "aliases": ["PER", "people", "name of a person"]}'
_LETTERS = np.array(list(string.ascii_lowercase))


def read_aliases(path: Path) -> Aliases:
    """The aliases of a file; types that occur twice have those of both lines."""
    found: Aliases = {}
    for record in read_records(path, EXAMPLE):
        found.setdefault(record.text("name"), []).extend(record.texts("aliases"))
    return found


def nonsense_names(count: int, generator: np.random.Generator) -> list[str]:
    """Random letters, of which nothing is a mention."""
    return ["".join(generator.choice(_LETTERS, generator.integers(3, 10))) for _ in range(count)]
