"""Aliases of types from annotation schemas."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "embedded"))

from aliases import collect


def schema(**types: list[str]) -> dict[str, Any]:
    return {"types": {name: {"description": "", "aliases": names} for name, names in types.items()}}


def test_a_type_of_one_schema_keeps_all_its_aliases() -> None:
    assert collect([schema(drug=["medicine", "DRUGS", "drug"])]) == {"drug": ["DRUGS", "medicine"]}


def test_a_type_of_several_schemas_keeps_common_aliases_and_spellings() -> None:
    schemas = [schema(place=["LOC", "where it broke", "PLACE"]), schema(place=["LOC", "venue"]), schema(song=["track"])]
    assert collect(schemas) == {"place": ["LOC", "PLACE"], "song": ["track"]}


def test_aliases_of_a_frequent_type_are_those_of_a_tenth_of_its_schemas() -> None:
    schemas = [schema(person=["PER", "guest"]) for _ in range(3)] + [schema(person=["PER"]) for _ in range(28)]
    assert collect(schemas) == {"person": ["PER"]}
    assert collect(schemas[:30]) == {"person": ["PER", "guest"]}
