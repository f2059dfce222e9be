"""Training examples kept on disk, so that runs which differ only in seed or options need not tokenise again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onoma.data.corpora import find_splits
from onoma.data.inventory import OURS
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.subwords import Pieces, Subwords
from onoma.training.examples import Example, ExampleCounts, make_examples
from onoma.training.loading import joint_types, load_part, packed
from onoma.training.recipe import CorpusRecipe, Recipe

PROBE = "Ünïcode, don't WORRY: x-ray 3.5 中文字 \u00a0end"  # tells tokenizers apart that have the same vocabulary
FORM = 1  # of the files; another number, and old ones are not read


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a recipe trains on."""

    examples: list[Example]
    counts: ExampleCounts
    types: list[EntityType]
    corpora: list[str]  # names; examples count into them


def training_data(
    recipe: Recipe, data: str | os.PathLike[str], subwords: Subwords, cache: str | os.PathLike[str] | None = None
) -> TrainingData:
    """The examples of a recipe: from the cache if they are there, else made, and put there."""
    path = None if cache is None else Path(cache) / f"{_key(recipe, Path(data), subwords)}.npz"
    if path is not None and path.is_file():
        return _read(path)
    made = _make(recipe, Path(data), subwords)
    if path is not None:
        _write(made, path)
    return made


def _make(recipe: Recipe, data: Path, subwords: Subwords) -> TrainingData:
    corpora = load_part(recipe.data, data, "train")
    if not corpora:
        raise OnomaError("the recipe has no train data: name the 'train' split of a corpus in data.corpora")
    if not any(document.entities for corpus in corpora for document in corpus):
        raise OnomaError("the train data has no mention: there is nothing to learn")
    types = joint_types(corpora)
    examples, counts = make_examples(
        [packed(corpus, recipe.data) for corpus in corpora],
        {one.name: number for number, one in enumerate(types)},
        subwords,
        max_tokens=recipe.max_tokens,
        overlap=recipe.overlap,
        drop_empty=recipe.data.drop_empty,
    )
    return TrainingData(examples, counts, types, [corpus.name for corpus in corpora])


def _key(recipe: Recipe, data: Path, subwords: Subwords) -> str:
    """What the examples depend on, as a name."""
    shared = recipe.data.model_dump(include={"names", "language", "windows", "drop_empty"})
    trained = [one for one in recipe.data.corpora if one.train is not None]
    parts: list[Any] = [FORM, shared, recipe.max_tokens, recipe.overlap]
    parts += [_told(one) for one in trained]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    vocabulary = sorted(subwords.tokenizer.get_vocab().items())
    digest.update(json.dumps([vocabulary, subwords.tokenizer.encode(PROBE).ids]).encode())
    for path in [*sorted(OURS.glob("*.yaml")), *(path for one in trained for path in _files(data, one))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _told(one: CorpusRecipe) -> dict[str, Any]:
    """What a recipe says of a corpus, as far as examples depend on it; where a folder lies does not matter."""
    values = one.model_dump(exclude={"test", "share", "dev_limit"} | (set() if one.broader else {"broader"}))
    return values | {"path": Path(one.path).name if Path(one.path).is_absolute() else one.path}


def _files(data: Path, one: CorpusRecipe) -> list[Path]:
    """What is read of a corpus: its train split, and what names and describes its types."""
    folder = data / one.path
    split = find_splits(folder).get(one.train or "")
    own = [split] if split is not None and Path(split).is_file() else []
    return [Path(path) for path in own] + [path for path in sorted(folder.glob("*")) if path.stem in ("meta", "types")]


def _write(made: TrainingData, path: Path) -> None:
    known: dict[int, int] = {}  # examples of a corpus mostly share one array
    arrays: list[NDArray[np.int64]] = []
    for example in made.examples:
        if id(example.known) not in known:
            known[id(example.known)] = len(arrays)
            arrays.append(example.known)
    about = {
        "counts": asdict(made.counts),
        "corpora": made.corpora,
        "types": [[one.name, one.description, list(one.examples)] for one in made.types],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.partial")
    stored: dict[str, Any] = {
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        "corpus": np.array([example.corpus for example in made.examples], np.int32),
        "known": np.array([known[id(example.known)] for example in made.examples], np.int32),
        **_joined("ids", [example.pieces.ids for example in made.examples]),
        **_joined("counts", [example.pieces.counts for example in made.examples]),
        **_joined("gold", [example.gold.ravel() for example in made.examples]),
        **_joined("sets", arrays),
    }
    with open(temporary, "wb") as file:
        np.savez_compressed(file, **stored)
    temporary.replace(path)


def _joined(name: str, parts: Sequence[NDArray[Any]]) -> dict[str, NDArray[np.int32]]:
    """Arrays in a row, and where each ends."""
    return {
        name: np.concatenate([np.zeros(0, np.int32), *parts]).astype(np.int32),
        f"{name}_ends": np.cumsum([len(part) for part in parts]).astype(np.int32),
    }


def _read(path: Path) -> TrainingData:
    with np.load(path, allow_pickle=False) as file:
        stored = {name: file[name] for name in file.files}
    about = json.loads(stored["about"].tobytes())
    ids, counts, gold, sets = (_split(stored, name) for name in ("ids", "counts", "gold", "sets"))
    sets = [one.astype(np.int64) for one in sets]
    rows = zip(ids, counts, gold, stored["known"].tolist(), stored["corpus"].tolist(), strict=True)
    return TrainingData(
        [Example(Pieces(i, c), g.astype(np.int64).reshape(-1, 3), sets[k], corpus) for i, c, g, k, corpus in rows],
        ExampleCounts(**about["counts"]),
        [EntityType(name, description, tuple(examples)) for name, description, examples in about["types"]],
        about["corpora"],
    )


def _split(stored: dict[str, NDArray[Any]], name: str) -> list[NDArray[np.int32]]:
    edges = [0, *stored[f"{name}_ends"].tolist()]
    return [stored[name][begin:end] for begin, end in pairwise(edges)]
