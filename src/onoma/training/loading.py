"""The corpora of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from onoma.data import Inventory, load_corpus, split
from onoma.data.corpora import find_splits
from onoma.data.packing import pack
from onoma.entities import Corpus, EntityType
from onoma.errors import DataError, OnomaError
from onoma.training.recipe import CorpusRecipe, DataRecipe


def load_part(recipe: DataRecipe, root: Path, part: str) -> list[Corpus]:
    """One part (train, dev or test) of every corpus of a recipe; corpora without it are left out."""
    loaded = [_load_one(one, recipe, root, part) for one in recipe.corpora]
    return [corpus for corpus in loaded if corpus is not None and (len(corpus) or part == "train")]


def _load_one(one: CorpusRecipe, recipe: DataRecipe, root: Path, part: str) -> Corpus | None:
    source, wanted, names = root / one.path, getattr(one, part), one.names or recipe.names
    if wanted is None:
        return None
    present = find_splits(source)
    cut_dev = one.dev is not None and one.dev not in present and one.train is not None
    if part == "train" and wanted not in present:
        fix = "name the split as 'train' of this corpus, or write 'train: null' to only measure on it"
        raise DataError(f"there is no split {wanted!r}", path=source, fix=fix)
    if wanted not in present and not (part == "dev" and cut_dev):
        return None
    stored = one.train if part == "dev" and cut_dev else wanted
    corpus = load_corpus(source, stored, natural_names=names == "natural", language=recipe.language)
    if cut_dev and part != "test":
        corpus = split(corpus, {"train": 1 - one.dev_share, "dev": one.dev_share}, seed=0)[part]
    corpus = _limited(corpus, {"train": one.limit, "dev": one.dev_limit}.get(part), one.sample)
    if one.known == "together" and part == "train":
        corpus = partly_known(corpus)
    inventory = Inventory.load()
    if names == "inventory" and corpus.name in inventory.corpora:  # others name and describe their types themselves
        corpus = inventory.unify(corpus, language="zh" if recipe.language == "zh" else "en")
    return with_broader(corpus, one.broader) if part == "train" else corpus


def with_broader(corpus: Corpus, broader: Mapping[str, Sequence[str]]) -> Corpus:
    """The corpus where mentions of narrow types are mentions of a broader one as well."""
    if not broader:
        return corpus
    above: dict[str, list[str]] = {}
    for broad, narrower in broader.items():
        for narrow in narrower:
            above.setdefault(narrow, []).append(broad)
    unknown = sorted(above.keys() - set(corpus.labels))
    if unknown:
        raise OnomaError(f"corpus {corpus.name!r} has no type {unknown[0]!r}: mend 'broader' in the recipe")
    documents = []
    for document in corpus:
        more = {replace(one, label=broad) for one in document.entities for broad in above.get(one.label, ())}
        annotated = document.annotated
        if annotated is not None:
            annotated |= {broad for broad, narrower in broader.items() if annotated.issuperset(narrower)}
            more = {one for one in more if one.label in annotated}
        documents.append(replace(document, entities=(*{*document.entities, *more},), annotated=annotated))
    described = {**Inventory.load().types, **{one.name: one for one in corpus.types}}
    new = [EntityType(name, getattr(described.get(name), "description", "")) for name in broader]
    types = (*corpus.types, *(one for one in new if one.name not in corpus.labels))
    return replace(corpus, documents=documents, types=types)


def partly_known(corpus: Corpus) -> Corpus:
    """The corpus for training, where a document tells only of types that go together with those that it has.

    In a corpus of dialogues about many services, each utterance is annotated for its own service alone: a city may
    well stand in one about films, without a mark. So the types that are known of a document are those that stand
    together with all of its own somewhere in the corpus; nothing is known of a document without mentions.
    """
    together: dict[str, set[str]] = {}
    present = [{entity.label for entity in document.entities} for document in corpus]
    for labels in present:
        for label in labels:
            together.setdefault(label, set()).update(labels)
    documents = []
    for document, labels in zip(corpus, present, strict=True):
        known = set.intersection(*(together[label] for label in labels)) if labels else set()
        if document.annotated is not None:
            known &= document.annotated
        documents.append(replace(document, annotated=frozenset(known)))
    return replace(corpus, documents=documents)


def _limited(corpus: Corpus, limit: int | None, sample: int) -> Corpus:
    """Some documents of a corpus, in their order."""
    if limit is None or limit >= len(corpus):
        return corpus
    chosen = np.sort(np.random.default_rng(sample).permutation(len(corpus))[:limit])
    return replace(corpus, documents=[corpus.documents[i] for i in chosen])


def packed(corpus: Corpus, recipe: DataRecipe) -> Corpus:
    """The corpus as it is cut into windows: across sentences, or each sentence by itself."""
    return pack(corpus) if recipe.windows == "across" else corpus


def joint_types(corpora: Sequence[Corpus]) -> list[EntityType]:
    """The types of all corpora, each once; a description wins over none."""
    types: dict[str, EntityType] = {}
    for corpus in corpora:
        for one in corpus.types:
            if one.name not in types or (one.description and not types[one.name].description):
                types[one.name] = one
    return list(types.values())
