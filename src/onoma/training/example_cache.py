"""Training examples kept on disk, so that runs that differ only in seed or options need not tokenise again."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from onoma.data.corpora import find_splits
from onoma.data.inventory import OWN_FOLDER
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.files import atomic_write_bytes
from onoma.inputs.tokenizer import WordTokenIds, WordTokenizer
from onoma.models.folder import open_folder
from onoma.training.corpora import evaluated_files, joint_types
from onoma.training.examples import Example, ExampleCounts, make_examples
from onoma.training.missing_labels import mask_repeated, train_corpora
from onoma.training.recipe import CorpusRecipe, Recipe, RelabelRecipe

T = TypeVar("T")

PROBE = "Ünïcode, don't WORRY: x-ray 3.5 中文字 \u00a0end"  # distinguishes tokenizers with the same vocabulary
FORMAT = 6  # of the files; files of other formats are not read


@dataclass(frozen=True, slots=True)
class PreparedData:
    """The training data of a recipe."""

    examples: list[Example]
    counts: ExampleCounts
    types: list[EntityType]
    corpora: list[str]  # names; `Example.corpus` counts into them


def prepare_data(
    recipe: Recipe, data: str | os.PathLike[str], tokenizer: WordTokenizer, cache: str | os.PathLike[str] | None = None
) -> PreparedData:
    """The examples of a recipe: from the cache if they are there and readable, else made and cached."""
    path = None if cache is None else Path(cache) / f"{_key(recipe, Path(data), tokenizer)}.npz"
    prepared = None if path is None else _read_if_whole(path)
    if prepared is None:
        prepared = _prepare(recipe, Path(data), tokenizer)
        if path is not None:
            _write(prepared, path)
    return _with_masks(prepared) if recipe.data.mask_repeated else prepared


def _prepare(recipe: Recipe, data: Path, tokenizer: WordTokenizer) -> PreparedData:
    corpora, changes = train_corpora(recipe, data)
    if not corpora:
        raise OnomaError("the recipe has no train data. Fix: name the 'train' split of a corpus in data.corpora")
    if not any(document.entities for corpus in corpora for document in corpus):
        raise OnomaError("the train data has no mentions, so there is nothing to learn")
    types = joint_types(corpora)
    examples, counts = make_examples(
        corpora,
        {one.name: number for number, one in enumerate(types)},
        tokenizer,
        max_tokens=recipe.max_tokens,
        overlap=recipe.overlap,
        drop_empty=recipe.data.drop_empty_windows,
    )
    if not examples:
        raise OnomaError(
            f"all {counts.mentions} mentions of the train data are longer than a window of {recipe.max_tokens} tokens, "
            "so there is nothing to learn. Fix: raise max_tokens, or label shorter mentions"
        )
    counts = replace(
        counts,
        simulated_missing=changes.dropped,
        added_mentions=changes.added,
        removed_mentions=changes.removed,
        excluded_documents=changes.excluded,
    )
    return PreparedData(examples, counts, types, [corpus.name for corpus in corpora])


def _with_masks(prepared: PreparedData) -> PreparedData:
    examples = mask_repeated(prepared.examples)
    masked = sum(len(one.masked) for one in examples if one.masked is not None)
    return replace(prepared, examples=examples, counts=replace(prepared.counts, masked_spans=masked))


def _key(recipe: Recipe, data: Path, tokenizer: WordTokenizer) -> str:
    """A digest of everything that the examples depend on."""
    shared = recipe.data.model_dump(include={"names", "language", "windows", "drop_empty_windows"})
    trained = [one for one in recipe.data.corpora if one.train is not None]
    parts: list[Any] = [FORMAT, shared, recipe.max_tokens, recipe.overlap]
    parts += [_corpus_key(one) for one in trained]
    if recipe.data.simulate_missing:
        parts += [recipe.data.simulate_missing, recipe.seed]
    if recipe.data.relabel is not None:
        parts += [recipe.data.relabel.model_dump(exclude={"model"}), _model_key(recipe.data.relabel)]
    evaluated: list[Path] = []
    if recipe.data.exclude_evaluated:
        parts.append("exclude_evaluated")
        evaluated = [path for one in recipe.data.corpora for path in evaluated_files(one, data)]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    vocabulary = sorted(tokenizer.tokenizer.get_vocab().items())
    digest.update(json.dumps([vocabulary, tokenizer.tokenizer.encode(PROBE).ids, tokenizer.word_shapes]).encode())
    files = [path for one in trained for path in _files(data, one)]
    for path in [*sorted(OWN_FOLDER.glob("*.yaml")), *files, *evaluated]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _model_key(settings: RelabelRecipe) -> str:
    """A digest of the files of a model."""
    folder, digest = open_folder(settings.model).path, hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _corpus_key(one: CorpusRecipe) -> dict[str, Any]:
    """The settings of a corpus that examples depend on; where its folder lies does not matter."""
    values = one.model_dump(exclude={"test", "weight", "dev_limit"})
    return values | {"path": Path(one.path).name if Path(one.path).is_absolute() else one.path}


def _files(data: Path, one: CorpusRecipe) -> list[Path]:
    """The files of a corpus that examples depend on: its train split, and names and descriptions of its types."""
    folder = data / one.path
    split = find_splits(folder).get(one.train or "")
    own = [split] if split is not None and Path(split).is_file() else []
    return [Path(path) for path in own] + [path for path in sorted(folder.glob("*")) if path.stem in ("meta", "types")]


def _write(prepared: PreparedData, path: Path) -> None:
    known = _Shared([id(one.known) for one in prepared.examples], [one.known for one in prepared.examples])
    texts = _Shared([id(one.text) for one in prepared.examples], [one.text for one in prepared.examples])
    about = {
        "counts": asdict(prepared.counts),
        "corpora": prepared.corpora,
        "types": [[one.name, one.description, list(one.examples)] for one in prepared.types],
        "texts": texts.values,
    }
    stored: dict[str, Any] = {
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        "corpus": np.array([example.corpus for example in prepared.examples], np.int32),
        "complete": np.array([example.complete for example in prepared.examples], np.bool_),
        "known": known.places,
        "text": texts.places,
        **_joined("ids", [example.tokens.ids for example in prepared.examples]),
        **_joined("counts", [example.tokens.counts for example in prepared.examples]),
        **_joined("gold", [example.gold.ravel() for example in prepared.examples]),
        **_joined("words", [example.words.ravel() for example in prepared.examples]),
        **_joined("sets", known.values),
    }
    with atomic_write_bytes(path) as file:
        np.savez_compressed(file, **stored)


class _Shared:
    """Values of which many are the same object: each once, and the place of each."""

    def __init__(self, identities: Sequence[int], values: Sequence[Any]) -> None:
        places: dict[int, int] = {}
        self.values: list[Any] = []
        for identity, value in zip(identities, values, strict=True):
            if identity not in places:
                places[identity] = len(self.values)
                self.values.append(value)
        self.places = np.array([places[identity] for identity in identities], np.int32)


def _joined(name: str, parts: Sequence[NDArray[Any]]) -> dict[str, NDArray[np.int32]]:
    """Arrays concatenated, and the end of each."""
    return {
        name: np.concatenate([np.zeros(0, np.int32), *parts]).astype(np.int32),
        f"{name}_ends": np.cumsum([len(part) for part in parts]).astype(np.int64),
    }


def _read_if_whole(path: Path) -> PreparedData | None:
    """What a file of the cache holds; None if it is missing or damaged, so that it is written again."""
    try:
        return _read(path)
    except (OSError, ValueError, LookupError, TypeError, EOFError, BadZipFile, zlib.error):
        return None


def _read(path: Path) -> PreparedData:
    with np.load(path, allow_pickle=False) as file:
        stored = {name: file[name] for name in file.files}
    about = json.loads(stored["about"].tobytes())
    ids, counts, gold, words, sets = (_split(stored, name) for name in ("ids", "counts", "gold", "words", "sets"))
    sets = [one.astype(np.int64) for one in sets]
    numbers = (stored[name].tolist() for name in ("known", "corpus", "text", "complete"))
    examples = [
        Example(
            WordTokenIds(i, c),
            g.astype(np.int64).reshape(-1, 3),
            sets[k],
            corpus,
            about["texts"][t],
            w.reshape(-1, 2),
            complete=complete,
        )
        for i, c, g, w, k, corpus, t, complete in zip(ids, counts, gold, words, *numbers, strict=True)
    ]
    types = [EntityType(name, description, tuple(shown)) for name, description, shown in about["types"]]
    return PreparedData(examples, ExampleCounts(**about["counts"]), types, about["corpora"])


def _split(stored: dict[str, NDArray[Any]], name: str) -> list[NDArray[np.int32]]:
    edges = [0, *stored[f"{name}_ends"].tolist()]
    return [stored[name][start:end] for start, end in pairwise(edges)]
