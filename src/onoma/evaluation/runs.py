"""A model on a corpus: run it, and score what it finds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from onoma.asking import Threshold
from onoma.data import Inventory, find_splits, load_corpus, read
from onoma.data.statistics import count_overlaps
from onoma.decoding import Overlap
from onoma.entities import Corpus
from onoma.errors import DataError
from onoma.evaluation.render import render
from onoma.evaluation.report import Report
from onoma.evaluation.report import evaluate as score
from onoma.extractor import Extractor, load

if TYPE_CHECKING:
    from rich.console import RenderableType

AnyPath = str | os.PathLike[str]
Names = Literal["natural", "inventory", "labels"]


DEV_SPLITS = ("dev", "valid", "validation")


@dataclass(frozen=True, slots=True)
class Run:
    """What a model reached on a corpus and how long it took; predictions out of a file took no time."""

    report: Report
    overlap: Overlap | None = None
    seconds: float | None = None

    @property
    def documents_per_second(self) -> float | None:
        """With a corpus of sentences: sentences a second."""
        return self.report.documents / self.seconds if self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        speed = {"seconds": self.seconds, "documents_per_second": self.documents_per_second}
        return {**self.report.to_dict(), "overlap": self.overlap, **speed}


def render_run(run: Run) -> RenderableType:
    """The report and the speed, for a rich console."""
    from rich.console import Group

    if not run.seconds:
        return render(run.report)
    speed = f"{run.overlap} mentions, {run.seconds:.1f} s: {run.documents_per_second:,.1f} documents/s"
    return Group(render(run.report), speed)


def evaluate(
    model: Extractor | AnyPath,
    corpus: Corpus | AnyPath,
    *,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
) -> Report:
    """Ask a model for all types of a corpus, by name and description, and score what it finds.

    A model or a corpus may be given as the path from which to load it; a corpus folder with several splits
    stands for its test split, with types named in words where its meta.json does so. A model that was trained with
    the name of this corpus before its texts is asked in its style.

    >>> onoma.evaluate("runs/drugs", "data/drugs").strict.micro.f1  # doctest: +SKIP
    0.87
    """
    extractor = model if isinstance(model, Extractor) else load(model)
    corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
    return run(extractor, corpus, threshold=threshold, overlap=overlap, batch_size=batch_size).report


def run(
    model: Extractor,
    corpus: Corpus,
    *,
    threshold: Threshold | None = None,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    on_document: Callable[[], None] = lambda: None,
) -> Run:
    """Like `evaluate`, with the time it took; `on_document` is called after each document, for a progress bar."""
    overlap = overlap or usual_overlap(corpus)
    model = model.in_style(corpus.name) if corpus.name in model.styles else model
    begin = time.perf_counter()
    predicted = []
    texts = (document.text for document in corpus)
    for entities in model.stream(texts, corpus.types, threshold=threshold, overlap=overlap, batch_size=batch_size):
        predicted.append(entities)
        on_document()
    seconds = time.perf_counter() - begin
    return Run(score(corpus, predicted), overlap, seconds)


def usual_overlap(corpus: Corpus) -> Overlap:
    """How the mentions of a corpus lie: "nested" if any of them overlap, else "flat"."""
    overlaps = (count_overlaps(document.entities) for document in corpus)
    return "nested" if any(one.nested or one.crossing for one in overlaps) else "flat"


def open_corpus(
    source: AnyPath,
    split: str | None = None,
    *,
    usual: Sequence[str] = ("test",),
    names: Names = "natural",
    language: str | None = None,
    limit: int | None = None,
) -> Corpus:
    """One split of a corpus, by default the first of the `usual` ones, with types named as asked.

    Names are "natural" (in words, where meta.json has them), those of Onoma's "inventory", with its
    descriptions, or the "labels" as they stand in the file. `limit` takes the first so many documents.
    """
    splits = find_splits(source)
    if split is None and len(splits) > 1:
        split = next((name for name in usual if name in splits), None)
    corpus = load_corpus(source, split, natural_names=names == "natural", language=language)
    if names == "inventory":
        corpus = Inventory.load().unify(corpus, language="zh" if language == "zh" else "en")
    return corpus if limit is None else Corpus(corpus.name, tuple(islice(corpus, limit)), corpus.types)


def score_file(path: AnyPath, corpus: Corpus, limit: int | None = None) -> Run:
    """Score the entities of a file that has the documents of the corpus (with `limit`, the first so many) in order."""
    predicted = []
    for number, document in enumerate(islice(read(path), limit)):
        if number < len(corpus) and document.text != corpus.documents[number].text:
            fix = "predict for the documents of the corpus, in their order"
            raise DataError(f"document {number + 1} has another text than in the corpus", path=path, fix=fix)
        predicted.append(document.entities)
    return Run(score(corpus, predicted))
