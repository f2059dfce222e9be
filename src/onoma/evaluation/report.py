"""All measures of one system on one corpus, as one nested dataclass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from onoma.entities import Corpus, Entity
from onoma.evaluation.bootstrap import Intervals, bootstrap
from onoma.evaluation.boundaries import SpanScores, end_only, loose, spans, start_only
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.pairs import Confusion, ErrorKinds, confusion, error_kinds, pair_mentions
from onoma.evaluation.scores import Breakdown
from onoma.evaluation.semeval import SemEval, semeval
from onoma.evaluation.slices import Slices, slices
from onoma.evaluation.strict import strict
from onoma.evaluation.surface import Surface, surface


@dataclass(frozen=True, slots=True)
class Report:
    """The scores of one system on one corpus. `strict` is the main measure; the others show where errors are.

    `left_out` counts predictions of labels that are unknown in their document; no measure includes them. `intervals`
    are those of the strict micro scores; None if there are fewer than two documents to resample.
    """

    corpus: str
    documents: int
    left_out: int
    strict: Breakdown
    start_only: Breakdown
    end_only: Breakdown
    loose: Breakdown
    spans: SpanScores
    slices: Slices
    semeval: SemEval
    surface: Surface
    intervals: Intervals | None
    confusion: Confusion
    error_kinds: ErrorKinds

    def __repr__(self) -> str:
        """The main scores; `to_dict` has all of them, and `onoma.evaluation.render` makes tables of them."""
        names = ("precision", "recall", "f1")
        scores = ", ".join(f"{name} {100 * getattr(self.strict.micro, name):.2f}" for name in names)
        return f"Report({self.corpus!r}, {self.documents} documents, strict micro: {scores})"

    def to_dict(self) -> dict[str, Any]:
        """All counts and scores as plain dictionaries, ready for JSON."""
        plain: dict[str, Any] = as_plain(self)
        return plain


def evaluate(corpus: Corpus, predicted: Sequence[Sequence[Entity]], *, training: Corpus | None = None) -> Report:
    """Score predictions, given as one sequence of entities per document of the corpus.

    With `training`, there are also separate scores for mentions that occur in the training data and for the others.

    >>> from onoma.entities import Document
    >>> corpus = Corpus("tiny", [Document.from_spans("Tom saw Ann.", [(0, 3, "person"), (8, 11, "person")])])
    >>> evaluate(corpus, [[Entity(0, 3, "Tom", "person")]]).strict.micro.recall
    0.5
    """
    return evaluate_comparison(Comparison.between(corpus, predicted), training=training)


def evaluate_comparison(comparison: Comparison, *, training: Corpus | None = None) -> Report:
    """The same for predictions that were compared with the gold mentions before."""
    corpus, pairs = comparison.corpus, pair_mentions(comparison)
    return Report(
        corpus.name,
        len(corpus),
        comparison.left_out,
        strict(comparison),
        start_only(comparison),
        end_only(comparison),
        loose(comparison),
        spans(comparison),
        slices(comparison, training),
        semeval(comparison),
        surface(comparison),
        bootstrap(comparison) if len(corpus) > 1 else None,
        confusion(pairs),
        error_kinds(pairs),
    )


def as_plain(value: Any) -> Any:
    """Dataclasses as dictionaries of their fields and properties, such as the scores that are computed from counts."""
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        names += [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: as_plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: as_plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_plain(item) for item in value]
    return value
