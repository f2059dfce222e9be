"""Tuning of thresholds for the best strict F1 on a corpus: the model runs once, then only decoding is repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onoma.decoding.overlap import Overlap
from onoma.entities import Corpus
from onoma.errors import OnomaError
from onoma.evaluation.candidates import Candidates, EvaluationSet, best_presets, best_threshold, middle_of_best
from onoma.evaluation.render import score_cells
from onoma.evaluation.scores import Scores
from onoma.extractor import Extractor
from onoma.labels.parsing import Thresholds, parse_labels
from onoma.models.config import ModelConfig

if TYPE_CHECKING:
    from rich.table import Table

GRID = [round(0.02 * step, 2) for step in range(1, 50)]
"""The thresholds that are tried."""
MIN_MENTIONS = 10
"""Types with fewer gold and predicted mentions keep the common threshold: one tuned on so few would not generalise."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """Thresholds before and after tuning, and the strict scores of each type with them."""

    labels: tuple[str, ...]
    before: Thresholds
    after: Thresholds
    scores_before: tuple[Scores, ...]
    scores_after: tuple[Scores, ...]
    config: ModelConfig  # with the new thresholds

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "threshold": self.config.threshold,
            "thresholds": self.config.thresholds,
            "presets": self.config.presets,
            "f1_before": Scores.total(self.scores_before).f1,
            "f1_after": Scores.total(self.scores_after).f1,
        }


def tune(
    model: Extractor,
    corpus: Corpus,
    *,
    per_type: bool = False,
    overlap: Overlap | None = None,
    batch_size: int = 64,
    on_progress: Callable[[int], None] = lambda documents: None,
) -> Tuned:
    """Find the common threshold of all types of a corpus with the best micro F1.

    With `per_type`, the threshold of each type is then tuned in turn, the most frequent types first, for the best micro
    F1 while the thresholds of the other types are fixed. `on_progress` gets the number of documents done so far.
    """
    if not len(corpus):
        raise OnomaError(f"corpus {corpus.name!r} has no documents. Fix: tune thresholds on a corpus with documents.")
    single = model.single("tune")  # each model has its own thresholds
    types = parse_labels(corpus.types)
    translated = single.translator.translate(types)
    prepared = EvaluationSet(corpus, single.runtime, overlap=overlap, batch_size=batch_size, types=translated)
    candidates = prepared.candidates(single.runtime, GRID[0], on_progress)
    config = single.runtime.config
    before = single.ask(types, None).thresholds
    common = best_threshold([candidates], GRID)
    after = np.full_like(before, common)
    if per_type:
        after = tune_types(candidates, after)
    # extraction looks thresholds up by translated names
    rounded = {one.name: round(float(value), 2) for one, value in zip(translated, after, strict=True)}
    own = {name: value for name, value in rounded.items() if value != common}
    kept = {name: value for name, value in config.thresholds.items() if name not in rounded}
    return Tuned(
        prepared.labels,
        before,
        after,
        candidates.type_scores(before),
        candidates.type_scores(after),
        replace(
            config,
            threshold=common,
            thresholds={**kept, **own},
            presets=best_presets([candidates], GRID, common),
        ),
    )


def render_tuned(tuned: Tuned) -> Table:
    """A table of thresholds and scores before and after tuning, for a rich console."""
    from rich.table import Table
    from rich.text import Text

    table = Table("type", title="Strict F1 before and after", title_justify="left")
    for column in ("threshold", "F1", "new threshold", "new F1", "gold"):
        table.add_column(column, justify="right")
    for row, name in enumerate(tuned.labels):
        old, new = tuned.scores_before[row], tuned.scores_after[row]
        cells = (f"{tuned.before[row]:.2f}", _f1_cell(old), f"{tuned.after[row]:.2f}", _f1_cell(new), str(new.gold))
        table.add_row(Text(name), *cells)
    old, new = Scores.total(tuned.scores_before), Scores.total(tuned.scores_after)
    table.add_section()
    table.add_row("all (micro)", "", _f1_cell(old), "", _f1_cell(new), str(new.gold), style="bold")
    return table


def _f1_cell(scores: Scores) -> str:
    return score_cells(scores)[2]


def tune_types(candidates: Candidates, start: Thresholds, grid: Sequence[float] = GRID) -> Thresholds:
    """Thresholds of all types: each is tuned in turn, the most frequent types first, while the others are fixed."""
    best = start.copy()
    gold, predicted, _ = candidates.counts(start)
    mentions = gold + predicted
    for kind in np.argsort(-mentions, kind="stable").tolist():
        if mentions[kind] < MIN_MENTIONS:
            break
        # a threshold has an effect only in documents with proposals of its type
        document = candidates.document[candidates.proposals.type == kind]
        part = candidates.of_documents(np.isin(candidates.document, document))
        elsewhere = [a - b for a, b in zip(candidates.counts(best)[1:], part.counts(best)[1:], strict=True)]
        scores = []
        for value in (best[kind], *grid):
            trial = best.copy()
            trial[kind] = value
            _, predicted, correct = part.counts(trial)
            columns = (candidates.gold, predicted + elsewhere[0], correct + elsewhere[1])
            scores.append(Scores.one_to_one(*(int(column.sum()) for column in columns)).f1)
        if max(scores) > scores[0]:
            best[kind] = middle_of_best(grid, scores[1:])
    return best
