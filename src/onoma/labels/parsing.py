"""Labels and thresholds in all forms in which users write them."""

from __future__ import annotations

import os
import re
import string
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray

from onoma.entities import EntityType, Preset, check_threshold
from onoma.errors import DataError, OnomaError
from onoma.labels.presets import preset_threshold
from onoma.structured import read_yaml

Labels = Iterable[str | EntityType] | Mapping[str, str]
Threshold = float | Preset | Mapping[str, float | Preset]
Thresholds = NDArray[np.float32]

LOWEST_THRESHOLD = float(np.finfo(np.float32).tiny)
"""What a threshold of 0 means: a score of exactly 0 stands for spans that are not possible."""

_JOINERS = "\u200c\u200d"  # Persian and Indian words contain them
# a quoted or a plain label, then a comma or the end
_LABEL = re.compile(r'\s*(?:"([^"]*)"|([^,，、"]*))\s*([,，、]|$)')


def parse_labels(labels: Labels) -> tuple[EntityType, ...]:
    """The types that labels stand for, each once, sorted by name, so that the order of labels has no influence.

    >>> [one.name for one in parse_labels(["person", EntityType("city"), "person"])]
    ['city', 'person']
    """
    if isinstance(labels, (str, bytes, EntityType)) or not isinstance(labels, Iterable):
        raise OnomaError(f'labels must be a list such as ["person", "city"] or name → description, got {labels!r}')
    types: dict[str, EntityType] = {}
    for label in labels.items() if isinstance(labels, Mapping) else labels:
        one = _entity_type(label)
        _check_characters(one.name)
        if types.setdefault(one.name, one) != one:
            raise OnomaError(
                f"the label {one.name!r} is given twice, with different descriptions, examples or thresholds. "
                "Fix: keep one of them or give them different names"
            )
    if not types:
        raise OnomaError('no labels are given. Fix: name the entity types to extract, such as ["person", "city"]')
    return tuple(types[name] for name in sorted(types))


def _entity_type(label: object) -> EntityType:
    if isinstance(label, EntityType):
        return label
    if isinstance(label, tuple):  # name and description, from a mapping
        return EntityType(*label)
    if isinstance(label, str):
        return EntityType(label)
    raise OnomaError(f"a label must be a name or an EntityType, got {label!r}")


def _check_characters(name: str) -> None:
    """Refuse names with characters that nobody sees: a model ignores them, and a terminal may obey them."""
    hidden = [sign for sign in name if unicodedata.category(sign) in ("Cc", "Cf", "Cs") and sign not in _JOINERS]
    if hidden:
        fix = "write the label without it"
        raise OnomaError(f"the label {name!a:.80} contains {hidden[0]!a}, which is not a visible character. Fix: {fix}")
    if not name.strip(_JOINERS + string.whitespace):
        raise OnomaError(f"the label {name!a:.80} has no visible character. Fix: name the entity type in words")


def check_known(types: Sequence[EntityType], known: frozenset[str] | None) -> None:
    """Raise an error if a model knows a fixed set of labels and another one is asked for."""
    unknown = [] if known is None else [one.name for one in types if one.name not in known]
    if unknown and known is not None:
        raise OnomaError(
            f"this model does not know the type {', '.join(unknown)}. Fix: ask for types that it was trained on: "
            f"{', '.join(sorted(known))}"
        )


def split_labels(text: str) -> list[str]:
    """Labels as they are written on the command line, separated by English or Chinese commas.

    A label in double quotes may contain commas.

    >>> split_labels('person, "city, town"'), split_labels("人名、地名，公司")
    (['person', 'city, town'], ['人名', '地名', '公司'])
    """
    found, position = [], 0
    while True:
        match = _LABEL.match(text, position)
        if match is None:
            raise OnomaError(f"a double quote is not closed, or not followed by a comma: {text!r}")
        quoted, plain, comma = match.groups()
        found.append((plain if quoted is None else quoted).strip())
        position = match.end()
        if not comma:
            return found


