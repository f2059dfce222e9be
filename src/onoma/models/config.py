"""`config.json` of a model folder: how a model was built and how it is used. It is read strictly."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from onoma.errors import DataError, OnomaError
from onoma.files import atomic_write
from onoma.labels.presets import BETAS
from onoma.structured import read_json
from onoma.text.scripts import SCRIPTS

CONFIG_FILE = "config.json"
FORMAT = 2
"""Version of the file; other versions are refused."""
ROUTED = "routed"
"""The `system` of a folder that holds several models, one for each script."""
LANGUAGES = ("en", "zh")
DEFAULT_SHARE = 0.3333
CATCH_ALL_LABELS = (
    *("misc", "miscellaneous", "miscellaneous entity", "other", "others", "other entity"),
    *("其他", "其它", "其他实体", "杂项", "其他實體", "雜項"),
)
"""Labels for whatever is none of the other types; see `ModelConfig.catch_all`."""

_GIVE_A_MODEL = "give a folder that `onoma train` or `onoma export` has written"
_LARGEST = 1e30  # of any number; calculations with larger ones overflow


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """How a model was built and how it is used.

    `system` names the package under `onoma.systems` that runs it, and `options` are that system's own. A score is
    sigmoid(scale · margin + bias), fitted on development data; `threshold` is the default threshold for it.
    """

    system: str
    encoder: str = ""
    language: str | None = None  # that the model reads best; labels of others are translated
    max_tokens: int = 256  # of a window, special tokens included
    overlap: int = 16  # words that neighbouring windows share
    threshold: float = 0.5
    thresholds: dict[str, float] = field(default_factory=dict)  # tuned ones, by type name
    presets: dict[str, float] = field(
        default_factory=dict
    )  # what "precise" and "complete" stand for, if chosen on data
    scale: float = 1.0
    bias: float = 0.0
    breadth_weight: float = 0.0  # of the breadths of types, by which one of the labels of a span is chosen
    calibration_error: float | None = None  # expected calibration error on the data of the fit
    types: dict[str, str] = field(default_factory=dict)  # name -> description of the types it was trained on
    catch_all: tuple[str, ...] = ()  # labels such as "miscellaneous", in lower case, which rank below all others
    datasets: tuple[str, ...] = ()  # corpora whose annotation style the model can follow
    options: dict[str, Any] = field(default_factory=dict)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json."""
        _write(asdict(self), Path(folder))


@dataclass(frozen=True, slots=True)
class Route:
    """A model in a sub-folder, for texts in some scripts; without scripts, for all other texts."""

    folder: str
    scripts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoutedConfig:
    """A folder that holds several models.

        config.json     {"format": 2, "system": "routed", "routes": [
                            {"folder": "zh", "scripts": ["Han"]}, {"folder": "en", "scripts": []}]}
        zh/             a model folder
        en/             another one; as the last route, it reads all texts that no other route reads

    A text goes to the first route whose scripts make up `share` of its letters.
    """

    routes: tuple[Route, ...]
    share: float = DEFAULT_SHARE
    system: str = ROUTED

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json."""
        _write(asdict(self), Path(folder))


def load_config(folder: str | os.PathLike[str]) -> ModelConfig | RoutedConfig:
    """Read config.json of a model folder."""
    path = Path(folder) / CONFIG_FILE
    if not os.path.lexists(path):
        raise OnomaError(f"{folder} is not a model folder: it has no {CONFIG_FILE}. Fix: {_GIVE_A_MODEL}")
    values = read_json(path, "save or download the model again")
    if not isinstance(values, dict) or not isinstance(values.get("system"), str):
        raise OnomaError(f"{path} does not describe an Onoma model: it names no 'system'. Fix: {_GIVE_A_MODEL}")
    version = values.pop("format", None)
    if version != FORMAT:
        raise OnomaError(
            f"{path} has format {version!r}, this version of Onoma reads format {FORMAT}. Fix: install the version of "
            "Onoma that wrote it, or train or export the model again"
        )
    return _routed(values, path) if values["system"] == ROUTED else _single(values, path)


def is_model_folder(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a model of Onoma, or of transformers."""
    try:
        values = read_json(Path(folder) / CONFIG_FILE, "")
    except DataError:
        return False
    return isinstance(values, dict) and not values.keys().isdisjoint(("system", "model_type"))


