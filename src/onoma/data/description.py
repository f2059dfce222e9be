"""The description of a corpus that `onoma info` prints: metadata, statistics and warnings about labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from onoma.data.corpora import CorpusInfo, load_splits, read_info
from onoma.data.quality import LabelWarning, check
from onoma.data.statistics import Lengths, Statistics, describe

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

MAX_TYPES = 40
"""Rows in the table of types."""


@dataclass(frozen=True, slots=True)
class Description:
    """The metadata of a corpus, statistics of each split, and warnings about its labels."""

    info: CorpusInfo
    statistics: dict[str, Statistics]
    warnings: list[LabelWarning]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        info = asdict(self.info)
        return {
            **{key: info[key] for key in ("name", "language", "licence", "role", "weights_ok")},
            "splits": {split: statistics.to_dict() for split, statistics in self.statistics.items()},
            "warnings": [asdict(warning) for warning in self.warnings],
        }


def describe_splits(source: str, *, format: str | None = None) -> Description:
    """Read all splits of a corpus and describe them."""
    splits = load_splits(source, format=format)
    statistics = {split: describe(corpus) for split, corpus in splits.items()}
    return Description(read_info(source), statistics, check(splits))


def render(description: Description) -> RenderableType:
    """The description as tables for a terminal."""
    from rich.console import Group
    from rich.markup import escape
    from rich.text import Text

    parts: list[RenderableType] = [Text(description.info.name, style="bold")]
    facts = {"language": description.info.language, "licence": description.info.licence, "role": description.info.role}
    parts += [f"{key}: {escape(value)}" for key, value in facts.items() if value]
    parts += [_sizes(description), _types(description)]
    parts.append(_warning_title(description))
    parts += [Text(line) for warning in description.warnings for line in _lines(warning)]
    return Group(*parts)


def _warning_title(description: Description) -> Text:
    from rich.text import Text

    if not any(statistics.documents for statistics in description.statistics.values()):
        return Text("there are no documents", style="yellow")
    return Text("warnings", style="bold") if description.warnings else Text("no warnings", style="green")


def _sizes(description: Description) -> RenderableType:
    from rich.table import Table

    rows: dict[str, Callable[[Statistics], str]] = {
        "documents": lambda s: f"{s.documents:,}",
        "… without a mention": lambda s: f"{s.documents_without_mention:,}",
        "words": lambda s: f"{s.words:,}",
        "mentions": lambda s: f"{s.mentions:,}",
        "words per document (mean, median, 99%, max)": lambda s: _format_lengths(s.document_length),
        "words per mention (mean, median, 99%, max)": lambda s: _format_lengths(s.mention_length),
        "pairs nested / crossing / same span": _format_pairs,
        "words split by a mention's edge": lambda s: f"{s.split_words:,}",
    }
    table = Table("", *description.statistics)
    for name, value in rows.items():
        table.add_row(name, *(value(statistics) for statistics in description.statistics.values()))
    return table


def _format_pairs(statistics: Statistics) -> str:
    return f"{statistics.nested_pairs:,} / {statistics.crossing_pairs:,} / {statistics.same_span_pairs:,}"


def _format_lengths(lengths: Lengths) -> str:
    median = f"{lengths.median:.1f}".removesuffix(".0")
    return f"{lengths.mean:.1f}, {median}, {lengths.p99:.0f}, {lengths.max}"


def _types(description: Description) -> RenderableType:
    from rich.markup import escape
    from rich.table import Table

    counts = {
        split: {count.name: count.mentions for count in statistics.types}
        for split, statistics in description.statistics.items()
    }
    names = sorted({name for split in counts.values() for name in split}, key=lambda n: (-_total(counts, n), n))
    table = Table("type", *counts)
    for name in names[:MAX_TYPES]:
        table.add_row(escape(name), *(f"{split.get(name, 0):,}" for split in counts.values()))
    if len(names) > MAX_TYPES:
        table.add_row(f"… and {len(names) - MAX_TYPES:,} more", *("" for _ in counts))
    return table


def _total(counts: dict[str, dict[str, int]], name: str) -> int:
    return sum(split.get(name, 0) for split in counts.values())


def _lines(warning: LabelWarning) -> Iterator[str]:
    yield f"- {warning.count:,} {warning.message} [{warning.code}]"
    for example in warning.examples:
        yield f"    {example.split}, document {example.index}: {example.text}"
