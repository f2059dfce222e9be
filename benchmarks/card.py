"""The tables of the embedded model's card, from the records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean

from figures import Figure, Figures, table_line
from reliability import EDGES
from suites import SUITES, Suite

NAMES = {
    "cluener": "CLUENER",
    "conll2003": "CoNLL-2003",
    "crossner_ai": "AI",
    "ecommerce": "E-commerce",
    "mit_movie_eng": "MIT Movie",
    "mit_restaurant": "MIT Restaurant",
    "msra": "MSRA",
    "resume": "Resume",
    "wikiann_en": "WikiANN",
    "wikineural_en_devtest": "WikiNEuRal",
}
SETTINGS = {"benchmarks": "zero-shot", "wide": "zero-shot", "development": "development"}


def render(figures: Figures, key: str) -> str:
    """A table by its key, such as `benchmarks en`, `development zh` or `reliability en`."""
    kind, language = key.split()
    if kind == "reliability":
        return "\n".join(_reliability(language, figures))
    return "\n".join(_suite(SETTINGS[kind], SUITES[kind][language], figures))


def _suite(setting: str, suite: Suite, figures: Figures) -> Iterator[str]:
    """F1 on each corpus of a suite, and their mean."""
    found = {name: _newest(figures.by_encoder(f"embedded/{setting}/{name}/*/f1")) for name in suite.sets}
    if any(figure is None for figure in found.values()):
        yield "Not measured yet."
        return
    known = {name: figure for name, figure in found.items() if figure is not None}
    mean = fmean(figure.value for figure in known.values())
    yield from _table({_name(name): f"{one.value:.1f}" for name, one in known.items()} | {"mean": f"**{mean:.1f}**"})


def _reliability(language: str, figures: Figures) -> Iterator[str]:
    """The share of right mentions by score."""
    metric = "embedded/reliability/development-{}/*/right_percent_{}_{}"
    bins = list(pairwise(EDGES))
    found = {bin: _newest(figures.by_encoder(metric.format(language, *bin))) for bin in bins}
    cells = {f"{low / 100:.1f} to {high / 100:.1f}": f"{one.value:.0f}%" for (low, high), one in found.items() if one}
    yield from _table(cells) if cells else ("Not measured yet.",)


def _newest(found: dict[str, Figure]) -> Figure | None:
    """Of the figures of all encoders, one that is not historic if there is such a one."""
    return min(found.values(), key=lambda one: bool(one.historic), default=None)


def _name(corpus: str) -> str:
    return NAMES.get(corpus, corpus.removeprefix("crossner_").removesuffix("_devtest").replace("_", " "))


def _table(cells: dict[str, str]) -> Iterator[str]:
    """A table of one row, or of one line per cell if there are many."""
    if len(cells) <= 10:
        yield table_line(list(cells))
        yield table_line(["---:"] * len(cells))
        yield table_line(list(cells.values()))
        return
    yield from (table_line(["corpus", "F1"]), table_line(["---", "---:"]))
    yield from (table_line([name, value]) for name, value in cells.items())
