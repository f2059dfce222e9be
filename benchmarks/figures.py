"""Figures of records for the tables of the documentation: lookup by metric, means over corpora, number formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from papers import published_figure, split_corpora, without_encoder

HISTORIC = "†"
FIELD = re.compile(r"\{([^{}]+)\}")
PUBLISHED = "paper:"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure. Without seeds, chance plays no part; of one seed, there is no spread."""

    value: float
    spread: float | None = None
    seeds: int = 0
    historic: str = ""  # why it cannot be measured again, if it cannot
    run: tuple[str, str] = field(default=("", ""), compare=False)
    """Command and commit: figures of one run have the same."""

    @property
    def noise(self) -> float | None:
        """By how much it may differ by chance; None if that is not known."""
        return self.spread if self.spread is not None or self.seeds else 0.0

    def __str__(self) -> str:
        text = number(self.value)
        if self.spread is not None:
            text += f" ± {number(self.spread, like=self.value)}"
        return f"{text} {HISTORIC}" if self.historic else text


class Figures:
    """The figures of records, by metric and encoder, and those of the papers."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], published: dict[str, float]) -> None:
        self.published = published
        self._found: dict[str, dict[str, Figure]] = {}
        for row in rows:
            encoder = row["metric"].split("/")[3]
            run = row["command"], row["commit"]
            figure = Figure(row["value"], row["spread"], len(row["seeds"]), row.get("historic") or "", run)
            self._found.setdefault(without_encoder(row["metric"]), {})[encoder] = figure

    def by_encoder(self, metric: str) -> dict[str, Figure]:
        """The figures of a metric by encoder; of several corpora, the means of encoders that have all of them."""
        found = [self._found.get(without_encoder(one), {}) for one in split_corpora(metric)]
        if len(found) == 1:
            return found[0]
        return {name: mean([one[name] for one in found]) for name in found[0] if all(name in one for one in found)}

    def find(self, metric: str) -> Figure | None:
        """The figure of a metric that names its encoder, or of the paper if it starts with `paper:`."""
        if metric.startswith(PUBLISHED):
            figure = published_figure(metric.removeprefix(PUBLISHED), self.published)
            return None if figure is None else Figure(figure)
        return self.by_encoder(metric).get(metric.split("/")[3])

    def fill(self, sentence: str) -> str | None:
        """A sentence with its figures; None if one of them is missing."""
        texts = [self._field(field) for field in FIELD.findall(sentence)]
        if None in texts:
            return None
        parts = iter(texts)
        return FIELD.sub(lambda _: next(parts) or "", sentence)

    def _field(self, field: str) -> str | None:
        for word, operation in OPERATIONS.items():
            if word in field:
                one, other = map(self.find, field.split(word))
                return operation(one.value, other.value) if one and other else None
        found = self.find(field)
        return None if found is None else str(found)


def mean(figures: list[Figure]) -> Figure:
    """The mean over corpora. That of the spreads is an upper bound of its spread."""
    spreads = [one.spread for one in figures if one.spread is not None]
    return Figure(
        fmean(one.value for one in figures),
        fmean(spreads) if len(spreads) == len(figures) else None,
        min(one.seeds for one in figures),
        next((one.historic for one in figures if one.historic), ""),
    )


def number(value: float, like: float | None = None) -> str:
    """A number in text, with as many decimals as another one of its kind."""
    size = abs(value if like is None else like)
    return f"{value:,.{0 if size >= 1000 else 2 if size >= 1 else 3}f}"


def published_number(value: float) -> str:
    """A figure of a paper, with the decimals that it has there."""
    return f"{value:,}"


def difference(one: float, other: float) -> str:
    """A difference with its sign."""
    return f"{one - other:+,.{0 if abs(one) >= 1000 else 2}f}".replace("-", "−")


def ratio(one: float, other: float) -> str:
    """A ratio."""
    return f"{one / other:.2f}"


def percent(one: float, other: float) -> str:
    """A share in percent."""
    return f"{100 * one / other:.0f}%"


OPERATIONS: dict[str, Callable[[float, float], str]] = {
    " minus ": difference,
    " over ": ratio,
    " percent of ": percent,
}


def table_line(cells: Iterable[str]) -> str:
    """A line of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
