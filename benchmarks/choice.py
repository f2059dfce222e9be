"""The tables of docs/systems/choose.md: systems side by side, by job, from the records. Every cell is measured."""

from __future__ import annotations

from typing import NamedTuple

from figures import HISTORIC, Figure, Figures, table_line

CORPUS = "{corpus}"


class Table(NamedTuple):
    """Corpora as rows, systems as columns; metrics of columns have a place for the corpus."""

    measure: str
    corpora: dict[str, str]
    columns: dict[str, str]


ENGLISH = {
    "CoNLL-2003, news": "conll2003",
    "GENIA, biology, nested": "genia",
    "BC5CDR, medicine": "bc5cdr",
    "WNUT-17, social media": "wnut17",
    "MIT Movie, queries": "mit_movie_eng",
    "MIT Restaurant, queries": "mit_restaurant",
}
TABLES = {
    "full": Table(
        "F1",
        ENGLISH,
        {
            "BINDER, a model per corpus": "binder/alone,supervised/{corpus}/mpnet-base/f1",
            "SUNER, one model": "suner/joint/{corpus}/mpnet-base/f1",
            "PUnifiedNER, a model per corpus": "punifiedner/single/{corpus}/flan-t5-small/f1",
            "PUnifiedNER, one model": "punifiedner/joint/{corpus}/flan-t5-small/f1",
        },
    ),
    "chinese": Table(
        "F1",
        {"Weibo, social media": "weibo", "Resume, curricula vitae": "resume"},
        {
            "NerCo": "nerco/supervised/{corpus}/bert-zh/f1",
            "NerCo without lattice (BERT-CRF)": "nerco/bert-crf/{corpus}/bert-zh/f1",
            "PUnifiedNER": "punifiedner/single/{corpus}/flan-t5-small-zh/f1",
        },
    ),
    "few": Table(
        "F1",
        {"MIT Movie": "mit_movie_eng", "MIT Restaurant": "mit_restaurant"},
        {
            "BINDER (embedded), no training": "embedded/zero-shot/{corpus}/gte-small/f1",
            "SUNER, no training": "suner/zero-shot/{corpus}/gte-small/f1",
            "BINDER (embedded), 20 sentences": "embedded/tuned-20/{corpus}/gte-small/f1",
            "SUNER, 20 sentences": "suner/20-shot/{corpus}/gte-small/f1",
        },
    ),
    "distant": Table(
        "F1",
        {"BC5CDR, a dictionary": "bc5cdr", "CoNLL-2003, a knowledge base": "conll2003"},
        {
            "BINDER": "binder/distant/{corpus}/mpnet-base/f1",
            "BINDER, sampled negatives": "binder/distant-overlapping/{corpus}/mpnet-base/f1",
            "SCL-RAI": "scl-rai/distant/{corpus}/mpnet-base/f1",
        },
    ),
    "speed": Table(
        "sentences per second",
        {"GENIA": "genia"},
        {
            "BINDER": "binder/speed/{corpus}/mpnet-base/sentences_per_s",
            "SUNER, fused": "suner-fused/speed/{corpus}/mpnet-base/sentences_per_s",
            "SUNER, two stages": "suner/speed/{corpus}/mpnet-base/sentences_per_s",
            "PUnifiedNER": "punifiedner/speed/{corpus}/flan-t5-small/sentences_per_s",
        },
    ),
}
"""By the name in the page. A column that has settings with commas takes the first one with a record."""


def render(figures: Figures, name: str) -> str:
    """A table, and below it why some of its figures cannot be measured again."""
    table = TABLES[name]
    cells = {
        row: [_find(figures, one, corpus) for one in table.columns.values()] for row, corpus in table.corpora.items()
    }
    heads = [f"{column}: {metric.split('/')[3]}" for column, metric in table.columns.items()]
    lines = [table_line([table.measure, *heads]), table_line(["---", *["---:"] * len(heads)])]
    lines += [table_line([row, *map(str, found)]) for row, found in cells.items()]
    reasons = dict.fromkeys(one.historic for found in cells.values() for one in found if one.historic)
    notes = [f"\n{HISTORIC} cannot be measured again as it stands: {'; or '.join(reasons)}."] if reasons else []
    return "\n".join([*lines, *notes])


def _find(figures: Figures, metric: str, corpus: str) -> Figure:
    system, settings, *rest = metric.replace(CORPUS, corpus).split("/")
    for setting in settings.split(","):
        if (figure := figures.find("/".join((system, setting, *rest)))) is not None:
            return figure
    raise LookupError(f"there is no record of {metric.replace(CORPUS, corpus)}: remove its row or its column")
