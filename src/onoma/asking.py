"""What is asked for: labels in all the ways people write them, and the score that each of them must reach."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from onoma.config import ModelConfig
from onoma.data.files import open_text
from onoma.entities import EntityType
from onoma.errors import DataError, OnomaError

Labels = Iterable[str | EntityType] | Mapping[str, str]
Threshold = float | Mapping[str, float]

LOWEST_THRESHOLD = float(np.finfo(np.float32).tiny)
"""What a threshold of 0 means: a score of exactly 0 stands for spans that cannot be."""


def asked_types(labels: Labels) -> tuple[EntityType, ...]:
    """The types that labels stand for, each once, in the order of their names.

    The order in which labels were given is gone here, so that nothing after this can depend on it.

    >>> [one.name for one in asked_types(["person", EntityType("city"), "person"])]
    ['city', 'person']
    """
    if isinstance(labels, (str, bytes, EntityType)) or not isinstance(labels, Iterable):
        raise OnomaError(f'labels are a list such as ["person", "city"] or name → description, got {labels!r}')
    types: dict[str, EntityType] = {}
    for label in labels.items() if isinstance(labels, Mapping) else labels:
        one = _entity_type(label)
        if types.setdefault(one.name, one) != one:
            raise OnomaError(
                f"the label {one.name!r} is given twice, with different descriptions, examples or thresholds; "
                "keep one of them or give them different names"
            )
    if not types:
        raise OnomaError('no labels are given; say what to look for, such as ["person", "city"]')
    return tuple(types[name] for name in sorted(types))


def _entity_type(label: object) -> EntityType:
    if isinstance(label, EntityType):
        return label
    if isinstance(label, tuple):  # name and description, out of a mapping
        return EntityType(*label)
    if isinstance(label, str):
        return EntityType(label)
    raise OnomaError(f"a label is a name or an EntityType, got {label!r}")


def limits(types: Sequence[EntityType], threshold: Threshold | None, config: ModelConfig) -> NDArray[np.float32]:
    """The score that each type must reach.

    A number holds for all types, a mapping for those that it names. Otherwise a type's own threshold
    counts, then the one that was tuned for its name, then the model's.

    >>> limits(asked_types(["drug", "city"]), {"drug": 0.4}, ModelConfig("binder", threshold=0.7)).round(1).tolist()
    [0.7, 0.4]
    """
    if isinstance(threshold, Mapping):
        unknown = sorted(threshold.keys() - {one.name for one in types})
        if unknown:
            raise OnomaError(f"there is a threshold for {', '.join(unknown)}, which is not among the labels")
        values = [threshold[one.name] if one.name in threshold else _default(one, config) for one in types]
    else:
        values = [_default(one, config) if threshold is None else threshold for one in types]
    for value in values:
        if not isinstance(value, (int, float, np.number)) or not 0.0 <= value <= 1.0:
            raise OnomaError(f"a threshold is a number between 0 and 1, got {value!r}")
    return np.maximum(np.array(values, np.float32), np.float32(LOWEST_THRESHOLD))


def _default(entity_type: EntityType, config: ModelConfig) -> float:
    if entity_type.threshold is not None:
        return entity_type.threshold
    return config.thresholds.get(entity_type.name, config.threshold)


def split_list(text: str) -> list[str]:
    """The parts of a list as it is written on the command line, between English or Chinese commas.

    >>> split_list("person, side effect"), split_list("人名、地名，公司")
    (['person', 'side effect'], ['人名', '地名', '公司'])
    """
    return [part.strip() for part in re.split("[,，、]", text)]


def parse_threshold(text: str | None) -> Threshold | None:
    """A threshold as it is written on the command line: "0.4", or "drug=0.4, person=0.6"; None stays None.

    >>> parse_threshold("drug=0.4, person=0.6")
    {'drug': 0.4, 'person': 0.6}
    """
    if text is None:
        return None
    try:
        if "=" not in text:
            return float(text)
        parts = [part.rpartition("=") for part in split_list(text)]
        return {EntityType(name.strip()).name: float(value) for name, _, value in parts}
    except ValueError:  # of float, or of a name that is missing
        raise OnomaError(f'a threshold is "0.4" or "drug=0.4, person=0.6", got {text!r}') from None


def read_types(path: str | os.PathLike[str]) -> list[EntityType]:
    """Types from a YAML file: name → description, or a list with name, description, examples and threshold.

    drug: a medicine or active substance        - name: drug
    side effect:                                  description: a medicine or active substance
                                                  examples: [aspirin, heparin]
                                                  threshold: 0.4
    """
    import yaml  # only those who keep types in a file need it

    with open_text(path) as file:
        try:  # everything stays a string: a type may be called "no"
            content = yaml.load(file, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            fix = "check indentation, colons and quotes there"
            raise DataError(f"this is not valid YAML ({error.problem})", path=path, line=line, fix=fix) from error
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
            None if threshold is None else float(threshold),
        )
    except (OnomaError, TypeError, ValueError) as error:
        fix = "write 'drug: a medicine', or '- name: drug' with a description, examples and a threshold below"
        raise DataError(str(error), path=path, fix=fix) from None
