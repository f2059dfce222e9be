"""Unified type inventories: one set of types with natural names, for corpora that each have their own labels.

    types:
      person:                       # the natural name
        description: an individual human being referred to by name
        zh: 人名                    # optional: the Chinese name
        zh_description: 用名字称呼的个人
    corpora:
      my_news:                      # the name of a corpus
        PER: person                 # label: type
        MISC: null                  # a label that is dropped
      my_fine_types: identity       # its labels are names of types in the inventory
      my_own_types: own             # its labels are natural names, which the corpus describes itself

All files of a folder, or of one call, are merged into one inventory.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from onoma.data.corpora import relabel
from onoma.entities import Corpus, EntityType
from onoma.errors import DataError, OnomaError
from onoma.structured import compose_yaml

if TYPE_CHECKING:
    from yaml import Node

Language = Literal["en", "zh"]
Labels = Mapping[str, str | None]

OWN_FOLDER = Path(__file__).parent / "inventories"
TYPE_FIELDS = ("description", "zh", "zh_description")
KEYWORDS = ("identity", "own")
"""What a corpus may have instead of a mapping of its labels."""
MAX_LABELS = 20
"""Unmapped labels that an error message lists."""


@dataclass(frozen=True, slots=True)
class UnifiedType:
    """A type that several corpora share, with an English and optionally a Chinese name."""

    name: str
    description: str
    zh: str = ""
    zh_description: str = ""

    def in_language(self, language: Language) -> EntityType:
        """The type with its name and description in one language."""
        if language == "en":
            return EntityType(self.name, self.description)
        if not self.zh:
            raise OnomaError(f"type {self.name!r} has no Chinese name. Fix: add 'zh: ...' to it in the inventory.")
        return EntityType(self.zh, self.zh_description)


@dataclass(frozen=True, slots=True)
class Inventory:
    """Unified types, and for each corpus a mapping from its labels to types (None for an "identity" corpus).

    Labels of the corpora in `own` are natural names already and are not changed.
    """

    types: Mapping[str, UnifiedType]
    corpora: Mapping[str, Labels | None]
    own: frozenset[str] = frozenset()

    @classmethod
    def load(cls, *paths: str | PathLike[str], extend: bool = False) -> Inventory:
        """Read an inventory from YAML files or folders of YAML files, which are merged; by default Onoma's own.

        With `extend`, they are merged with Onoma's own:

        >>> Inventory.load("mine.yaml", extend=True)  # doctest: +SKIP
        """
        draft = _Draft()
        for source in (OWN_FOLDER, *map(Path, paths)) if extend or not paths else map(Path, paths):
            for file in _yaml_files(source):
                draft.add(file)
        return cls(draft.finished_types(), draft.finished_corpora(), draft.with_keyword("own"))

    def types_of(self, corpus_name: str, *, language: Language = "en") -> tuple[EntityType, ...]:
        """The unified types that a corpus has labels for, in the order of its labels."""
        if corpus_name in self.own:
            raise OnomaError(
                f"corpus {corpus_name!r} describes its types itself. Fix: use the types of the loaded corpus."
            )
        if corpus_name not in self.corpora:
            hint = _did_you_mean(get_close_matches(corpus_name, self.corpora, n=3))
            raise OnomaError(
                f"the inventory has no corpus {corpus_name!r}{hint}. Fix: add it to 'corpora' in a YAML file."
            )
        labels = self.corpora[corpus_name]
        names = self.types if labels is None else dict.fromkeys(name for name in labels.values() if name is not None)
        return tuple(self.types[name].in_language(language) for name in names)

    def unify(self, corpus: Corpus, *, language: Language = "en", keep_unmapped: bool = False) -> Corpus:
        """The corpus with unified types instead of its own labels.

        Labels with the same type are merged; dropped labels are no longer annotated. A label without a type is an
        error, or is kept unchanged with `keep_unmapped`. An "own" corpus is returned unchanged.
        """
        if corpus.name in self.own:
            return corpus
        labels = self.corpora.get(corpus.name, {})
        if labels is None:
            labels = {name: name for name in corpus.labels if name in self.types}
        unmapped = [name for name in corpus.labels if name not in labels]
        if unmapped and not keep_unmapped:
            raise OnomaError(self._explain_unmapped(corpus.name, unmapped))
        mapping: dict[str, EntityType | None] = {}
        for entity_type in corpus.types:
            target = labels.get(entity_type.name)
            if entity_type.name not in labels:
                mapping[entity_type.name] = entity_type
            else:
                mapping[entity_type.name] = None if target is None else self.types[target].in_language(language)
        return relabel(corpus, mapping)

    def _explain_unmapped(self, corpus_name: str, unmapped: list[str]) -> str:
        """The error message for labels without a type, with the lines to add to a YAML file."""
        listed = unmapped[:MAX_LABELS]
        if self.corpora.get(corpus_name, {}) is None:
            lines = ["types:", *(f"  {_quote(label)}: {{description: ...}}" for label in listed)]
        else:
            lines = ["corpora:", f"  {_quote(corpus_name)}:"]
            lines += [f"    {_quote(label)}: {_quote(label.lower().replace('_', ' '))}" for label in listed]
        if len(unmapped) > len(listed):
            lines.append(f"    # ... and {len(unmapped) - len(listed)} more")
        return "\n".join(
            [
                f"the inventory has no type for {len(unmapped)} labels of corpus {corpus_name!r}. "
                "Fix: add lines such as these to a YAML file (null drops a label), or set keep_unmapped=True",
                *lines,
            ]
        )


class _Placed(NamedTuple):
    """A value of a YAML file (None for null) with its file and line."""

    value: str | None
    path: Path
    line: int

    def error(self, message: str, fix: str) -> DataError:
        return DataError(message, path=self.path, line=self.line, fix=fix)


class _Draft:
    """An inventory while its files are read; every value is kept with its file and line, for error messages."""

    def __init__(self) -> None:
        self.types: dict[str, dict[str, _Placed]] = {}
        self.corpora: dict[str, dict[str, _Placed]] = {}
        self.keywords: dict[str, _Placed] = {}  # corpora with a keyword instead of a mapping of labels
        self.type_places: dict[str, _Placed] = {}  # where each type was first defined

    def add(self, path: Path) -> None:
        for section, line, node in _items(compose_yaml(path), path, "the file"):
            if section not in ("types", "corpora"):
                raise DataError(f"unknown section {section!r}", path=path, line=line, fix="use 'types' and 'corpora'")
            for name, line, value in _items(node, path, f"section {section!r}"):
                add = self._add_type if section == "types" else self._add_corpus
                add(_Placed(name, path, line), name, value)

    def _add_type(self, place: _Placed, name: str, node: Node) -> None:
        self.type_places.setdefault(name, place)
        fields = self.types.setdefault(name, {})
        for key, line, value in _items(node, place.path, f"type {name!r}"):
            field = _Placed((_scalar(value) or "").strip(), place.path, line)
            if key not in TYPE_FIELDS:
                raise field.error(f"type {name!r} has an unknown field {key!r}", f"use {', '.join(TYPE_FIELDS)}")
            if not field.value:
                raise field.error(f"{key!r} of type {name!r} must be a non-empty string", "write a phrase")
            _add_once(fields, key, field, f"{key!r} of type {name!r}")

    def _add_corpus(self, place: _Placed, name: str, node: Node) -> None:
        keyword = _scalar(node)
        if keyword in KEYWORDS:
            _add_once(self.keywords, name, place._replace(value=keyword), f"corpus {name!r}")
            return
        labels = self.corpora.setdefault(name, {})
        for label, line, value in _items(node, place.path, f"corpus {name!r}"):
            target = _Placed(_scalar(value), place.path, line)
            if target.value is None and not _is_null(value):
                fix = f"write the name of one type, or {label}: null to drop the label"
                raise target.error(f"label {label!r} of corpus {name!r} has no type", fix)
            _add_once(labels, label, target, f"label {label!r} of corpus {name!r}")

    def finished_types(self) -> dict[str, UnifiedType]:
        for name, fields in self.types.items():
            if "description" not in fields:
                fix = f"add 'description: ...' below {name!r}, a phrase that says what the type includes"
                raise self.type_places[name].error(f"type {name!r} has no description", fix)
        return {
            name: UnifiedType(name, **{key: field.value or "" for key, field in fields.items()})
            for name, fields in self.types.items()
        }

    def finished_corpora(self) -> dict[str, Labels | None]:
        for name, labels in self.corpora.items():
            if name in self.keywords:
                message = f"corpus {name!r} is {self.keywords[name].value!r} and also has labels"
                raise self.keywords[name].error(message, "keep one of them")
            for label, target in labels.items():
                if target.value is not None and target.value not in self.types:
                    hint = _did_you_mean(get_close_matches(target.value, self.types))
                    message = f"label {label!r} of corpus {name!r} has the unknown type {target.value!r}{hint}"
                    raise target.error(message, f"add {target.value!r} to 'types', or use another type")
        mapped = {
            name: {label: place.value for label, place in labels.items()} for name, labels in self.corpora.items()
        }
        return {**mapped, **dict.fromkeys(self.with_keyword("identity"))}

    def with_keyword(self, keyword: str) -> frozenset[str]:
        """The corpora that have this keyword instead of labels."""
        return frozenset(name for name, place in self.keywords.items() if place.value == keyword)


def _yaml_files(source: Path) -> list[Path]:
    files = sorted(source.glob("*.yaml")) if os.path.isdir(source) else [source]
    if not files or not all(map(os.path.isfile, files)):
        raise DataError("there is no inventory here", path=source, fix="give a YAML file or a folder with *.yaml files")
    return files


def _add_once(known: dict[str, _Placed], key: str, new: _Placed, what: str) -> None:
    """Add a value unless it is there already; a different value for the same key is an error."""
    old = known.setdefault(key, new)
    if old.value != new.value:
        message = f"{what} is {new.value!r} here, but {old.value!r} in {old.path.name}, line {old.line}"
        raise new.error(message, "make them equal, or remove one of them")


def _items(node: Node | None, path: Path, what: str) -> Iterator[tuple[str, int, Node]]:
    """The key, line and value of each entry of a YAML mapping; an empty node has no entries."""
    from yaml import MappingNode

    if node is None or _is_null(node):
        return
    if not isinstance(node, MappingNode):
        line = node.start_mark.line + 1
        raise DataError(f"{what} is not a mapping", path=path, line=line, fix="write lines of 'name: value'")
    for key_node, value in node.value:
        key, line = _scalar(key_node), key_node.start_mark.line + 1
        if not key:
            raise DataError(f"{what} has a key that is not a string", path=path, line=line, fix="write a name")
        yield key, line, value


def _is_null(node: Node) -> bool:
    return node.tag == "tag:yaml.org,2002:null"


def _scalar(node: Node) -> str | None:
    return node.value if isinstance(node.value, str) and not _is_null(node) else None


def _did_you_mean(names: Iterable[str]) -> str:
    listed = ", ".join(map(repr, names))
    return f" (did you mean {listed}?)" if listed else ""


def _quote(text: str) -> str:
    """A YAML key or value, in quotes unless it consists of plain words."""
    return text if re.fullmatch(r"[^\W\d](?:[\w .-]*\w)?", text) else json.dumps(text, ensure_ascii=False)
