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
from onoma.files import atomic_write_bytes, plain_suffix

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_TYPES = 40
"""Rows in the table of types."""


class Coverage:
    """How much of a corpus a dictionary covers, counted while documents are labelled.

    Gold is compared strictly (same characters, same label), for the types that the dictionary has entries of. Documents
    without annotation do not count there, nor do types that are not annotated in a document, or have no gold at all.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.types, self.entries, self.ambiguous = dictionary.types, dictionary.size, dictionary.ambiguous
        self.documents = self.documents_with_a_mention = self.bytes = 0
        self._mentions = np.zeros(len(self.types), np.int64)
        self._used = np.zeros(dictionary.size, np.bool_)
        self._gold: Counter[str] = Counter()
        self._predicted: Counter[str] = Counter()
        self._correct: Counter[str] = Counter()
        self._annotated: set[str] = set()

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.documents += len(batch.documents)
        self.documents_with_a_mention += int(np.count_nonzero(np.bincount(batch.document)))
        self.bytes += sum(_size(document.text) for document in batch.documents)
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
        """Strict precision, recall and F1, for all types with entries and gold; None if there are none."""
        annotated = self._gold.keys() | self._annotated
        counts = {
            name: (self._gold[name], self._predicted[name], self._correct[name])
            for name in self.types
            if name in annotated
        }
        if not counts:
            return None
        return Breakdown.of({name: Scores.one_to_one(*each) for name, each in counts.items()})

    @property
    def other_types(self) -> list[str]:
        """The types of gold mentions that the dictionary has no entries of."""
        return sorted(self._gold.keys() - set(self.types))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        scores = self.scores
        return {
            "documents": self.documents,
            "documents_with_a_mention": self.documents_with_a_mention,
            "bytes": self.bytes,
            "mentions": int(self._mentions.sum()),
            "mentions_by_type": self.mentions,
            "entries": self.entries,
            "entries_used": self.entries_used,
            "ambiguous_entries": self.ambiguous,
            "gold_types_without_entries": self.other_types,
            "scores": None if scores is None else {"micro": _plain(scores.micro), "types": _by_type(scores)},
        }


def weak_label(
    dictionary: Dictionary,
    documents: Iterable[Document],
    target: str | PathLike[str],
    format: str | None = None,
    on_progress: Callable[[int], None] = lambda size: None,
) -> Coverage:
    """Label documents, write them in any format, and return the coverage; gold mentions are not written.

    `on_progress` gets the size of the text that was labelled so far, in bytes.
    """
    coverage = Coverage(dictionary)

    def counted() -> Iterator[Batch]:
        for batch in dictionary.label_batches(documents):
            coverage.add(batch)
            yield batch
            on_progress(coverage.bytes)

    name = format or detect(target, writing=True)
    if FORMATS.get(name) is FORMATS["jsonl"] and plain_suffix(target) != ".json":
        with atomic_write_bytes(Path(target)) as file:
            file.writelines(b"".join(batch.json_lines()) for batch in counted())
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
    parts: list[RenderableType] = [Text(head), table]
    if coverage.other_types:
        more = "" if len(coverage.other_types) <= MAX_TYPES else ", …"
        parts.append(Text(f"gold types without entries: {', '.join(coverage.other_types[:MAX_TYPES])}{more}"))
    return Group(*parts)


def _size(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _plain(scores: Scores) -> dict[str, float]:
    names = ("precision", "recall", "f1", "gold", "predicted", "correct")
    return {name: getattr(scores, name) for name in names}


def _by_type(scores: Breakdown) -> dict[str, dict[str, float]]:
    return {name: _plain(one) for name, one in scores.types.items()}
