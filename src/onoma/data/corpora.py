"""Corpora on disk: a folder with one file a split (and a meta.json, where there is one), or a single file.

    data/drugs/
        meta.json            name, language, licence, types and their natural names (optional)
        types.jsonl          {"name": ..., "description": ...} a line (optional)
        train.jsonl.xz       the splits, in any format that `onoma.data.formats` reads
        dev.conll
        test/                a folder of brat files is one split

>>> load_corpus("data/drugs:train")         # doctest: +SKIP
>>> load_corpus("data/drugs/train.jsonl")   # doctest: +SKIP
>>> load_splits("data/drugs")["dev"]        # doctest: +SKIP
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from onoma.data.files import COMPRESSIONS, open_text, plain_suffix, read_lines, require_storage
from onoma.data.formats import FORMATS, detect, read
from onoma.data.formats.base import shown
from onoma.entities import Corpus, Document, Entity, EntityType
from onoma.errors import DataError, OnomaError

logger = logging.getLogger("onoma")

EXTENSIONS = sorted({".txt", *(suffix for form in FORMATS.values() for suffix in form.extensions)})
"""Files of a corpus folder that are splits; the content tells their format."""
BESIDE_SPLITS = {"meta", "types", "marked", "readme", "license", "licence", "notes", "annotation"}
"""Files of a corpus folder that hold something else than a split."""
META_FIELDS: dict[str, tuple[type, str]] = {
    "name": (str, "a string"),
    "language": (str, "a string, such as en"),
    "license": (str, "a string"),
    "role": (str, "a string"),
    "weights_ok": (bool, "true or false"),
}
"""What meta.json may say beside types and their names, and how."""
USUAL_SPLITS = ("train", "dev", "valid", "validation", "test")


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """What a corpus folder says of itself; everything but the name may be unknown."""

    name: str
    language: str | None = None
    licence: str | None = None
    role: str | None = None
    weights_ok: bool | None = None
    types: tuple[str, ...] = ()
    type_names: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def natural_name(self, label: str, language: str | None = None) -> str:
        """The name of a label in words, by default in the language of the corpus.

        A name that the corpus gives in one language only is used as it is; a label without one names itself.
        """
        name = self.type_names.get(label, label)
        if isinstance(name, str):
            return name
        wanted = language or self.language or "en"
        if wanted not in name:
            raise OnomaError(
                f"corpus {self.name!r} names the type {label!r} in {', '.join(sorted(name))}, not in {wanted!r}"
            )
        return name[wanted]


class _Located(NamedTuple):
    """A corpus on disk: what it says of itself, the splits that are meant, and all that lie with them."""

    info: CorpusInfo
    paths: dict[str, Path]
    beside: dict[str, Path]


def load_splits(
    source: str | PathLike[str],
    *,
    splits: Sequence[str] | None = None,
    name: str | None = None,
    format: str | None = None,
    natural_names: bool = False,
    language: str | None = None,
) -> dict[str, Corpus]:
    """All splits of a corpus folder, or those that are asked for; a file is one split.

    They share one inventory, that of the whole folder: where meta.json lists no types, the other splits are read
    for their labels, so that a type without a mention in this split is known as well.
    `natural_names` replaces labels such as "PER" by the words that meta.json has for them ("person"; Chinese
    corpora give them in two languages, "zh" and "en"); labels with the same words become one type.
    """
    info, paths, beside = _locate(source)
    for wanted in splits or ():
        _require(wanted, paths, source)
    documents = {split: tuple(read(paths[split], format)) for split in splits or paths}
    others = () if info.types else [path for split, path in beside.items() if split not in documents]
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
            fix = f"say which: {source}:{next(iter(paths))}"
            raise DataError(f"there are several splits ({', '.join(paths)}), one is needed", path=source, fix=fix)
        split = next(iter(paths))
    corpora = load_splits(
        source, splits=[split], name=name, format=format, natural_names=natural_names, language=language
    )
    return corpora[split]


def find_splits(source: str | PathLike[str]) -> dict[str, Path]:
    """The splits of a corpus and where they lie: train, dev and test first, then the others by name."""
    return _locate(source).paths


def read_info(source: str | PathLike[str]) -> CorpusInfo:
    """What the folder of a corpus says of itself (name, language, licence, ...), without reading its documents."""
    return _locate(source).info


def relabel(corpus: Corpus, mapping: Mapping[str, EntityType | None]) -> Corpus:
    """The corpus with other types: each of its labels becomes the type that `mapping` has for it.

    Labels with the same type are merged, and so are mentions that differed only in them; a label mapped to None
    is dropped with its mentions. In a document that says what is annotated, a merged type counts as complete
    only if all of its labels were (or if it has a mention): half of "person" is not all of it.
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
    """The labels that documents use or say to be annotated; no document is kept."""
    used: set[str] = set()
    for document in documents:
        used.update(document.labels, document.annotated or ())
    return used


