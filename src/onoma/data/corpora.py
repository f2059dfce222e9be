"""Corpora on disk: a folder with one file per split and an optional meta.json, or a single file.

    data/drugs/
        meta.json            optional: name, language, licence, types and their natural names
        types.jsonl          optional: one {"name": ..., "description": ...} per line
        schemas.json         optional: the annotation schemas of the documents; not read
        train.jsonl.xz       the splits, in any format that `onoma.data.formats` reads
        dev.conll
        test/                a folder of brat files is one split

>>> load_corpus("data/drugs:train")         # doctest: +SKIP
>>> load_corpus("data/drugs/train.jsonl")   # doctest: +SKIP
>>> load_splits("data/drugs")["dev"]        # doctest: +SKIP
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from onoma.data.formats import FORMATS, detect, read
from onoma.data.formats.base import short_repr
from onoma.data.formats.records import read_records
from onoma.entities import Corpus, Document, Entity, EntityType
from onoma.errors import DataError, OnomaError
from onoma.files import COMPRESSIONS, plain_suffix, require_storage
from onoma.models.config import is_model_folder
from onoma.structured import read_json

logger = logging.getLogger("onoma")

EXTENSIONS = sorted({".txt", *(suffix for form in FORMATS.values() for suffix in form.extensions)})
"""Extensions of the files in a corpus folder that are splits; their format is detected by content."""
NOT_SPLITS = {"meta", "types", "schemas", "marked", "readme", "license", "licence", "notes", "annotation"}
"""Names (without extensions) of the files in a corpus folder that are not splits."""
TYPE_EXAMPLE = '{"name": "drug", "description": "a medicine or active substance"}'
META_FIELDS: dict[str, tuple[type, str]] = {
    "name": (str, "a string"),
    "language": (str, "a string, such as en"),
    "license": (str, "a string"),
    "role": (str, "a string"),
    "weights_ok": (bool, "true or false"),
}
"""The optional fields of meta.json other than the types: the class of each and what an error message asks for."""
USUAL_SPLITS = ("train", "dev", "valid", "validation", "test")


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """The metadata of a corpus folder; everything except the name may be missing."""

    name: str
    language: str | None = None
    licence: str | None = None
    role: str | None = None
    weights_ok: bool | None = None
    types: tuple[str, ...] = ()
    type_names: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def natural_name(self, label: str, language: str | None = None) -> str:
        """The natural name of a label, such as "person" for "PER", by default in the language of the corpus.

        A name without a language is used for all languages; a label without a natural name is its own name.
        """
        name = self.type_names.get(label, label)
        if isinstance(name, str):
            return name
        language = language or self.language or "en"
        if language not in name:
            known = ", ".join(sorted(name))
            raise OnomaError(
                f"corpus {self.name!r} names the type {label!r} in {known}, not in {language!r}. "
                "Fix: choose one of these languages, or add the name to 'type_names' in meta.json."
            )
        return name[language]


class _Source(NamedTuple):
    """A corpus on disk: its metadata, the selected splits, and all splits of the folder that share one inventory."""

    info: CorpusInfo
    paths: dict[str, Path]
    all_paths: dict[str, Path]


def load_splits(
    source: str | PathLike[str],
    *,
    splits: Sequence[str] | None = None,
    name: str | None = None,
    format: str | None = None,
    natural_names: bool = False,
    language: str | None = None,
) -> dict[str, Corpus]:
    """All splits of a corpus folder, or the given ones; a file is one split.

    The splits share one inventory, that of the whole folder: if meta.json lists no types, the labels of the other
    splits are read too, so that the inventory includes types without a mention in the loaded splits.

    Args:
        splits: the names of the splits to load.
        name: the name of the corpus, instead of the one in meta.json or of the folder.
        format: the format of the files; detected by default.
        natural_names: replace labels such as "PER" by their natural names in meta.json, such as "person". Labels with
            the same natural name become one type.
        language: the language of natural names, if meta.json gives several ("zh" and "en" for Chinese corpora).
    """
    info, paths, all_paths = _locate(source)
    for split in splits or ():
        _require(split, paths, source)
    documents = {split: tuple(read(paths[split], format)) for split in splits or paths}
    others = () if info.types else [path for split, path in all_paths.items() if split not in documents]
    used = _labels(chain.from_iterable(documents.values())).union(*(_labels_in(path, format) for path in others))
    names = (*info.types, *sorted(used.difference(info.types)))
    types = tuple(EntityType(label, info.descriptions.get(label, "")) for label in names)
    corpora = {split: Corpus(name or info.name, texts, types) for split, texts in documents.items()}
    if natural_names:
        mapping = {one.name: replace(one, name=info.natural_name(one.name, language)) for one in types}
        corpora = {split: relabel(corpus, mapping) for split, corpus in corpora.items()}
    return corpora


def load_corpus(
    source: str | PathLike[str],
    split: str | None = None,
    *,
    name: str | None = None,
    format: str | None = None,
    natural_names: bool = False,
    language: str | None = None,
) -> Corpus:
    """One split: `load_corpus("data/drugs", "train")`, `load_corpus("data/drugs:train")` or a file."""
    if split is None:
        paths = find_splits(source)
        if len(paths) > 1:
            fix = f"name the split: {source}:{next(iter(paths))}"
            raise DataError(f"there are several splits ({', '.join(paths)}), but one is needed", path=source, fix=fix)
        split = next(iter(paths))
    corpora = load_splits(
        source, splits=[split], name=name, format=format, natural_names=natural_names, language=language
    )
    return corpora[split]


def find_splits(source: str | PathLike[str]) -> dict[str, Path]:
    """The splits of a corpus and their paths: train, dev and test first, then the others by name."""
    return _locate(source).paths


def read_info(source: str | PathLike[str]) -> CorpusInfo:
    """The metadata of a corpus (name, language, licence, types, ...), without reading its documents."""
    return _locate(source).info


def relabel(corpus: Corpus, mapping: Mapping[str, EntityType | None]) -> Corpus:
    """The corpus with each label replaced by the type that `mapping` gives for it.

    Labels with the same type are merged, and so are mentions that differ only in such labels. A label that is mapped
    to None is dropped with its mentions. In a document that lists its annotated labels, a merged type counts as
    annotated only if all of its labels are, or if it has a mention.
    """
    types: dict[str, EntityType] = {}
    parts: Counter[str] = Counter()
    for label in corpus.labels:
        target = mapping[label]
        if target is not None:
            parts[target.name] += 1
            known = types.setdefault(target.name, target)
            if target.description and not known.description:
                types[target.name] = target
    names = {label: target.name for label, target in mapping.items() if target is not None}
    documents = [_relabel_document(document, names, parts) for document in corpus]
    return Corpus(corpus.name, documents, tuple(types.values()))


def _relabel_document(document: Document, names: Mapping[str, str], parts: Mapping[str, int]) -> Document:
    merged: dict[tuple[int, int, str], Entity] = {}
    for entity in document.entities:
        if entity.label in names:
            renamed = replace(entity, label=names[entity.label])
            known = merged.get(renamed.key)
            if known is None or renamed.score > known.score:
                merged[renamed.key] = renamed
    annotated = document.annotated
    if annotated is not None:
        found = Counter(names[label] for label in annotated if label in names)
        used = {label for _, _, label in merged}
        annotated = frozenset(name for name, count in found.items() if count == parts[name]) | used
    return replace(document, entities=tuple(merged.values()), annotated=annotated)


def _labels(documents: Iterable[Document]) -> set[str]:
    """All labels of documents: those of mentions and those listed as annotated."""
    used: set[str] = set()
    for document in documents:
        used.update(document.labels, document.annotated or ())
    return used


def _labels_in(path: Path, format: str | None) -> set[str]:
    """The labels of a split that is not loaded; if it cannot be read, that is only a warning."""
    try:
        return _labels(read(path, format))
    except OnomaError as error:
        logger.warning("the labels of another split cannot be read, so the list of types may be incomplete: %s", error)
        return set()


def _locate(source: str | PathLike[str]) -> _Source:
    require_storage(source)
    path = Path(source)
    if os.path.isdir(path):
        info = _read_meta(path)
        paths = _splits_in(path, info)
        return _Source(info, paths, paths)
    found = _as_file(path)
    if found is not None:
        split = _stem(found)
        if os.path.isfile(path.parent / "meta.json"):
            return _Source(_read_meta(path.parent), {split: found}, {})
        folder = found.absolute().parent.name
        return _Source(CorpusInfo(folder if split in USUAL_SPLITS and folder else split), {split: found}, {})
    folder_name, colon, split = str(source).rpartition(":")
    if colon and os.path.isdir(folder_name):
        whole = _locate(folder_name)
        _require(split, whole.paths, folder_name)
        return whole._replace(paths={split: whole.paths[split]})
    fix = "give a file, a corpus folder, or FOLDER:SPLIT for one split"
    raise DataError("there is no such file or folder", path=source, fix=fix)


def _require(split: str, paths: Mapping[str, Path], source: str | PathLike[str]) -> None:
    if split not in paths:
        raise DataError(f"there is no split {split!r}", path=source, fix=f"use one of: {', '.join(paths)}")


def _as_file(path: Path) -> Path | None:
    """The file itself, or its compressed version: "train.jsonl" also finds "train.jsonl.xz"."""
    candidates = (path, *(path.with_name(path.name + suffix) for suffix in COMPRESSIONS))
    return next(filter(os.path.isfile, candidates), None)


def _splits_in(folder: Path, info: CorpusInfo) -> dict[str, Path]:
    if any(folder.glob("*.ann")):
        return {folder.absolute().name: folder}
    if is_model_folder(folder):
        raise DataError("the folder contains a model, not documents", path=folder, fix="give a corpus")
    if info.role == "lexicon":
        raise DataError("the folder contains word lists, not documents", path=folder, fix="give a corpus")
    splits: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if not _is_split(path):
            continue
        split = _stem(path)
        if split in splits:
            fix = "keep one of them, or give the path of one file"
            raise DataError(f"{splits[split].name} and {path.name} are both split {split!r}", path=folder, fix=fix)
        splits[split] = path
    if not splits:
        fix = f"name files by their split, such as train.jsonl (known extensions: {' '.join(EXTENSIONS)})"
        raise DataError("the folder has no file with documents", path=folder, fix=fix)
    usual = [split for split in USUAL_SPLITS if split in splits]
    return {split: splits[split] for split in (*usual, *(split for split in splits if split not in usual))}


def _is_split(path: Path) -> bool:
    if path.name.startswith(".") or _stem(path).lower() in NOT_SPLITS:
        return False
    if path.is_dir():
        return any(path.glob("*.ann"))
    if plain_suffix(path) == ".txt" and _stem(path) not in USUAL_SPLITS:
        return _is_known(path)  # a folder may also contain word lists and other text
    return plain_suffix(path) in EXTENSIONS


def _is_known(path: Path) -> bool:
    try:
        return bool(detect(path))
    except DataError:
        return False


def _stem(path: Path) -> str:
    return path.name.split(".")[0] or path.name


def _read_meta(folder: Path) -> CorpusInfo:
    path = folder / "meta.json"
    meta = _read_object(path) if path.is_file() else {}
    for key, (kind, example) in META_FIELDS.items():
        if not isinstance(meta.get(key), kind | None):
            message = f"{key!r} must be {example}, got {short_repr(meta[key])}"
            raise DataError(message, path=path, fix="correct or remove it")
    type_names = meta.get("type_names") or {}
    if not isinstance(type_names, dict) or not all(map(_is_natural_name, type_names.values())):
        fix = 'write "type_names": {"PER": "person"} or {"PER": {"zh": "人名", "en": "person"}}'
        raise DataError("'type_names' must give a name for each of its labels", path=path, fix=fix)
    types = meta.get("types") or ()
    if not isinstance(types, (dict, list, tuple)) or not all(isinstance(label, str) for label in types):
        raise DataError("'types' must be a list of labels", path=path, fix='write "types": ["PER", "LOC"]')
    return CorpusInfo(
        name=meta.get("name") or folder.absolute().name,
        language=meta.get("language"),
        licence=meta.get("license"),
        role=meta.get("role"),
        weights_ok=meta.get("weights_ok"),
        types=tuple(dict.fromkeys(types)),
        type_names=type_names,
        descriptions=_read_descriptions(folder / "types.jsonl"),
    )


def _read_object(path: Path) -> dict[str, Any]:
    value = read_json(path, fix="correct the file")
    if not isinstance(value, dict):
        raise DataError("this is not a JSON object", path=path, fix='write {"name": ...}')
    return value


def _is_natural_name(name: object) -> bool:
    names = name.values() if isinstance(name, dict) and name else (name,)
    return all(isinstance(one, str) and one.strip() for one in names)


def _read_descriptions(path: Path) -> dict[str, str]:
    records = read_records(path, TYPE_EXAMPLE) if path.is_file() else ()
    return {record.text("name"): record.text("description") for record in records}
