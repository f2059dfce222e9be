"""Collect the other names of types from annotation schemas, for `data.aliases` of the recipes:

    python recipes/embedded/aliases.py SCHEMAS.json... --output corpora/aliases/en.jsonl

A file of schemas is {"schema": {"types": {"type": {"aliases": [...]}}}}. A type that occurs in several schemas, such as
"location", keeps only the aliases that at least two of them give, and at least one in ten, because others may fit one
kind of text only.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onoma.data.formats.records import write_records
from onoma.labels.spelling import spell_out
from onoma.structured import read_json

FIX = "give a file of schemas"


def main() -> None:
    """Read the schemas, write the aliases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("schemas", nargs="+", type=Path)
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    schemas = [schema for path in arguments.schemas for schema in read_json(path, FIX).values()]
    rows = [{"name": name, "aliases": names} for name, names in sorted(collect(schemas).items())]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    count = sum(len(one["aliases"]) for one in rows)
    print(f"{write_records(rows, arguments.output)} types, {count} aliases")


def collect(schemas: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """The aliases of each type."""
    occurrences: Counter[str] = Counter()
    given: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for schema in schemas:
        for name, one in schema["types"].items():
            occurrences[name] += 1
            given[name].update({alias.strip() for alias in one["aliases"]})
    return {
        name: chosen
        for name, counts in given.items()
        if (chosen := sorted(one for one, count in counts.items() if _fits(name, one, count, occurrences[name])))
    }


def _fits(name: str, alias: str, count: int, schemas: int) -> bool:
    if not alias or alias == name:
        return False
    return schemas == 1 or count >= max(2, schemas / 10) or spell_out(alias) == spell_out(name)


if __name__ == "__main__":
    main()
