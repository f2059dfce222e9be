"""Labels in the language of a model: a Chinese model is asked for "person" as "人名".

A model folder names the language that the model reads best in config.json (`language`), and holds the names and
descriptions that labels of the other language are translated to, in `labels.json`:

    {"person": ["人名", "用名字称呼的个人，包括真实人物和虚构人物"]}

Labels in traditional characters are those in simplified ones: "電影" is "电影".
"""

from __future__ import annotations

import logging
import os
import re
import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from onoma.entities import EntityType
from onoma.errors import DataError
from onoma.labels.spelling import spell_out
from onoma.structured import read_json
from onoma.text.chinese import fold_chinese
from onoma.text.words import is_unspaced

Translations = Mapping[str, Sequence[str]]
"""Normalised name -> name and description in the language of the model."""

TRANSLATIONS_FILE = "labels.json"
MOST_NAMES = 5
"""Names that a warning shows."""
MAX_WARNED = 10_000
"""Names that are remembered, so that each of them is in one warning only."""
logger = logging.getLogger(__name__)


class LabelTranslator:
    """Translates labels into the language of a model. The table is read when the first label needs it.

    `known` are the names of types that the model was trained on; they are not changed from traditional to simplified.
    """

    def __init__(self, folder: Path, language: str | None, known: Container[str] = ()) -> None:
        self.folder, self.language, self.known = folder, language, known
        self.warned: set[str] = set()

    def translate(self, types: Sequence[EntityType]) -> tuple[EntityType, ...]:
        """The types as the model is asked for them; types with a description of the user's own are not translated."""
        if self.language is None:
            return tuple(types)
        self._warn([one.name for one in types if self._is_foreign(one) and self._find(one.name) is None])
        return tuple(map(self._translate, types))

    def _translate(self, one: EntityType) -> EntityType:
        translation = self._find(one.name) if self._is_foreign(one) else None
        if translation is not None:
            return replace(one, name=translation[0], description=translation[1])
        if one.name in self.known:
            return one
        return self._simplify(one) if self.language == "zh" else replace(one, name=spell_out(one.name))

    def _is_foreign(self, one: EntityType) -> bool:
        return not one.description and is_unspaced(one.name) == (self.language == "en")

    def _find(self, name: str) -> Sequence[str] | None:
        """The translation of a name as it is written, or spelt out."""
        table = self._translations
        return table.get(normalize_name(name)) or table.get(normalize_name(spell_out(name)))

    def _warn(self, names: Sequence[str]) -> None:
        """Say once that labels have no translation."""
        new = [name for name in names if name not in self.warned]
        if len(self.warned) > MAX_WARNED:
            self.warned.clear()
        self.warned.update(new)
        if new and self._translations:
            shown = ", ".join(map(repr, new[:MOST_NAMES])) + f" and {len(new) - MOST_NAMES} more" * (
                len(new) > MOST_NAMES
            )
            logger.warning(
                "no translation into the language of the model (%s) for %s; it may not understand such labels. "
                "Fix: give them in that language, or describe them",
                self.language,
                shown,
            )

    def _simplify(self, one: EntityType) -> EntityType:
        name, description = (fold_chinese(text, punctuation=False) for text in (one.name, one.description))
        return replace(one, name=name, description=description)

    @cached_property
    def _translations(self) -> Translations:
        path = self.folder / TRANSLATIONS_FILE
        if not os.path.lexists(path):
            return {}
        fix = "save or download the model again"
        table = read_json(path, fix)
        if not isinstance(table, dict) or not all(map(_is_pair, table.values())):
            raise DataError("a label needs a name and a description", path=path, fix=fix)
        return table


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and list(map(type, value)) == [str, str] and bool(value[0].strip())


def normalize_name(name: str) -> str:
    """A name without differences in case, width, hyphens and underscores, in simplified characters.

    >>> normalize_name("Job_Title "), normalize_name("電影")
    ('job title', '电影')
    """
    normal = " ".join(re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", name).casefold()).split())
    return fold_chinese(normal)
