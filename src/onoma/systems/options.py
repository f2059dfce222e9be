"""Options of a system, read strictly from the values of a recipe or of config.json."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from onoma.errors import OnomaError

T = TypeVar("T")
NegativeSampling = Literal["none", "uniform", "overlapping"]
"""Which unlabelled spans are negatives. none: all; uniform: a random sample; overlapping: a random sample, and all
spans that overlap a mention, which cannot be mentions in flat data."""


def parse_options(kind: type[T], values: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> T:
    """An options dataclass made of values; unknown keys and values of a wrong type are errors.

    `renamed` maps former names of options to their present ones, for the error message.
    """
    hints = get_type_hints(kind)
    names = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name not in names:
            hint = (
                f"it is called {renamed[name]!r} now" if renamed and name in renamed else f"known: {', '.join(names)}"
            )
            raise OnomaError(f"unknown option {name!r}; {hint}")
        checked[name] = _check(name, value, hints[name])
    return kind(**checked)


def reads_word_shapes(options: Mapping[str, Any]) -> bool:
    """Whether a model with these options reads how words are written, apart from their tokens."""
    return bool(options.get("word_shapes", False))


def _check(name: str, value: Any, hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        if value in arguments:
            return value
        raise OnomaError(f"option {name!r} must be one of {', '.join(map(str, arguments))}, got {value!r}")
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _check(name, value, next(one for one in arguments if one is not type(None)))
    if origin is tuple:
        if isinstance(value, (list, tuple)) and len(value) == len(arguments):
            return tuple(_check(name, one, part) for one, part in zip(value, arguments, strict=True))
        raise OnomaError(f"option {name!r} must be a list of {len(arguments)} values, got {value!r}")
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint or (hint is float and not math.isfinite(value)):
        raise OnomaError(f"option {name!r} must be {_NAMES[hint]}, got {value!r}")
    return value


_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


def check_ranges(
    options: Any,
    *,
    at_least_1: Sequence[str] = (),
    positive: Sequence[str] = (),
    not_negative: Sequence[str] = (),
    from_0_to_1: Sequence[str] = (),
) -> None:
    """Raise an error for the first of the named options whose value can never work; None and other options pass."""
    ranges: list[tuple[Sequence[str], str, Callable[[float], bool]]] = [
        (at_least_1, "at least 1", lambda value: value >= 1),
        (positive, "greater than 0", lambda value: value > 0),
        (not_negative, "at least 0", lambda value: value >= 0),
        (from_0_to_1, "between 0 and 1", lambda value: 0 <= value <= 1),
    ]
    for names, wanted, is_allowed in ranges:
        for name in names:
            value = getattr(options, name)
            if value is not None and not is_allowed(value):
                raise OnomaError(f"option {name!r} must be {wanted}, got {value!r}")
