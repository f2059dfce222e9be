"""Loading the corpora of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from onoma.data.corpora import find_splits, load_corpus
from onoma.data.formats import read
from onoma.data.inventory import Inventory
from onoma.data.joining import join_documents
from onoma.data.subsets import split
from onoma.entities import Corpus, EntityType
from onoma.errors import DataError, OnomaError
from onoma.training.recipe import CorpusRecipe, DataRecipe


def load_part(recipe: DataRecipe, root: Path, part: str) -> list[Corpus]:
    """One part (train, dev or test) of each corpus of a recipe; corpora without it are left out."""
    loaded = [_load_one(one, recipe, root, part) for one in recipe.corpora]
    return [corpus for corpus in loaded if corpus is not None and (len(corpus) or part == "train")]


def _load_one(one: CorpusRecipe, recipe: DataRecipe, root: Path, part: str) -> Corpus | None:
    source, wanted, names = root / one.path, getattr(one, part), one.names or recipe.names
    if wanted is None:
        return None
    present = find_splits(source)
    cut_dev = one.dev is not None and one.dev not in present and one.train is not None
    if part == "train" and wanted not in present:
        fix = "name the split as 'train' of this corpus, or write 'train: null' to use it for evaluation only"
        raise DataError(f"there is no split {wanted!r}", path=source, fix=fix)
    if wanted not in present and not (part == "dev" and cut_dev):
        return None
    stored = one.train if part == "dev" and cut_dev else wanted
    corpus = load_corpus(source, stored, natural_names=names == "natural", language=recipe.language)
    if cut_dev and part != "test":
        corpus = split(corpus, {"train": 1 - one.dev_share, "dev": one.dev_share}, seed=0)[part]
    corpus = _limited(corpus, {"train": one.limit, "dev": one.dev_limit}.get(part), one.sample_seed)
    if one.annotation == "by_cooccurrence" and part == "train":
        corpus = restrict_annotation(corpus)
    if names == "inventory":
        inventory = Inventory.load()
        if corpus.name in inventory.corpora:  # other corpora name and describe their own types
            corpus = inventory.unify(corpus, language="zh" if recipe.language == "zh" else "en")
    return with_broader_types(corpus, one.broader_types) if part == "train" else corpus


def without_evaluated(corpora: Sequence[Corpus], recipe: DataRecipe, root: Path) -> list[Corpus]:
    """The train data without documents whose text is in a dev or test split of the recipe.

    Of a corpus that is only evaluated, all splits count. Case and white space make no difference.
    """
    paths = [path for one in recipe.corpora for path in evaluated_files(one, root)]
    evaluated = {_folded(document.text) for path in paths for document in read(path)}
    kept = [[one for one in corpus if _folded(one.text) not in evaluated] for corpus in corpora]
    return [replace(corpus, documents=documents) for corpus, documents in zip(corpora, kept, strict=True)]


def evaluated_files(one: CorpusRecipe, root: Path) -> list[Path]:
    """The dev and test splits of a corpus; all splits if it is only evaluated."""
    splits = find_splits(root / one.path)
    return [Path(path) for name, path in splits.items() if one.train is None or name in (one.dev, one.test)]


def _folded(text: str) -> str:
    return "".join(text.casefold().split())


def with_broader_types(corpus: Corpus, broader: Mapping[str, Sequence[str]]) -> Corpus:
    """The corpus in which mentions of narrow types are mentions of a broader type as well."""
    if not broader:
        return corpus
    above: dict[str, list[str]] = {}
    for broad, narrower in broader.items():
        for narrow in narrower:
            above.setdefault(narrow, []).append(broad)
    unknown = sorted(above.keys() - set(corpus.labels))
    if unknown:
        raise OnomaError(
            f"corpus {corpus.name!r} has no type {unknown[0]!r}. Fix: correct 'broader_types' in the recipe"
        )
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


def restrict_annotation(corpus: Corpus) -> Corpus:
    """The corpus with `annotated` restricted to types that occur together with those of the document.

    In a corpus of dialogues about many services, each utterance is annotated for its own service only: a city in an
    utterance about films has no annotation. So the types that count as annotated in a document are those that occur
    together with all of its own types somewhere in the corpus; in a document without mentions, none.
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
    """Random documents of a corpus, in their order."""
    if limit is None or limit >= len(corpus):
        return corpus
    chosen = np.sort(np.random.default_rng(sample).permutation(len(corpus))[:limit])
    return replace(corpus, documents=[corpus.documents[i] for i in chosen])


def join_for_windows(corpus: Corpus, recipe: DataRecipe) -> Corpus:
    """The corpus as it is cut into windows: neighbouring sentences joined, or each sentence by itself."""
    return join_documents(corpus) if recipe.windows == "across" else corpus


def joint_types(corpora: Sequence[Corpus]) -> list[EntityType]:
    """The types of all corpora, each once; one with a description is preferred to one without."""
    types: dict[str, EntityType] = {}
    for corpus in corpora:
        for one in corpus.types:
            if one.name not in types or (one.description and not types[one.name].description):
                types[one.name] = one
    return list(types.values())
