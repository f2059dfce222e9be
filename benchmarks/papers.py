"""The tables of the five papers, from the folder paper_tables: what they report, and the metrics of our records."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from onoma.errors import OnomaError

FOLDER = Path(__file__).with_name("paper_tables")
ANY_ENCODER = "*"
COLUMN = "{}"


class Strict(BaseModel):
    """Unknown keys are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PaperRow(Strict):
    """A row of a table: the paper's figures in the order of the columns, and the metric of ours."""

    name: str
    ours: str | None = None  # a metric, with {} for the column and * for the encoder
    paper: list[int | float | None] = []
    without: list[str] = []  # columns that do not apply
    encoders: list[str] = []  # instead of those of the table
    command: str | None = None  # instead of that of the table
    reused: bool = False  # the records belong to another row, which has their published figures

    def figure(self, column: int) -> float | None:
        """The paper's figure in a column."""
        return self.paper[column] if column < len(self.paper) else None


class Claim(Strict):
    """Something that a paper says: that one metric is above another one. The guess is shown if we do not see it."""

    text: str
    more: str
    less: str
    paper: tuple[float, float] | None = None  # both figures, if they are not those of the two metrics
    shown_as: Literal["difference", "ratio"] = Field("difference", alias="as")
    p_value: str | None = None  # the metric of a paired bootstrap of both
    guess: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Claim:
        for metric in filter(None, (self.more, self.less, self.p_value)):
            _check_metric(metric)
        return self


class PaperTable(Strict):
    """A table or figure: its columns by name, each with what it puts into the metrics of the rows."""

    name: str
    about: str
    encoder: str | None = None  # of the paper, if it has this table
    encoders: list[str] = []  # ours; shown even if nothing is measured with them
    columns: dict[str, str | None] = {}  # None: cannot be measured
    rows: list[PaperRow] = []
    pictures: list[str] = []  # below docs
    command: str | None = None
    differences: list[str] = []
    claims: list[Claim] = []

    @model_validator(mode="after")
    def _check(self) -> PaperTable:
        for row in self.rows:
            if len(row.paper) > len(self.columns):
                raise ValueError(f"{self.name}, {row.name}: more figures than columns")
            for metric in filter(None, self.metrics(row).values()):
                _check_metric(metric)
        return self

    def metrics(self, row: PaperRow) -> dict[str, str | None]:
        """The metrics of a row by column."""
        return {
            name: None if row.ours is None or value is None or name in row.without else row.ours.replace(COLUMN, value)
            for name, value in self.columns.items()
        }

    def encoders_of(self, row: PaperRow) -> list[str]:
        """The encoders with which a row should be measured."""
        return row.encoders or self.encoders if row.ours else []


def _check_metric(metric: str) -> None:
    if metric.count("/") != 4 or metric.split("/")[3] != ANY_ENCODER:
        raise ValueError(f"a metric is system/setting/corpus/*/measure, got {metric!r}")


class Paper(Strict):
    """A paper with its tables."""

    title: str
    reference: str
    page: str  # below docs
    without_results: str
    tables: list[PaperTable]


class Papers(Strict):
    """All papers, and the encoders of our records by name."""

    encoders: dict[str, str]
    papers: dict[str, Paper]

    def published(self) -> dict[str, float]:
        """The figures of the papers by the metrics of ours, with * as encoder."""
        return dict(self._published())

    def _published(self) -> Iterator[tuple[str, float]]:
        for paper in self.papers.values():
            for table in paper.tables:
                for row in table.rows:
                    for column, metric in enumerate(table.metrics(row).values()):
                        figure = row.figure(column)
                        if metric is not None and figure is not None and not row.reused:
                            yield metric, figure


def read_papers(folder: Path = FOLDER) -> Papers:
    """Read index.yaml and the file of each paper that it lists; an error if one does not have the form above."""
    try:
        index = _read(folder / "index.yaml")
        papers = {name: _read(folder / f"{name}.yaml") for name in index["papers"]}
        return Papers.model_validate(index | {"papers": papers})
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise OnomaError(
            f"{folder.name}: {error}. Fix: correct the file; its keys are in benchmarks/papers.py"
        ) from error


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def split_corpora(metric: str) -> list[str]:
    """The metrics whose mean a metric is: one for each of the corpora that are joined by +."""
    system, setting, corpora, rest = metric.split("/", 3)
    return [f"{system}/{setting}/{corpus}/{rest}" for corpus in corpora.split("+")]


def is_mean(metric: str) -> bool:
    """Whether a metric is a mean over corpora."""
    return len(split_corpora(metric)) > 1


def without_encoder(metric: str) -> str:
    """A metric with * as its encoder."""
    system, setting, corpus, _, measure = metric.split("/")
    return "/".join((system, setting, corpus, ANY_ENCODER, measure))


def published_figure(metric: str, published: dict[str, float] | None = None) -> float | None:
    """What the papers report for a metric, whatever its encoder; of several corpora, the mean."""
    known = _published() if published is None else published
    found = [known.get(without_encoder(one)) for one in split_corpora(metric)]
    figures = [one for one in found if one is not None]
    return round(fmean(figures), 2) if len(figures) == len(found) else None


@cache
def _published() -> dict[str, float]:
    return read_papers().published()
