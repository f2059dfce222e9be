"""Pictures of an analysis, drawn with matplotlib (extra `onoma[report]`).

Each `draw_...` function returns a matplotlib figure; they are drawn and written in the style of `plot_style`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onoma.evaluation.analysis import Study
from onoma.evaluation.pairs import ERROR_KINDS
from onoma.evaluation.plot_style import (
    BLUE,
    COLOURS,
    FONT_SIZE,
    GREEN,
    HATCHES,
    INK,
    LINE,
    MARKERS,
    ORANGE,
    PAPER,
    PURPLE,
    RED,
    TEAL,
    YELLOW,
    add_legend,
    figure_with_margins,
    legend_of_models,
    shorten,
    width_in_inches,
)
from onoma.evaluation.render import NOTHING, most_confused
from onoma.evaluation.report import Report
from onoma.evaluation.scores import Scores

SHOWN_TYPES = 30
"""Types in a picture with one row per type."""
SHOWN_GROUPS = 20
"""Types in a confusion matrix."""
_STRONGEST = 0.45  # opacity of the fullest cell of a matrix: dark text stays legible on it in both themes
KIND_COLOURS = dict(zip(ERROR_KINDS, (TEAL, BLUE, PURPLE, ORANGE, YELLOW, RED, GREEN), strict=True))
KIND_HATCHES = dict(zip(ERROR_KINDS, HATCHES, strict=True))


def draw_summary(study: Study) -> Any:
    """Strict F1 of all models on all corpora, with their confidence intervals."""
    names = [shorten(row[0].source.name) for row in study.analyses]
    left = width_in_inches(names) + 0.15
    columns, head = legend_of_models(study.models, 4.8 - left)
    figure = figure_with_margins(4.8, 0.6 + head + (0.2 + 0.14 * len(study.models)) * len(names), left, top=0.05 + head)
    axes = figure.subplots()
    named = set[str]()
    for place, row in enumerate(study.analyses):
        for one in row:
            number = study.models.index(one.model)
            value, shift = 100 * one.report.strict.micro.f1, (number - (len(study.models) - 1) / 2) * 0.22
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
            if one.report.intervals is not None:
                f1 = one.report.intervals.f1
                axes.hlines(place + shift, 100 * f1.low, 100 * f1.high, color=style["color"], linewidth=1.8)
            label = shorten(one.model) if one.model not in named else None
            named.add(one.model)
            axes.plot(value, place + shift, linestyle="none", markersize=6, label=label, clip_on=False, **style)
    axes.set(xlim=(0, 100), ylim=(len(names) - 0.5, -0.5), xlabel="strict F1 with 95% interval")
    axes.set_yticks(range(len(names)), names, color=INK)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.grid(axis="x")
    if head:
        add_legend(axes, columns)
    return figure


def draw_types(reports: Mapping[str, Report]) -> Any:
    """F1 of each type, as points on lines; several models side by side."""
    first, several = next(iter(reports.values())), len(reports) > 1
    names = sorted(first.strict.types, key=lambda name: (-first.strict.types[name].gold, name))[:SHOWN_TYPES]
    shown = [f"{shorten(name)} ({first.strict.types[name].gold:,})" for name in names]
    left, row_height = width_in_inches(shown) + 0.15, 0.15 + 0.12 * len(reports)
    columns, head = legend_of_models(list(reports), 6 - left)
    figure = figure_with_margins(6, 0.6 + head + row_height * len(names), left, top=0.05 + head)
    axes, rows = figure.subplots(), np.arange(len(names))
    for number, (model, report) in enumerate(reports.items()):
        shift = (number - (len(reports) - 1) / 2) * 0.8 / len(reports)
        values = [100 * report.strict.types.get(name, Scores(0, 0, 0, 0)).f1 for name in names]
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        axes.hlines(rows + shift, 0, values, color=colour, linewidth=1.2, alpha=0.6)
        axes.plot(values, rows + shift, marker, color=colour, markersize=5.5, label=shorten(model), clip_on=False)
    axes.set(xlim=(0, 100), ylim=(len(names) - 0.5, -0.5), xlabel="strict F1 (gold mentions in brackets)")
    axes.set_yticks(rows, shown, color=INK)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.grid(axis="x")
    if several:
        for edge in rows[1:] - 0.5:
            axes.axhline(edge, color=LINE, linewidth=0.6)
        add_legend(axes, columns)
    return figure


def draw_confusion(report: Report) -> Any:
    """Gold types by predicted types as a heat map: counts, shaded by their share of the row."""
    names, _ = most_confused(report, SHOWN_GROUPS)
    counts = report.confusion.table(names)
    shown = [*map(shorten, names), NOTHING]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    cell = 0.42 if len(shown) > 10 else 0.56
    left, side = width_in_inches(shown) + 0.45, cell * len(shown)
    top = 0.75 * width_in_inches(shown) + 0.45
    figure = figure_with_margins(
        left + side + 0.75 * width_in_inches(shown[-2:]) + 0.1,
        side + top + 0.1,
        left,
        0.75 * width_in_inches(shown[-2:]) + 0.1,
        0.1,
        top,
    )
    axes = figure.subplots()
    for row, column in np.ndindex(counts.shape):
        if counts[row, column]:
            colour = GREEN if row == column else RED
            opacity = 0.06 + (_STRONGEST - 0.06) * shares[row, column]
            axes.add_patch(_rectangle(column, row, colour, opacity))
            axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", size=FONT_SIZE - 1)
    size = len(shown)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), ylabel="gold")
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(size), shown, rotation=45, ha="left", va="bottom", rotation_mode="anchor", color=INK)
    axes.set_yticks(range(size), shown, color=INK)
    axes.tick_params(top=False, bottom=False, left=False, labeltop=True, labelbottom=False, pad=3)
    axes.set_title("predicted", loc="left", pad=0.75 * width_in_inches(shown) * 72 + 14)
    for edge in np.arange(size + 1) - 0.5:
        wide = 1.4 if edge == size - 1.5 else 0.6
        axes.axhline(edge, color=LINE, linewidth=wide)
        axes.axvline(edge, color=LINE, linewidth=wide)
    axes.spines[:].set_visible(False)
    return figure


def _rectangle(column: int, row: int, colour: str, opacity: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, alpha=opacity, linewidth=0)


def draw_error_kinds(reports: Mapping[str, Report]) -> Any:
    """The numbers of errors by kind, as bars; several models side by side."""
    kinds = [kind for kind in ERROR_KINDS if any(one.error_kinds.kinds[kind] for one in reports.values())]
    shown = [ERROR_KINDS[kind] for kind in kinds]
    left, height = width_in_inches(shown) + 0.1, 0.8 / len(reports)
    columns, head = legend_of_models(list(reports), 5.2 - left)
    figure = figure_with_margins(
        5.2, 0.55 + head + (0.3 + 0.12 * (len(reports) - 1)) * len(kinds), left, 0.6, top=0.05 + head
    )
    axes, rows = figure.subplots(), np.arange(len(kinds))
    for number, (model, report) in enumerate(reports.items()):
        values = [report.error_kinds.kinds[kind] for kind in kinds]
        place = rows + (number - (len(reports) - 1) / 2) * height
        bars = axes.barh(
            place,
            values,
            0.9 * height,
            color=COLOURS[number % len(COLOURS)],
            hatch=HATCHES[number % len(HATCHES)],
            edgecolor=PAPER,
            linewidth=0,
            label=shorten(model),
        )
        axes.bar_label(bars, [f"{value:,}" for value in values], padding=3, size=FONT_SIZE - 1)
    axes.set(ylim=(len(kinds) - 0.5, -0.5), xlabel="errors")
    axes.set_yticks(rows, shown, color=INK)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.xaxis.get_major_locator().set_params(integer=True)
    if head:
        add_legend(axes, columns)
    return figure


def draw_type_errors(report: Report) -> Any:
    """The errors of each type by kind, as stacked bars."""
    types = report.error_kinds.types
    names = sorted(types, key=lambda name: (-sum(types[name].values()), name))[:SHOWN_TYPES]
    kinds = [kind for kind in ERROR_KINDS if any(types[name][kind] for name in names)]
    shown = [shorten(name) for name in names]
    head = 0.1 + 0.2 * -(-len(kinds) // 2)
    figure = figure_with_margins(5.6, 0.55 + head + 0.27 * len(names), width_in_inches(shown) + 0.1, 0.2, top=head)
    axes, left = figure.subplots(), np.zeros(len(names))
    for kind in kinds:
        values = np.array([types[name][kind] for name in names])
        axes.barh(
            range(len(names)),
            values,
            0.7,
            left,
            color=KIND_COLOURS[kind],
            hatch=KIND_HATCHES[kind],
            label=ERROR_KINDS[kind],
            edgecolor=PAPER,
            linewidth=0.8,
        )
        left += values
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel="errors")
    axes.set_yticks(range(len(names)), shown, color=INK)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.xaxis.get_major_locator().set_params(integer=True)
    add_legend(axes, 2, handlelength=1.6)
    return figure


def draw_slices(rows: Mapping[str, Any], xlabel: str) -> Any:
    """Scores of slices: F1, or recall where precision is not defined; numbers of gold mentions are below the bars."""
    names = [f"{name}\n({one.gold:,})" for name, one in rows.items()]
    has_f1 = all(isinstance(one, Scores) for one in rows.values())
    values = [100 * (one.f1 if isinstance(one, Scores) else one.recall) for one in rows.values()]
    figure = figure_with_margins(max(2.6, 0.7 + 0.62 * len(names)), 2.4, 0.55, bottom=0.72, top=0.2)
    axes = figure.subplots()
    bars = axes.bar(range(len(names)), values, 0.66, color=BLUE if has_f1 else TEAL)
    axes.bar_label(bars, [f"{value:.0f}" for value in values], padding=2, size=FONT_SIZE - 1)
    axes.set(ylim=(0, 100), xlabel=f"{xlabel} (gold mentions)", ylabel="strict F1" if has_f1 else "recall")
    axes.set_xticks(range(len(names)), names, color=INK)
    axes.tick_params(axis="x", length=0)
    return figure