def _labels_in(path: Path, format: str | None) -> set[str]:
    """The labels of a split that nobody asked for, so damage in it is no reason to stop."""
    try:
        return _labels(read(path, format))
    except OnomaError as error:
        logger.warning("the labels of another split cannot be read, so types may be missing: %s", error)
        return set()


def _locate(source: str | PathLike[str]) -> _Located:
    require_storage(source)
    path = Path(source)
    if path.is_dir():
        info = _read_meta(path)
        paths = _splits_in(path, info)
        return _Located(info, paths, paths)
    found = _as_file(path)
    if found is not None:
        split = _stem(found)
        if (path.parent / "meta.json").is_file():
            return _Located(_read_meta(path.parent), {split: found}, {})
        folder = found.absolute().parent.name
        return _Located(CorpusInfo(folder if split in USUAL_SPLITS and folder else split), {split: found}, {})
    folder_name, colon, split = str(source).rpartition(":")
    if colon and Path(folder_name).is_dir():
        whole = _locate(folder_name)
        _require(split, whole.paths, folder_name)
        return whole._replace(paths={split: whole.paths[split]})
    fix = "give a file, a corpus folder, or FOLDER:SPLIT for one split"
    raise DataError("there is no such file or folder", path=source, fix=fix)


def _require(split: str, paths: Mapping[str, Path], source: str | PathLike[str]) -> None:
    if split not in paths:
        raise DataError(f"there is no split {split!r}", path=source, fix=f"take one of: {', '.join(paths)}")


def _as_file(path: Path) -> Path | None:
    """The file itself, or the packed file that "train.jsonl" stands for."""
    candidates = (path, *(path.with_name(path.name + suffix) for suffix in COMPRESSIONS))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _splits_in(folder: Path, info: CorpusInfo) -> dict[str, Path]:
    if any(folder.glob("*.ann")):
        return {folder.absolute().name: folder}
    from onoma.config import is_model  # which reads and writes by the files beside this one

    if is_model(folder):
        raise DataError("the folder holds a model, not documents", path=folder, fix="give a corpus here")
    if info.role == "lexicon":
        raise DataError("the folder holds word lists, not documents", path=folder)
    splits: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if not _is_split(path):
            continue
        split = _stem(path)
        if split in splits:
            fix = "keep one of them, or name the file that you mean"
            raise DataError(f"{splits[split].name} and {path.name} are both split {split!r}", path=folder, fix=fix)
        splits[split] = path
    if not splits:
        fix = f"name files by their split, such as train.jsonl (known extensions: {' '.join(EXTENSIONS)})"
        raise DataError("the folder has no file of documents", path=folder, fix=fix)
    usual = [split for split in USUAL_SPLITS if split in splits]
    return {split: splits[split] for split in (*usual, *(split for split in splits if split not in usual))}


def _is_split(path: Path) -> bool:
    if path.name.startswith(".") or _stem(path).lower() in BESIDE_SPLITS:
        return False
    if path.is_dir():
        return any(path.glob("*.ann"))
    if plain_suffix(path) == ".txt" and _stem(path) not in USUAL_SPLITS:
        return _is_known(path)  # word lists and the like may lie beside the splits
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
    meta: dict[str, Any] = {}
    if path.is_file():
        with open_text(path) as file:
            meta = _parse_object(file.read(), path)
    for key, (kind, example) in META_FIELDS.items():
        if not isinstance(meta.get(key), kind | None):
            message = f"{key!r} must be {example}, got {shown(meta[key])}"
            raise DataError(message, path=path, fix="correct it, or leave it out")
    type_names = meta.get("type_names") or {}
    if not isinstance(type_names, dict) or not all(map(_is_natural_name, type_names.values())):
        fix = 'write "type_names": {"PER": "person"} or {"PER": {"zh": "人名", "en": "person"}}'
        raise DataError("'type_names' does not give each label a name", path=path, fix=fix)
    types = meta.get("types") or ()
    if not isinstance(types, (dict, list, tuple)) or not all(isinstance(label, str) for label in types):
        raise DataError("'types' is not a list of labels", path=path, fix='write "types": ["PER", "LOC"]')
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


def _is_natural_name(name: object) -> bool:
    names = name.values() if isinstance(name, dict) and name else (name,)
    return all(isinstance(one, str) and one.strip() for one in names)


def _parse_object(text: str, path: Path, line: int | None = None) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DataError(f"this is not valid JSON ({error})", path=path, line=line, fix="correct it there") from error
    if not isinstance(value, dict):
        raise DataError("this is no JSON object", path=path, line=line, fix="write {...}")
    return value


def _read_descriptions(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    descriptions: dict[str, str] = {}
    for number, line in read_lines(path):
        row = _parse_object(line, path, number) if line.strip() else {}
        name, description = row.get("name"), row.get("description")
        if isinstance(name, str) and isinstance(description, str):
            descriptions[name] = description
        elif row:
            fix = 'write {"name": "drug", "description": "a medicine or active substance"}'
            raise DataError("a line needs 'name' and 'description'", path=path, line=number, fix=fix)
    return descriptions
