"""Names of types in English and Chinese: those of the type inventory, and many other common labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from onoma.data.inventory import OWN_FOLDER, Inventory, Language
from onoma.errors import DataError
from onoma.files import open_text
from onoma.labels.translation import Translations, normalize_name

TABLE = OWN_FOLDER / "translations.txt"


class TranslatedNames(NamedTuple):
    """Names for one type; the first ones are those that others are translated to."""

    english: tuple[str, ...]
    chinese: tuple[str, ...]
    chinese_description: str = ""


def read_table(path: Path = TABLE) -> Iterator[TranslatedNames]:
    """The rows of a table of names; its head describes the format."""
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not line.startswith("#"):
                english, equals, rest = line.strip().partition(" = ")
                chinese, _, description = rest.partition(" : ")
                row = TranslatedNames(_names(english, ","), _names(chinese, "、"), description)
                if not equals or not all((*row.english, *row.chinese)):
                    fix = "write 'dog, hound = 狗、犬'"
                    raise DataError("a row needs English and Chinese names", path=path, line=number, fix=fix)
                yield row


def _names(text: str, separator: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(separator))


def label_translations(language: Language) -> Translations:
    """Name and description in a language for labels of the other one, by normalised names."""
    types = Inventory.load().types
    own = {one.name: TranslatedNames((one.name,), (one.zh,), one.zh_description) for one in types.values() if one.zh}
    table: dict[str, list[str]] = {}
    for row in (*read_table(), *own.values()):
        first = row.english[0]
        if language == "zh":
            known = own.get(first, row)
            names, target = row.english, [known.chinese[0], known.chinese_description]
        else:
            names, target = row.chinese, [first, types[first].description if first in types else ""]
        for name in names:
            table.setdefault(normalize_name(name), target)
    return table
