"""Running a model on a corpus and scoring its predictions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onoma.data.corpora import find_splits, load_corpus
from onoma.data.formats import read
from onoma.data.inventory import Inventory
from onoma.decoding.overlap import Overlap
from onoma.entities import SHOWN_TYPES, Corpus, Entity
from onoma.errors import DataError, OnomaError
from onoma.evaluation.candidates import usual_overlap
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.errors import MentionError, find_errors
from onoma.evaluation.render import render
from onoma.evaluation.report import Report, as_plain, evaluate_comparison
from onoma.extractor import Extractor, load
from onoma.labels.parsing import Threshold
from onoma.systems.base import Backend

if TYPE_CHECKING:
    from rich.console import RenderableType

AnyPath = str | os.PathLike[str]
Names = Literal["natural", "inventory", "labels"]

DEV_SPLITS = ("dev", "valid", "validation")


@dataclass(frozen=True, slots=True)
class Run:
    """The scores of a model on a corpus and the time it took, which is None for predictions from a file.

    `counts` is what the model counted meanwhile, such as damaged answers of a generator; most models count nothing.
    """

    report: Report
    predicted: Sequence[Sequence[Entity]]
    overlap: Overlap | None = None
    seconds: float | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[MentionError] = ()  # examples

    @property
    def documents_per_second(self) -> float | None:
        """Documents per second (sentences, if the documents of the corpus are sentences)."""
        return self.report.documents / self.seconds if self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        speed = {"seconds": self.seconds, "documents_per_second": self.documents_per_second}
        errors = {"errors": as_plain(list(self.errors))} if self.errors else {}
        return {**self.report.to_dict(), "overlap": self.overlap, **speed, "counts": dict(self.counts), **errors}


def render_run(run: Run) -> RenderableType:
    """The report and the speed, for a rich console."""
    from rich.console import Group

    if not run.seconds:
        return render(run.report, run.errors)
    speed = f"{run.overlap} mentions, {run.seconds:.1f} s: {run.documents_per_second:,.1f} documents/s"
    counted = ", ".join(f"{name} {count:,}" for name, count in run.counts.items())
    return Group(render(run.report, run.errors), *([f"counted by the model: {counted}"] if counted else []), speed)


def evaluate(
    model: Extractor | AnyPath,
    corpus: Corpus | AnyPath,
    *,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
) -> Report:
    """Extract all types of a corpus, given by name and description, with a model, and score the predictions.

    A model and a corpus may be given as paths. Of a corpus folder with several splits, the test split is used, with the
    natural names of types if its meta.json has them. If the model was trained to annotate in the style of this corpus,
    it is used in this style.

    >>> onoma.evaluate("runs/drugs", "data/drugs").strict.micro.f1  # doctest: +SKIP
    0.87
    """
    extractor = as_extractor(model)
    corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
    return run(extractor, corpus, threshold=threshold, overlap=overlap, batch_size=batch_size).report


def as_extractor(model: Extractor | AnyPath) -> Extractor:
    """A model, which may be given by folder, hub name, or as "embedded"."""
    if isinstance(model, Extractor):
        return model
    if not isinstance(model, (str, os.PathLike)):
        raise OnomaError(f"a model must be an Extractor or a path, got {type(model).__name__}. Fix: onoma.load(...)")
    return load(model)


def require_mentions(corpus: Corpus) -> None:
    """Raise an error if there are no gold mentions to compare predictions with."""
    fix = "Fix: give documents with gold mentions; to extract without them, use onoma extract."
    if not len(corpus):
        raise OnomaError(f"corpus {corpus.name!r} has no documents. {fix}")
    if not any(document.entities for document in corpus):
        raise OnomaError(f"corpus {corpus.name!r} has no gold mentions. {fix}")


def run(
    model: Extractor,
    corpus: Corpus,
    *,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    training: Corpus | None = None,
    errors: int = 0,
    on_progress: Callable[[int], None] = lambda documents: None,
) -> Run:
    """Like `evaluate`, but also measure the time; `on_progress` gets the number of documents done so far.

    With `training`, there are scores by occurrence in these data; `errors` is the number of examples of errors.
    """
    if not len(corpus) or not corpus.types:  # with types, precision can be measured without gold mentions
        require_mentions(corpus)
    overlap = overlap or usual_overlap(corpus)
    start, before = time.perf_counter(), model.counts()
    predicted = []
    for entities in predict(model, corpus, threshold=threshold, overlap=overlap, batch_size=batch_size):
        predicted.append(entities)
        on_progress(len(predicted))
    seconds = time.perf_counter() - start
    counts = {name: count - before.get(name, 0) for name, count in model.counts().items()}
    return replace(_score(corpus, predicted, training, errors), overlap=overlap, seconds=seconds, counts=counts)


def _score(corpus: Corpus, predicted: Sequence[Sequence[Entity]], training: Corpus | None, errors: int) -> Run:
    comparison = Comparison.between(corpus, predicted)
    report = evaluate_comparison(comparison, training=training)
    return Run(report, predicted, errors=find_errors(comparison, predicted, errors) if errors else ())


def predict(
    model: Extractor,
    corpus: Corpus,
    *,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
) -> Iterator[list[Entity]]:
    """The entities of each document: all types of the corpus are asked for, in its style if the model knows it."""
    model = model.with_style(corpus.name) if corpus.name in model.styles else model
    texts, overlap = (document.text for document in corpus), overlap or usual_overlap(corpus)
    return model.stream(texts, corpus.types, threshold=threshold, overlap=overlap, batch_size=batch_size)


def open_corpus(
    source: AnyPath,
    split: str | None = None,
    *,
    usual: Sequence[str] = ("test",),
    names: Names = "natural",
    language: str | None = None,
    limit: int | None = None,
) -> Corpus:
    """One split of a corpus, by default the first of the `usual` splits that exists.

    Args:
        names: how types are named: "natural" (the names in meta.json, if it has any), "inventory" (the names and
            descriptions in Onoma's inventory) or "labels" (the labels of the file).
        language: the language of natural names or of the inventory.
        limit: the maximum number of documents.
    """
    split = choose_split(find_splits(source), split, usual)
    corpus = load_corpus(source, split, natural_names=names == "natural", language=language)
    if names == "inventory":
        corpus = Inventory.load().unify(corpus, language="zh" if language == "zh" else "en")
    return corpus if limit is None else Corpus(corpus.name, tuple(islice(corpus, limit)), corpus.types)


def choose_split(splits: Mapping[str, Path], split: str | None, usual: Sequence[str] = ("test",)) -> str | None:
    """The split that was named, or the first of the usual ones; None if there is no choice, or none of them."""
    if split is None and len(splits) > 1:
        return next((name for name in usual if name in splits), None)
    return split


def open_examples(
    source: AnyPath, asked: Iterable[str] | None = None, *, names: Names = "natural", language: str | None = None
) -> Corpus:
    """A corpus with examples of types, by default the train split; an error if it has none of those asked for."""
    corpus = open_corpus(source, usual=("train",), names=names, language=language)
    asked = corpus.labels if asked is None else tuple(asked)
    if not set(asked) & {entity.label for document in corpus for entity in document.entities}:
        types = ", ".join(corpus.labels[:SHOWN_TYPES]) or "none"
        fix = f"give examples of {', '.join(asked[:SHOWN_TYPES])}" if asked else "give documents with mentions"
        raise DataError(f"there are no examples of the types asked for (its types: {types})", path=source, fix=fix)
    return corpus


def load_models(names: Sequence[str], backend: Backend = "auto", device: str | None = None) -> dict[str, Extractor]:
    """Load models, given by folder, hub name, or as "embedded", by short names that tell them apart."""
    places = [Path(name).resolve() if Path(name).exists() else Path(name) for name in names]
    same = next((name for place, name in enumerate(names) if places[place] in places[:place]), None)
    if same is not None:
        raise OnomaError(f"the model {same} is named twice. Fix: name each model once.")
    short = [_short_name(name) for name in names]
    shown = [own if short.count(own) == 1 else name for name, own in zip(names, short, strict=True)]
    return {own: load(name, backend, device) for own, name in zip(shown, names, strict=True)}


def _short_name(name: str) -> str:
    """The name of a model folder; that of its run if the folder is the `model` of a run, or its `onnx`."""
    path = Path(name)
    if not path.exists():
        return name
    path = path.resolve()
    return path.parent.name if path.name in ("model", "onnx") else path.name


def score_file(
    path: AnyPath, corpus: Corpus, limit: int | None = None, *, training: Corpus | None = None, errors: int = 0
) -> Run:
    """Score the predictions in a file; its (first `limit`) documents must be those of the corpus, in the same order."""
    predicted = []
    for number, document in enumerate(islice(read(path), limit)):
        if number < len(corpus) and document.text != corpus.documents[number].text:
            fix = "give predictions for the documents of the corpus, in the same order"
            raise DataError(f"the text of document {number + 1} differs from the corpus", path=path, fix=fix)
        predicted.append(document.entities)
    return _score(corpus, predicted, training, errors)