def _write(values: dict[str, Any], folder: Path) -> None:
    with atomic_write(folder / CONFIG_FILE) as file:
        json.dump({"format": FORMAT, **values}, file, ensure_ascii=False, indent=2)


def _single(values: dict[str, Any], path: Path) -> ModelConfig:
    _refuse_unknown(values, {one.name for one in fields(ModelConfig)}, path)
    for name, (accepts, wanted) in _FIELDS.items():
        if name in values and not accepts(values[name]):
            raise _error(path, f"{name!r} must be {wanted}, got {values[name]!r:.80}")
    for name in ("catch_all", "datasets"):
        values[name] = tuple(values.get(name, ()))
    return ModelConfig(**values)


def _routed(values: dict[str, Any], path: Path) -> RoutedConfig:
    _refuse_unknown(values, {one.name for one in fields(RoutedConfig)}, path)
    share, rows = values.get("share", DEFAULT_SHARE), values.get("routes")
    if not _is_share(share):
        raise _error(path, f"'share' must be a number between 0 and 1, got {share!r:.80}")
    if not isinstance(rows, list) or not rows:
        raise _error(path, 'there are no routes; write "routes": [{"folder": "en", "scripts": []}]')
    routes = tuple(_route(row, path) for row in rows)
    for route in routes[:-1]:
        if not route.scripts:
            raise _error(path, f"the route {route.folder!r} has no scripts, so it reads all texts; put it last")
    if routes[-1].scripts:
        raise _error(path, "there is no route for all other texts; the last route must have no scripts")
    return RoutedConfig(routes, float(share))


def _route(row: Any, path: Path) -> Route:
    if not isinstance(row, dict) or not isinstance(row.get("folder"), str) or not row.keys() <= {"folder", "scripts"}:
        raise _error(path, f'a route is {{"folder": "zh", "scripts": ["Han"]}}, got {row!r:.80}')
    name, scripts = row["folder"], row.get("scripts", [])
    if not _is_strings(scripts) or not all(one in SCRIPTS for one in scripts):
        raise _error(path, f"a route has the scripts {scripts!r:.80}; the known scripts are {', '.join(SCRIPTS)}")
    if name in ("", ".", "..") or Path(name).name != name or not (path.parent / name).is_dir():
        raise _error(path, f"there is a route to {name!r}, but no folder of this name")
    return Route(name, tuple(scripts))


def _refuse_unknown(values: dict[str, Any], known: set[str], path: Path) -> None:
    unknown = sorted(values.keys() - known)
    if unknown:
        raise _error(path, f"unknown key {unknown[0]!r}; the keys are format, {', '.join(sorted(known))}")


def _error(path: Path, message: str) -> OnomaError:
    return OnomaError(f"{path}: {message}. Fix: correct the file, or save or download the model again")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -_LARGEST < value < _LARGEST  # which is false for NaN


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0.0 <= value <= 1.0


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_dict(value: Any, accepts: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(accepts, value.values()))


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "encoder": (lambda value: isinstance(value, str), "a string"),
    "language": (lambda value: value is None or value in LANGUAGES, f"null or one of {', '.join(LANGUAGES)}"),
    "max_tokens": (lambda value: type(value) is int and 3 <= value <= 1_000_000, "an integer of at least 3"),
    "overlap": (lambda value: type(value) is int and value >= 0, "an integer of at least 0"),
    "threshold": (_is_share, "a number between 0 and 1"),
    "thresholds": (lambda value: _is_dict(value, _is_share), "numbers between 0 and 1 by type"),
    "presets": (
        lambda value: _is_dict(value, _is_share) and value.keys() <= BETAS.keys(),
        f"numbers between 0 and 1 for {' and '.join(BETAS)}",
    ),
    "scale": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "bias": (_is_number, "a number"),
    "breadth_weight": (lambda value: _is_number(value) and value >= 0, "a number of at least 0"),
    "calibration_error": (lambda value: value is None or _is_number(value), "a number or null"),
    "types": (lambda value: _is_dict(value, lambda one: isinstance(one, str)), "descriptions by type"),
    "catch_all": (_is_strings, "a list of labels"),
    "datasets": (_is_strings, "a list of names"),
    "options": (lambda value: isinstance(value, dict), "an object"),
}
