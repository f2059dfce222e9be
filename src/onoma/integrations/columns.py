"""Entities of a column of texts, for data frames of any library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Unpack

from onoma.entities import Entity
from onoma.errors import OnomaError
from onoma.extractor import Options
from onoma.integrations.models import Model, as_extractor
from onoma.labels.parsing import Labels, parse_labels

FIELDS = ("start", "end", "text", "label", "score")


def find_entities(
    values: Iterable[object], labels: Labels, model: Model, **options: Unpack[Options]
) -> Iterator[list[Entity]]:
    """The entities of each value: a text, or None for a missing value, which has none."""
    return as_extractor(model).stream(map(_as_text, count(), values), labels, **options)


def entity_rows(found: Iterable[list[Entity]]) -> tuple[list[int], dict[str, list[Any]]]:
    """One row per entity: the number of its text, and columns of its fields."""
    places: list[int] = []
    columns: dict[str, list[Any]] = {name: [] for name in FIELDS}
    for number, entities in enumerate(found):
        for entity in entities:
            places.append(number)
            for name in FIELDS:
                columns[name].append(getattr(entity, name))
    return places, columns


def mention_columns(found: Iterable[list[Entity]], labels: Labels) -> dict[str, list[list[str]]]:
    """One column per label, with the mentions of each text as a list of strings."""
    columns: dict[str, list[list[str]]] = {one.name: [] for one in parse_labels(labels)}
    for entities in found:
        for label, rows in columns.items():
            rows.append([one.text for one in entities if one.label == label])
    return columns


def check_columns(columns: Sequence[object], text: str, added: Iterable[str] = ()) -> None:
    """Raise an error if the column of texts does not exist, or if a new column does."""
    if text not in columns:
        raise OnomaError(
            f"there is no column {text!r:.80} (columns: {', '.join(map(str, columns))}). Fix: name it: text="
        )
    taken = [name for name in added if name in columns]
    if taken:
        fix = 'give a prefix for the new columns, such as prefix="found "'
        raise OnomaError(f"there is a column {taken[0]!r} already. Fix: {fix}")


def _as_text(number: int, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        fix = "convert the column to strings"
        raise OnomaError(f"row {number} is not a text but {type(value).__name__}: {value!r:.80}. Fix: {fix}")
    return value
