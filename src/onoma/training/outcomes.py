"""Results of a protocol: scores per corpus, as a table, as results.json and as curves."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from onoma import __version__
from onoma.evaluation.curves import Point
from onoma.files import atomic_write

if TYPE_CHECKING:
    from rich.table import Table

RESULTS = "results.json"
MEASURES = ("precision", "recall", "f1")


@dataclass(frozen=True, slots=True)
class Value:
    """The strict scores on a split of a corpus, in percent; their means if there are several samples."""

    corpus: str
    split: str
    precision: float
    recall: float
    f1: float
    spread: float | None = None  # standard deviation of F1 over samples
    sentences: int | None = None  # of training, in few-shot runs
    samples: tuple[float, ...] = ()  # the F1 of each

    @classmethod
    def over(cls, corpus: str, sentences: int, scores: Sequence[dict[str, float]]) -> Value:
        """The mean over samples."""
        means = {name: fmean(one[name] for one in scores) for name in MEASURES}
        f1 = tuple(one["f1"] for one in scores)
        return cls(corpus, "test", **means, spread=spread(f1), sentences=sentences, samples=f1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The values of a protocol, with system, encoder and seeds."""

    protocol: str
    system: str
    encoder: str
    seeds: tuple[int, ...]
    values: tuple[Value, ...]

    @property
    def corpora(self) -> list[str]:
        """The names of the test corpora."""
        return list(dict.fromkeys(one.corpus for one in self.values))

    def means(self) -> list[dict[str, Any]]:
        """The means over corpora, for each split and number of sentences."""
        groups: dict[tuple[str, int | None], list[Value]] = {}
        for one in self.values:
            groups.setdefault((one.split, one.sentences), []).append(one)
        return [
            {"split": split, "sentences": sentences}
            | {name: fmean(getattr(one, name) for one in group) for name in MEASURES}
            for (split, sentences), group in groups.items()
        ]

    def curves(self) -> dict[str, list[Point]]:
        """F1 by number of sentences, for each corpus."""
        curves: dict[str, list[Point]] = {}
        for one in self.values:
            if one.sentences is not None:
                curves.setdefault(one.corpus, []).append(Point(one.sentences, one.f1, one.spread))
        return curves

    def write(self, folder: str | os.PathLike[str], command: str) -> Path:
        """Write results.json into a folder, with the command, and return its path."""
        results = {
            "protocol": self.protocol,
            "system": self.system,
            "encoder": self.encoder,
            "corpora": self.corpora,
            "seeds": list(self.seeds),
            "values": [asdict(one) for one in self.values],
            "means": self.means(),
            "command": command,
            "version": __version__,
        }
        path = Path(folder) / RESULTS
        with atomic_write(path) as file:
            json.dump(results, file, ensure_ascii=False, indent=2)
        return path


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation of a sample; None for a single value."""
    return stdev(values) if len(values) > 1 else None


def render_outcome(outcome: Outcome) -> Table:
    """The values and their means over corpora, for a rich console."""
    few = any(one.sentences is not None for one in outcome.values)
    return _by_sentences(outcome) if few else _by_split(outcome)


def _by_split(outcome: Outcome) -> Table:
    """One row per corpus, with the scores on dev and on test."""
    table = _table(f"{outcome.protocol}: strict scores")
    found = {(one.corpus, one.split): one for one in outcome.values}
    splits = list(dict.fromkeys(one.split for one in outcome.values))
    for split in splits:
        for short in ("P", "R", "F1"):
            table.add_column(f"{split} {short}", justify="right")
    for corpus in outcome.corpora:
        rows = [found.get((corpus, split)) for split in splits]
        table.add_row(plain(corpus), *(cell for one in rows for cell in _scores(asdict(one) if one else None)))
    if len(outcome.corpora) > 1:
        table.add_section()
        means = {one["split"]: one for one in outcome.means()}
        table.add_row("mean", *(cell for split in splits for cell in _scores(means[split])), style="bold")
    return table


def _by_sentences(outcome: Outcome) -> Table:
    """One row per corpus and number of sentences."""
    count = max(len(one.samples) for one in outcome.values)
    table = _table(f"{outcome.protocol}: strict scores on test, samples: {count}")
    for column in ("sentences", "P", "R", "F1", "± F1"):
        table.add_column(column, justify="right")
    for corpus in outcome.corpora:
        for one in outcome.values:
            if one.corpus == corpus:
                deviation = "-" if one.spread is None else f"{one.spread:.2f}"
                table.add_row(plain(corpus), str(one.sentences), *_scores(asdict(one)), deviation)
        table.add_section()
    if len(outcome.corpora) > 1:
        for mean in outcome.means():
            table.add_row("mean", str(mean["sentences"]), *_scores(mean), "", style="bold")
    return table


def _scores(values: dict[str, Any] | None) -> list[str]:
    return ["-"] * len(MEASURES) if values is None else [f"{values[name]:.2f}" for name in MEASURES]


def _table(title: str) -> Table:
    from rich.table import Table

    return Table("corpus", title=title, title_justify="left")


def plain(name: str) -> Any:
    """A name for a table."""
    from rich.text import Text

    return Text(name)  # a name may look like markup of rich
