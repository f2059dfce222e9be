"""Thresholds that give the best strict F1 on a corpus: the model runs once, then only decoding is repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onoma.asking import asked_types, limits
from onoma.config import ModelConfig
from onoma.decoding import Overlap, Proposals, select, to_choose_by
from onoma.entities import Corpus
from onoma.errors import OnomaError
from onoma.evaluation.columns import Booleans, Integers, encode
from onoma.evaluation.runs import usual_overlap
from onoma.evaluation.scores import Scores
from onoma.extractor import Extractor
from onoma.routing import require_single

if TYPE_CHECKING:
    from rich.table import Table

Limits = NDArray[np.float32]

GRID = [round(0.02 * step, 2) for step in range(1, 50)]
"""The thresholds that are tried."""
ENOUGH_MENTIONS = 10
"""A type with fewer, gold and predicted, keeps the threshold of all: what fits so few would fit no others."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """Thresholds before and after, and the strict scores with each."""

    labels: tuple[str, ...]
    before: Limits
    after: Limits
    scores_before: tuple[Scores, ...]  # of each type
    scores_after: tuple[Scores, ...]
    config: ModelConfig  # with the new thresholds

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "threshold": self.config.threshold,
            "thresholds": self.config.thresholds,
            "f1_before": _total(self.scores_before).f1,
            "f1_after": _total(self.scores_after).f1,
        }


def tune(
    model: Extractor,
    corpus: Corpus,
    *,
    per_type: bool = False,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    on_document: Callable[[], None] = lambda: None,
) -> Tuned:
    """Find the one threshold for all types of the corpus that gives the best micro F1.

    With `per_type`, then go through the types once, the frequent ones first, and move the threshold of each to
    where the F1 over all types is best, while the others stay.
    """
    if not len(corpus):
        raise OnomaError(f"corpus {corpus.name!r} has no documents to tune thresholds on")
    require_single(model.folder, "tune")  # each model has thresholds of its own
    types = asked_types(corpus.types)
    candidates = _propose(model, corpus, overlap or usual_overlap(corpus), batch_size, on_document)
    before = limits(types, None, model.config)
    common = _best([_f1(*candidates.counts(np.full_like(before, value))) for value in GRID])
    after = np.full_like(before, common)
    if per_type:
        after = _tune_types(candidates, after)
    labels = tuple(one.name for one in types)
    rounded = {name: round(float(value), 2) for name, value in zip(labels, after, strict=True)}
    own = {name: value for name, value in rounded.items() if value != common}
    kept = {name: value for name, value in model.config.thresholds.items() if name not in labels}
    config = replace(model.config, threshold=common, thresholds={**kept, **own})
    return Tuned(labels, before, after, candidates.scores(before), candidates.scores(after), config)


def render_tuned(tuned: Tuned) -> Table:
    """The thresholds and scores before and after, for a rich console."""
    from rich.table import Table
    from rich.text import Text

    table = Table("type", title="Strict F1 before and after", title_justify="left")
    for column in ("threshold", "F1", "new threshold", "new F1", "gold"):
        table.add_column(column, justify="right")
    for row, name in enumerate(tuned.labels):
        old, new = tuned.scores_before[row], tuned.scores_after[row]
        cells = (f"{tuned.before[row]:.2f}", _percent(old), f"{tuned.after[row]:.2f}", _percent(new), str(new.gold))
        table.add_row(Text(name), *cells)
    old, new = _total(tuned.scores_before), _total(tuned.scores_after)
    table.add_section()
    table.add_row("all (micro)", "", _percent(old), "", _percent(new), str(new.gold), style="bold")
    return table


@dataclass(frozen=True, slots=True)
class _Candidates:
    """All proposals of a corpus as columns, with whether they are gold, and whether that can be told."""

    document: Integers
    proposals: Proposals
    correct: Booleans
    known: Booleans
    gold: Integers  # mentions of each type
    labels: Sequence[str]
    overlap: Overlap

    def of_documents(self, rows: Booleans) -> _Candidates:
        """Those of some documents; the counts of gold mentions stay those of all."""
        columns = (self.document[rows], self.proposals.take(rows), self.correct[rows], self.known[rows])
        return _Candidates(*columns, self.gold, self.labels, self.overlap)

    def counts(self, lowest: Limits) -> tuple[Integers, Integers, Integers]:
        """Gold, predicted and correct mentions of each type when these thresholds hold."""
        reached = np.flatnonzero(self.proposals.score >= lowest[self.proposals.type])
        found = self.proposals.take(reached)
        best = to_choose_by(found.score, found.type, self.labels)
        kept = select(found.first, found.last + 1, found.type, best, overlap=self.overlap, group=self.document[reached])
        rows = reached[kept]
        predicted = np.bincount(self.proposals.type[rows[self.known[rows]]], minlength=len(lowest))
        correct = np.bincount(self.proposals.type[rows[self.correct[rows]]], minlength=len(lowest))
        return self.gold, predicted, correct

    def scores(self, lowest: Limits) -> tuple[Scores, ...]:
        """The strict scores of each type."""
        columns = zip(*(column.tolist() for column in self.counts(lowest)), strict=True)
        return tuple(Scores(gold, predicted, correct, correct) for gold, predicted, correct in columns)


def _propose(
    model: Extractor, corpus: Corpus, overlap: Overlap, batch_size: int, on_document: Callable[[], None]
) -> _Candidates:
    """Run the model once, with the lowest threshold of the grid."""
    places = {name: place for place, name in enumerate(sorted(corpus.labels))}
    texts = (document.text for document in corpus)
    columns: list[tuple[NDArray[Any], ...]] = []
    passed = 0
    for chunk in model.propose(texts, corpus.types, threshold=GRID[0], batch_size=batch_size):
        line, proposals = chunk.line, chunk.proposals
        start, end = line.words[proposals.first, 0], line.words[proposals.last, 1]
        columns.append((line.document(proposals.first) + passed, start, end, *proposals))
        passed += len(line.texts)
        for _ in line.texts:
            on_document()
    document, start, end, *rest = (np.concatenate(column) for column in zip(*columns, strict=True))
    proposals = Proposals(*rest)
    gold = _gold(corpus, places)
    gold_codes, codes = encode(gold, (document, start, end, proposals.type))
    kept = np.unique(gold_codes, return_index=True)[1]  # a mention given twice counts once
    counts = np.bincount(gold[3][kept], minlength=len(places))
    known = _known(corpus, places, document, proposals.type)
    return _Candidates(document, proposals, np.isin(codes, gold_codes), known, counts, tuple(places), overlap)


def _gold(corpus: Corpus, places: Mapping[str, int]) -> tuple[Integers, ...]:
    rows = [
        (number, one.start, one.end, places[one.label])
        for number, document in enumerate(corpus)
        for one in document.entities
    ]
    return tuple(np.array(rows, np.int64).reshape(-1, 4).T)


def _known(corpus: Corpus, places: Mapping[str, int], document: Integers, kind: Integers) -> Booleans:
    """Which proposals are of a type that is annotated in their document."""
    known = np.ones(len(document), np.bool_)
    order = np.argsort(document, kind="stable")
    edges = np.searchsorted(document[order], np.arange(len(corpus) + 1))
    for number, one in enumerate(corpus):
        if one.annotated is not None:
            rows = order[edges[number] : edges[number + 1]]
            known[rows] = np.isin(kind[rows], [places[name] for name in one.annotated if name in places])
    return known


def _tune_types(candidates: _Candidates, start: Limits) -> Limits:
    best = start.copy()
    gold, predicted, _ = candidates.counts(start)
    mentions = gold + predicted
    for kind in np.argsort(-mentions, kind="stable").tolist():
        if mentions[kind] < ENOUGH_MENTIONS:
            break
        # A threshold has influence only in the documents for which its type is proposed at all.
        document = candidates.document[candidates.proposals.type == kind]
        part = candidates.of_documents(np.isin(candidates.document, document))
        elsewhere = [a - b for a, b in zip(candidates.counts(best)[1:], part.counts(best)[1:], strict=True)]
        scores = []
        for value in (best[kind], *GRID):
            trial = best.copy()
            trial[kind] = value
            _, predicted, correct = part.counts(trial)
            scores.append(_f1(candidates.gold, predicted + elsewhere[0], correct + elsewhere[1]))
        if max(scores) > scores[0]:
            best[kind] = _best(scores[1:])
    return best


def _f1(gold: Integers, predicted: Integers, correct: Integers) -> float:
    return float(2 * correct.sum() / max(gold.sum() + predicted.sum(), 1))


def _best(scores: list[float]) -> float:
    """The threshold of the grid with the best score; of several, the one in the middle, far from where it falls."""
    best = [value for value, score in zip(GRID, scores, strict=True) if score == max(scores)]
    return best[len(best) // 2]


def _total(scores: tuple[Scores, ...]) -> Scores:
    return sum(scores, Scores(0, 0, 0, 0))


def _percent(scores: Scores) -> str:
    return f"{100 * scores.f1:.2f}" if scores.gold or scores.predicted else "-"
