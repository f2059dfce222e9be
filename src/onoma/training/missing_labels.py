"""Training data with missing labels: dropped on purpose, completed by a trained model, or masked where likely."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Corpus, Document, Entity
from onoma.evaluation.runs import predict
from onoma.extractor import Extractor, load
from onoma.training.corpora import join_for_windows, load_part, without_evaluated
from onoma.training.examples import Example
from onoma.training.progress import progress_bar
from onoma.training.recipe import KeptLabels, Recipe, RelabelRecipe

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]

_BASE = np.uint64(0x9E3779B97F4A7C15)  # of the hashes of word sequences; odd, and without small factors in 2^64


@dataclass(frozen=True, slots=True)
class LabelChanges:
    """How many mentions were dropped on purpose, and added and removed by a model; how many documents were left out."""

    dropped: int = 0
    added: int = 0
    removed: int = 0
    excluded: int = 0


@dataclass(frozen=True, slots=True)
class Relabelled:
    """A corpus with other labels than before."""

    corpus: Corpus
    added: int = 0  # mentions
    removed: int = 0  # mentions


def train_corpora(recipe: Recipe, data: Path) -> tuple[list[Corpus], LabelChanges]:
    """The train data of a recipe, joined for windows, with the labels that are trained on."""
    settings = recipe.data
    loaded = load_part(settings, data, "train")
    chosen = without_evaluated(loaded, settings, data) if settings.exclude_evaluated else loaded
    excluded = sum(map(len, loaded)) - sum(map(len, chosen))
    parts = [Relabelled(corpus) for corpus in chosen]
    if settings.simulate_missing:
        rate = settings.simulate_missing
        parts = [drop_mentions(one.corpus, rate, (recipe.seed, number)) for number, one in enumerate(parts)]
    dropped = sum(one.removed for one in parts)
    corpora = [join_for_windows(one.corpus, settings) for one in parts]
    if settings.relabel is None:
        return corpora, LabelChanges(dropped, excluded=excluded)
    model = load(settings.relabel.model)
    parts = [_relabel_with_progress(corpus, model, settings.relabel) for corpus in corpora]
    changes = LabelChanges(dropped, sum(one.added for one in parts), sum(one.removed for one in parts), excluded)
    return [one.corpus for one in parts], changes


def _relabel_with_progress(corpus: Corpus, model: Extractor, settings: RelabelRecipe) -> Relabelled:
    with progress_bar(f"labelling {corpus.name} with {settings.model}", len(corpus)) as update:
        return relabel(corpus, model, settings.threshold, settings.keep, update)


def drop_mentions(corpus: Corpus, rate: float, seed: int | Sequence[int]) -> Relabelled:
    """The corpus without a random share of its mentions; types that share a span are dropped together.

    Every mention has a random number, which depends on the seed alone, and those below `rate` are dropped: what a lower
    rate drops, a higher one drops as well.
    """
    generator = np.random.default_rng(seed)
    documents, removed = [], 0
    for document in corpus:
        spans = sorted({(one.start, one.end) for one in document.entities})
        chances = generator.random(len(spans)).tolist()
        dropped = {span for span, chance in zip(spans, chances, strict=True) if chance < rate}
        kept = tuple(one for one in document.entities if (one.start, one.end) not in dropped)
        removed += len(document.entities) - len(kept)
        documents.append(replace(document, entities=kept))
    return Relabelled(replace(corpus, documents=documents), removed=removed)


def relabel(
    corpus: Corpus,
    model: Extractor,
    threshold: float,
    keep: KeptLabels = "all",
    on_progress: Callable[[int], None] = lambda documents: None,
) -> Relabelled:
    """The corpus with the predictions of a model that reach a threshold as labels.

    A prediction is added if it overlaps none of the labels that stay. These are "all" of the labels; or all
    "unless_contradicted" by a prediction that overlaps them where the model does not predict the label itself; or
    "none". `on_progress` gets the number of documents done so far.
    """
    documents, added, removed = [], 0, 0
    predicted = predict(model, corpus, threshold=threshold)
    for number, (document, found) in enumerate(zip(corpus, predicted, strict=True), start=1):
        known = [one for one in found if document.annotated is None or one.label in document.annotated]
        kept = _kept(document, known, keep)
        new = _without_overlap(known, kept, len(document.text))
        before, after = ({one.key for one in entities} for entities in (document.entities, (*kept, *new)))
        added, removed = added + len(after - before), removed + len(before - after)
        documents.append(replace(document, entities=(*kept, *new)))
        on_progress(number)
    return Relabelled(replace(corpus, documents=documents), added, removed)


def _kept(document: Document, predicted: Sequence[Entity], keep: KeptLabels) -> list[Entity]:
    """The labels of a document that stay."""
    if keep == "none":
        return []
    labels, agreed = list(document.entities), {one.key for one in predicted}
    if keep == "all":
        return labels
    contradicted = _overlaps(labels, predicted, len(document.text))
    return [one for one, other in zip(labels, contradicted, strict=True) if one.key in agreed or not other]


def _without_overlap(entities: Sequence[Entity], others: Iterable[Entity], length: int) -> list[Entity]:
    return [one for one, taken in zip(entities, _overlaps(entities, others, length), strict=True) if not taken]


def _overlaps(entities: Iterable[Entity], others: Iterable[Entity], length: int) -> list[bool]:
    """Whether each entity overlaps any of the others, in a text of `length` characters."""
    edges, own = (np.array([(e.start, e.end) for e in part], np.int64).reshape(-1, 2) for part in (others, entities))
    before = np.concatenate([[0], np.cumsum(_covered(edges, length))])  # covered characters before each place
    flags: list[bool] = (before[own[:, 1]] > before[own[:, 0]]).tolist()
    return flags


def _covered(spans: Integers, length: int) -> Booleans:
    """The places inside spans, given by start and end."""
    change = np.zeros(length + 1, np.int64)
    np.add.at(change, spans[:, 0], 1)
    np.add.at(change, spans[:, 1], -1)
    return np.asarray(np.cumsum(change)[:-1] > 0)


def mask_repeated(examples: Sequence[Example]) -> list[Example]:
    """The examples with `masked`: spans without a label whose words are labelled elsewhere in the examples.

    Spans that overlap a mention are not masked: "York" in "New York" is no missed mention.
    """
    words = _WordTable(examples)
    gold = np.concatenate([one.gold[:, :2] + start for one, start in zip(examples, words.starts.tolist(), strict=True)])
    inside = np.concatenate([[0], np.cumsum(_covered(gold + np.array([0, 1]), len(words.numbers)))])
    found = [np.zeros((0, 2), np.int64)]
    for width, first in words.repetitions(gold):
        free = inside[first + width] == inside[first]
        found.append(np.stack([first[free], first[free] + width - 1], axis=1))
    spans = np.concatenate(found)
    spans = spans[np.lexsort((spans[:, 1], spans[:, 0]))]
    edges = np.searchsorted(spans[:, 0], [*words.starts.tolist(), len(words.numbers)])
    return [
        replace(one, masked=spans[edges[place] : edges[place + 1]] - words.starts[place])
        for place, one in enumerate(examples)
    ]


class _WordTable:
    """The words of all examples in one sequence, as numbers; equal words have equal numbers."""

    def __init__(self, examples: Sequence[Example]) -> None:
        counts = [len(one.words) for one in examples]
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        self.example = np.repeat(np.arange(len(examples)), counts)
        numbers: dict[str, int] = {}
        texts = (one.text[start:end] for one in examples for start, end in one.words.tolist())
        self.numbers = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.uint64)

    def repetitions(self, spans: Integers) -> Iterable[tuple[int, Integers]]:
        """For each width of the spans (first, last), the first words of all sequences with the words of such a span."""
        widths = spans[:, 1] - spans[:, 0] + 1
        hashes = self.numbers[:0]
        for width in range(1, int(widths.max(initial=0)) + 1):
            following = self.numbers[width - 1 :] + np.uint64(1)
            hashes = following if width == 1 else hashes[:-1] * _BASE + following
            own = spans[widths == width, 0]
            if len(own):
                same = np.isin(hashes, hashes[own])
                same &= self.example[: len(hashes)] == self.example[width - 1 :]
                yield width, np.flatnonzero(same)