def read_types(path: str | os.PathLike[str]) -> list[EntityType]:
    """Types from a YAML file: name → description, or a list with name, description, examples and threshold.

    Two such files, side by side::

        drug: a medicine or active substance        - name: drug
        side effect:                                  description: a medicine or active substance
                                                      examples: [aspirin, heparin]
                                                      threshold: 0.4
    """
    content = read_yaml(path, strings=True)  # because a type may be called "no"
    if isinstance(content, dict):
        content = [{"name": name, "description": text} for name, text in content.items()]
    if not isinstance(content, list) or not content:
        raise DataError("there are no types in the file", path=path, fix="write lines such as 'drug: a medicine'")
    return [_read_type(row, path) for row in content]


def _read_type(row: object, path: str | os.PathLike[str]) -> EntityType:
    try:
        if isinstance(row, str):
            return EntityType(row)
        if not isinstance(row, dict) or not row.keys() <= {"name", "description", "examples", "threshold"}:
            raise OnomaError(f"a type has a name, a description, examples and a threshold, got {row!r:.200}")
        threshold = row.get("threshold")
        return EntityType(
            row.get("name", ""),
            row.get("description", ""),
            row.get("examples") or (),
            None if threshold is None else _read_threshold(threshold),
        )
    except (OnomaError, TypeError, ValueError) as error:
        fix = "write 'drug: a medicine', or '- name: drug' with a description, examples and a threshold below"
        raise DataError(str(error), path=path, fix=fix) from None


def resolve_thresholds(
    types: Sequence[EntityType],
    threshold: Threshold | None,
    default: float,
    tuned: Mapping[str, float],
    presets: Mapping[str, float] | None = None,
) -> Thresholds:
    """The threshold of each type.

    Args:
        threshold: from the user: a number or word holds for all types, a mapping for those that it names.
        default: of the model, for types with no other threshold.
        tuned: thresholds that were tuned for single types; they rank behind a type's own.
        presets: the numbers of the model for the words "precise" and "complete", if it has some.

    >>> resolve_thresholds([EntityType("drug"), EntityType("city")], {"drug": 0.4}, 0.7, {}).round(1).tolist()
    [0.4, 0.7]
    """
    if isinstance(threshold, Mapping):
        unknown = sorted(threshold.keys() - {one.name for one in types})
        if unknown:
            raise OnomaError(f"there is a threshold for {', '.join(unknown)}, which is not among the labels")
        given: Mapping[str, float | Preset] = threshold
    else:
        given = {} if threshold is None else {one.name: threshold for one in types}
    own = {one.name: one.threshold for one in types if one.threshold is not None}
    known = {**tuned, **own, **given}
    values = []
    for one in types:
        value = known.get(one.name, default)
        check_threshold(value, "a threshold")
        values.append(
            preset_threshold(value, tuned.get(one.name), default, presets or {}) if isinstance(value, str) else value
        )
    return np.maximum(np.array(values, np.float32), np.float32(LOWEST_THRESHOLD))


def parse_threshold(text: str | None) -> Threshold | None:
    """A threshold as it is written on the command line: "0.4", "precise" or "drug=0.4, person=precise".

    >>> parse_threshold("drug=0.4, person=precise")
    {'drug': 0.4, 'person': 'precise'}
    """
    if text is None:
        return None
    try:
        if "=" not in text:
            return _read_threshold(text)
        parts = [part.rpartition("=") for part in split_labels(text)]
        return {EntityType(name.strip()).name: _read_threshold(value) for name, _, value in parts}
    except ValueError:  # a value that is not a number, or a missing name
        raise OnomaError(
            f'a threshold is written as "0.4" or "drug=0.4, person=0.6", got {text!r}. '
            f"Fix: give numbers between 0 and 1, or {', '.join(get_args(Preset))}"
        ) from None


def _read_threshold(text: str) -> float | Preset:
    """A number or a word; a ValueError if it is neither."""
    word = text.strip().lower()
    for preset in get_args(Preset):
        if word == preset:
            return cast("Preset", preset)
    try:
        return float(word)
    except ValueError:
        words = ", ".join(get_args(Preset))
        raise ValueError(f"a threshold must be a number between 0 and 1, or {words}; got {text!r:.80}") from None
