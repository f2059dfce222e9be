"""The names of types in the language of a model: "person" is asked of a Chinese model as "人名".

A model says in its configuration which language it reads best: `options.language` is "en" or "zh". A label in the
other language is asked by the name and description that Onoma's inventory has for it, if it has any. What the
inventory says lies beside the model in `labels.json`, because to read the whole inventory takes a tenth of a second:

    {"person": ["人名", "用名字称呼的个人，包括真实人物和虚构人物"]}
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from onoma.config import ModelConfig
from onoma.data.files import atomic_write
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.text.words import is_unspaced

Language = Literal["en", "zh"]
Names = Mapping[str, Sequence[str]]  # normalised name -> name and description in another language

LABELS = "labels.json"


class LabelNames:
    """Puts labels into the language of a model. Nothing is read before there is a label in another one."""

    def __init__(self, folder: str | os.PathLike[str], language: str | None) -> None:
        if language is not None and language not in get_args(Language):
            known = ", ".join(get_args(Language))
            raise OnomaError(f"{folder}: the language of a model is one of {known}, config.json says {language!r}")
        self.folder, self.language = Path(folder), language

    def told(self, types: Sequence[EntityType]) -> tuple[EntityType, ...]:
        """The types as the model is asked for them; those with a description of the user's own stay as they are."""
        return tuple(self._told(one) if self._is_foreign(one) else one for one in types)

    def _is_foreign(self, asked: EntityType) -> bool:
        if self.language is None or asked.description:
            return False
        return is_unspaced(asked.name) == (self.language == "en")

    def _told(self, asked: EntityType) -> EntityType:
        known = self._names.get(_normalise(asked.name))
        return asked if known is None else replace(asked, name=known[0], description=known[1])

    @cached_property
    def _names(self) -> Names:
        path = self.folder / LABELS
        if not path.is_file():
            return _inventory_names(self.language)
        try:
            names: dict[str, list[str]] = json.loads(path.read_text("utf-8"))
            if not all(isinstance(pair, list) and list(map(type, pair)) == [str, str] for pair in names.values()):
                raise ValueError("a label has a name and a description")
        except (ValueError, TypeError, AttributeError) as error:
            raise OnomaError(f"{path} is damaged ({error}); save or download the model again") from error
        return names


def told_config(config: ModelConfig, asked: Sequence[EntityType], told: Sequence[EntityType]) -> ModelConfig:
    """The configuration with what was tuned for names of the model's language under the names that were asked."""
    tuned = {
        one.name: config.thresholds[other.name]
        for one, other in zip(asked, told, strict=True)
        if other.name in config.thresholds
    }
    return replace(config, thresholds={**config.thresholds, **tuned})


def write_label_names(folder: str | os.PathLike[str], language: Language) -> None:
    """Say in a model folder that it reads this language best, and put the names beside that it needs for others.

    >>> write_label_names("models/zh", "zh")  # doctest: +SKIP
    """
    config, names = ModelConfig.load(folder), _inventory_names(language)
    with atomic_write(Path(folder) / LABELS) as file:
        json.dump(names, file, ensure_ascii=False, indent=0)
    replace(config, options={**config.options, "language": language}).save(folder)


def _inventory_names(language: str | None) -> Names:
    """What Onoma's inventory has for names of the other language."""
    from onoma.data.inventory import Inventory  # takes a tenth of a second, which few need

    names: dict[str, list[str]] = {}
    for one in Inventory.load().types.values():
        if one.zh and language == "zh":
            names.setdefault(_normalise(one.name), [one.zh, one.zh_description])
        elif one.zh:
            names.setdefault(_normalise(one.zh), [one.name, one.description])
    return names


def _normalise(name: str) -> str:
    """The name without differences that nobody means.

    >>> _normalise("Job_Title ")
    'job title'
    """
    return " ".join(re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", name).casefold()).split())
