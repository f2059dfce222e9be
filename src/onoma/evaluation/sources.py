"""The corpora of a report: where they come from, and names that tell them apart."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onoma.data.corpora import find_splits
from onoma.entities import Corpus
from onoma.errors import OnomaError
from onoma.evaluation.runs import AnyPath, Names, choose_split, open_corpus, require_mentions


@dataclass(frozen=True, slots=True)
class Source:
    """A corpus, the name by which a report calls it, and where it comes from, if it was read from a file."""

    corpus: Corpus = field(repr=False)
    name: str
    path: str = ""
    split: str = ""


def open_source(
    path: AnyPath,
    split: str | None = None,
    *,
    names: Names = "natural",
    language: str | None = None,
    limit: int | None = None,
) -> Source:
    """Open one split of a corpus; the arguments are those of `open_corpus`."""
    splits = find_splits(path)
    chosen = choose_split(splits, split)
    corpus = open_corpus(path, chosen, names=names, language=language, limit=limit)
    return Source(corpus, corpus.name, str(path), chosen or next(iter(splits)))


def as_sources(corpora: Sequence[Source | Corpus | AnyPath]) -> list[Source]:
    """Corpora, given as such or by path, with different names; an error if one is repeated or has no gold mentions."""
    if isinstance(corpora, (str, os.PathLike, Corpus, Source)):
        raise OnomaError("corpora must be a list. Fix: give [corpus].")
    sources = [_as_source(one) for one in corpora]
    if not sources:
        raise OnomaError("no corpus is given. Fix: give at least one corpus with gold mentions.")
    for number, source in enumerate(sources):
        require_mentions(source.corpus)
        if any(_is_same(source, other) for other in sources[:number]):
            raise OnomaError(f"the corpus {source.path or source.name} is given twice. Fix: give each corpus once.")
    return _with_distinct_names(sources)


def _as_source(corpus: Source | Corpus | AnyPath) -> Source:
    if isinstance(corpus, Source):
        return corpus
    if isinstance(corpus, Corpus):
        return Source(corpus, corpus.name)
    if isinstance(corpus, (str, os.PathLike)):
        return open_source(corpus)
    raise OnomaError(f"a corpus must be a Corpus or a path, got {type(corpus).__name__}")


def _is_same(first: Source, second: Source) -> bool:
    if first.path and second.path:
        return _file(first) == _file(second)
    return first.corpus is second.corpus


def _file(source: Source) -> Path:
    splits = find_splits(source.path)
    return splits[source.split].resolve()


def _with_distinct_names(sources: Sequence[Source]) -> list[Source]:
    """Equal names get the split; if they are still equal, the path; if there is none, a number."""
    for change in (_name_split, _name_path, _name_number):
        known = Counter(one.name for one in sources)
        sources = [change(one, place) if known[one.name] > 1 else one for place, one in enumerate(sources, 1)]
    return list(sources)


def _name_split(source: Source, place: int) -> Source:
    return replace(source, name=f"{source.name}:{source.split}") if source.split else source


def _name_path(source: Source, place: int) -> Source:
    return replace(source, name=f"{source.path} ({source.split})") if source.path else source


def _name_number(source: Source, place: int) -> Source:
    return replace(source, name=f"{source.name} ({place})")
