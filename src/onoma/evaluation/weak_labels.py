"""Labelling a corpus with a dictionary: how much it covers, and how good it is where gold is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onoma.data.dictionary import Batch, Dictionary
from onoma.data.formats import FORMATS, detect, write
from onoma.entities import Document
from onoma.evaluation.render import score_cells
from onoma.evaluation.scores import Breakdown, Scores
from onoma.files import atomic_write, plain_suffix

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_TYPES = 40
"""Rows in the table of types."""


class Coverage:
    """How much of a corpus a dictionary covers, counted while documents are labelled.

    Gold is compared strictly: same characters, same label. A document without annotation does not count there, nor does
    a type that is not annotated in a document, or that has no gold mention at all.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.types, self.entries, self.ambiguous = dictionary.types, dictionary.size, dictionary.ambiguous
        self.documents = self.documents_with_a_mention = self.characters = 0
        self._mentions = np.zeros(len(self.types), np.int64)
        self._used = np.zeros(dictionary.size, np.bool_)
        self._gold: Counter[str] = Counter()
        self._predicted: Counter[str] = Counter()
        self._correct: Counter[str] = Counter()
        self._annotated: set[str] = set()

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.documents += len(batch.documents)
        self.documents_with_a_mention += len(np.unique(batch.document))
        self.characters += sum(len(document.text) for document in batch.documents)
        self._mentions += np.bincount(batch.label, minlength=len(self.types))
        self._used[batch.entry] = True
        if any(document.annotated != frozenset() for document in batch.documents):
            for document, spans in zip(batch.documents, batch.spans(), strict=True):
                self._compare(document, set(spans))

    def _compare(self, document: Document, predicted: set[tuple[int, int, str]]) -> None:
        known = document.annotated
        if known is not None:
            self._annotated |= known
            predicted = {span for span in predicted if span[2] in known}
        gold = {entity.key for entity in document.entities}
        for counter, spans in ((self._gold, gold), (self._predicted, predicted), (self._correct, gold & predicted)):
            counter.update(label for _, _, label in spans)

    @property
    def mentions(self) -> dict[str, int]:
        """The number of mentions of each type, the most frequent first."""
        counts = dict(zip(self.types, self._mentions.tolist(), strict=True))
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @property
    def entries_used(self) -> int:
        """The number of entries that were found at least once."""
        return int(np.count_nonzero(self._used))

    @property
    def scores(self) -> Breakdown | None:
        """Strict precision, recall and F1, for all types with gold mentions; None if there are none."""
        known = sorted(self._gold.keys() | (self._annotated & self._predicted.keys()))
        if not self._gold:
            return None
        counts = {name: (self._gold[name], self._predicted[name], self._correct[name]) for name in known}
        return Breakdown.of({name: Scores.one_to_one(*each) for name, each in counts.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        scores = self.scores
        return {
            "documents": self.documents,
            "documents_with_a_mention": self.documents_with_a_mention,
            "characters": self.characters,
            "mentions": int(self._mentions.sum()),
            "mentions_by_type": self.mentions,
            "entries": self.entries,
            "entries_used": self.entries_used,
            "ambiguous_entries": self.ambiguous,
            "scores": None if scores is None else {"micro": _plain(scores.micro), "types": _by_type(scores)},
        }


def weak_label(
    dictionary: Dictionary,
    documents: Iterable[Document],
    target: str | PathLike[str],
    format: str | None = None,
    on_progress: Callable[[int], None] = lambda characters: None,
) -> Coverage:
    """Label documents, write them in any format, and return the coverage; gold mentions are not written.

    `on_progress` gets the number of characters that were labelled so far.
    """
    coverage = Coverage(dictionary)

    def counted() -> Iterator[Batch]:
        for batch in dictionary.label_batches(documents):
            coverage.add(batch)
            yield batch
            on_progress(coverage.characters)

    name = format or detect(target, writing=True)
    if FORMATS.get(name) is FORMATS["jsonl"] and plain_suffix(target) != ".json":
        with atomic_write(Path(target)) as file:
            file.writelines(chain.from_iterable(batch.json_lines() for batch in counted()))
    else:
        write(chain.from_iterable(batch.annotate() for batch in counted()), target, name)
    return coverage


def render_coverage(coverage: Coverage) -> RenderableType:
    """Coverage and scores as tables for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    share = coverage.documents_with_a_mention / max(1, coverage.documents)
    head = (
        f"{coverage.documents:,} documents, {coverage.documents_with_a_mention:,} with a mention ({share:.1%}); "
        f"{sum(coverage.mentions.values()):,} mentions of {coverage.entries_used:,} of {coverage.entries:,} entries"
    )
    if coverage.ambiguous:
        head += f"; {coverage.ambiguous:,} entries with several types were skipped"
    scores = coverage.scores
    table = Table("type", *(("mentions",) if scores is None else ("mentions", "P", "R", "F1", "gold")))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, count in list(coverage.mentions.items())[:MAX_TYPES]:
        of_type = scores.types.get(name) if scores else None
        table.add_row(Text(name), f"{count:,}", *(score_cells(of_type)[:4] if of_type else ()))
    hidden = len(coverage.types) - MAX_TYPES
    if hidden > 0:
        table.add_row(f"… and {hidden:,} more")
    if scores:
        table.add_section()
        table.add_row("micro", f"{scores.micro.predicted:,}", *score_cells(scores.micro)[:4], style="bold")
    return Group(Text(head), table)


def _plain(scores: Scores) -> dict[str, float]:
    names = ("precision", "recall", "f1", "gold", "predicted", "correct")
    return {name: getattr(scores, name) for name in names}


def _by_type(scores: Breakdown) -> dict[str, dict[str, float]]:
    return {name: _plain(one) for name, one in scores.types.items()}
