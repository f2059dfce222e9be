"""The table of docs/systems/choose.md: the five systems side by side, by setting, from the records."""

from __future__ import annotations

from figures import Figures, table_line
from reproduction import NOT_MEASURED, NOTHING

SYSTEMS = ("BINDER", "SUNER", "SCL-RAI", "NerCo", "PUnifiedNER")
SETTINGS: dict[str, tuple[str | None, ...]] = {
    "CoNLL-2003: English, flat": (
        "binder/supervised/conll2003/mpnet-base/f1",
        "suner/supervised/conll2003/mpnet-base/f1",
        "scl-rai/supervised/conll2003/mpnet-base/f1",
        "nerco/supervised/conll2003/mpnet-base/f1",
        "punifiedner/single/conll2003/flan-t5-small/f1",
    ),
    "GENIA: English, nested": (
        "binder/supervised/genia/mpnet-base/f1",
        "suner/supervised/genia/mpnet-base/f1",
        "scl-rai/supervised/genia/mpnet-base/f1",
        None,
        "punifiedner/single/genia/flan-t5-small/f1",
    ),
    "Weibo: Chinese, flat": (
        "binder/supervised/weibo/bert-zh/f1",
        "suner/supervised/weibo/bert-zh/f1",
        "scl-rai/supervised/weibo/bert-zh/f1",
        "nerco/supervised/weibo/bert-zh/f1",
        "punifiedner/single/weibo/t5-bert-zh/f1",
    ),
    "CoNLL-2003, one model for several corpora": (
        "binder/joint/conll2003/mpnet-base/f1",
        "suner/joint/conll2003/mpnet-base/f1",
        "scl-rai/joint/conll2003/mpnet-base/f1",
        "nerco/several-corpora/conll2003/mpnet-base/f1",
        "punifiedner/joint/conll2003/flan-t5-small/f1",
    ),
    "MIT Restaurant, no training on it": (
        "embedded/zero-shot/mit_restaurant/gte-small/f1",
        "suner/zero-shot/mit_restaurant/gte-small/f1",
        None,
        None,
        "punifiedner/zero-shot/mit_restaurant/flan-t5-small/f1",
    ),
    "MIT Restaurant, 20 sentences": (
        "embedded/tuned-20/mit_restaurant/gte-small/f1",
        "suner/20-shot/mit_restaurant/gte-small/f1",
        "scl-rai/20-shot/mit_restaurant/gte-small/f1",
        "nerco/20-shot/mit_restaurant/gte-small/f1",
        "punifiedner/20-shot/mit_restaurant/flan-t5-small/f1",
    ),
    "BC5CDR, labels by a dictionary": (
        "binder/distant-overlapping/bc5cdr/mpnet-base/f1",
        "suner/distant-overlapping/bc5cdr/mpnet-base/f1",
        "scl-rai/distant/bc5cdr/mpnet-base/f1",
        "nerco/distant/bc5cdr/mpnet-base/f1",
        "punifiedner/distant/bc5cdr/flan-t5-small/f1",
    ),
    "CoNLL-2003, labels by a knowledge base": (
        "binder/distant-overlapping/conll2003/mpnet-base/f1",
        "suner/distant-overlapping/conll2003/mpnet-base/f1",
        "scl-rai/distant/conll2003/mpnet-base/f1",
        "nerco/distant/conll2003/mpnet-base/f1",
        "punifiedner/distant/conll2003/flan-t5-small/f1",
    ),
    "GENIA, sentences per second on a GPU": (
        "binder/speed/genia/gte-small/sentences_per_s",
        "suner-fused/speed/genia/gte-small/sentences_per_s",
        "scl-rai/speed/genia/gte-small/sentences_per_s",
        None,
        "punifiedner/speed/genia/flan-t5-small/sentences_per_s",
    ),
}
"""The metric of each system, in the order of SYSTEMS; None if it cannot do this."""


def render(figures: Figures) -> str:
    """One row per setting, one column per system."""
    lines = [table_line(["F1 on test", *SYSTEMS]), table_line(["---"] * (1 + len(SYSTEMS)))]
    lines += [table_line([name, *(_cell(one, figures) for one in metrics)]) for name, metrics in SETTINGS.items()]
    return "\n".join(lines)


def _cell(metric: str | None, figures: Figures) -> str:
    if metric is None:
        return NOTHING
    figure = figures.find(metric)
    return NOT_MEASURED if figure is None else f"{figure}, {metric.split('/')[3]}"
