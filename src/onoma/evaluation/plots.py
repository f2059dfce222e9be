"""Pictures of an analysis, drawn with matplotlib (extra `onoma[report]`).

Each `draw_...` function returns a matplotlib figure; they are drawn and written in the style of `plot_style`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onoma.evaluation.analysis import Study
from onoma.evaluation.curves import draw_curves
from onoma.evaluation.history import History, StageHistory
from onoma.evaluation.pairs import ERROR_KINDS
from onoma.evaluation.plot_style import (
    BLUE,
    COLOURS,
    DASHES,
    FONT_SIZE,
    GREEN,
    INK,
    LINE,
    MARKERS,
    ORANGE,
    PAPER,
    PURPLE,
    RED,
    SKY,
    SOFT,
    YELLOW,
    add_legend,
    figure_with_margins,
    legend_of_models,
    shorten,
    width_in_inches,
)
from onoma.evaluation.render import NOTHING, most_confused
from onoma.evaluation.report import Report
from onoma.evaluation.scored import (
    LOGITS,
    THRESHOLDS,
    Calibration,
    ScoreDistribution,
    ThresholdCurve,
    ThresholdCurves,
)
from onoma.evaluation.scores import Scores
from onoma.evaluation.vectors import Projection

SHOWN_TYPES = 30
"""Types in a picture with one row per type."""
SHOWN_PANELS = 12
"""Types in a picture with one panel per type."""
SHOWN_GROUPS = 20
"""Types in a confusion matrix."""
_STRONGEST = 0.55  # opacity of the fullest cell of a matrix: dark text stays legible on it in both themes
KIND_COLOURS = dict(zip(ERROR_KINDS, (SKY, BLUE, PURPLE, ORANGE, YELLOW, RED, GREEN), strict=True))


def draw_summary(study: Study) -> Any:
    """Strict F1 of all models on all corpora, with their confidence intervals."""
    shown = [row for row in study.analyses if any(one.report.strict.types for one in row)]
    names = [shorten(row[0].corpus.name) for row in shown]
    left = width_in_inches(names) + 0.15
    columns, head = legend_of_models(study.models, 4.8 - left)
    figure = figure_with_margins(4.8, 0.6 + head + (0.2 + 0.14 * len(study.models)) * len(names), left, top=0.05 + head)
    axes = figure.subplots()
    for place, row in enumerate(shown):
        for number, one in enumerate(row):
            if one.report.intervals is None:
                continue
            f1, shift = one.report.intervals.f1, (number - (len(row) - 1) / 2) * 0.22
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
            axes.hlines(place + shift, 100 * f1.low, 100 * f1.high, color=style["color"], linewidth=1.8)
            label = shorten(one.model) if place == 0 else None
            axes.plot(
                100 * f1.value, place + shift, linestyle="none", markersize=6, label=label, clip_on=False, **style
            )
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
        bars = axes.barh(place, values, 0.9 * height, color=COLOURS[number % len(COLOURS)], label=shorten(model))
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
            label=ERROR_KINDS[kind],
            edgecolor=PAPER,
            linewidth=0.8,
        )
        left += values
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel="errors")
    axes.set_yticks(range(len(names)), shown, color=INK)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.xaxis.get_major_locator().set_params(integer=True)
    add_legend(axes, 2, handlelength=1.0)
    return figure


def draw_slices(rows: Mapping[str, Any], xlabel: str) -> Any:
    """Scores of slices: F1, or recall where precision is not defined, and the number of gold mentions as labels."""
    names = list(rows)
    has_f1 = all(isinstance(one, Scores) for one in rows.values())
    values = [100 * (one.f1 if isinstance(one, Scores) else one.recall) for one in rows.values()]
    figure = figure_with_margins(max(2.6, 0.7 + 0.62 * len(names)), 2.2, 0.55, bottom=0.55, top=0.15)
    axes = figure.subplots()
    bars = axes.bar(range(len(names)), values, 0.66, color=BLUE if has_f1 else SKY)
    axes.bar_label(bars, [f"{value:.0f}" for value in values], padding=2, size=FONT_SIZE - 1)
    axes.set(ylim=(0, 100), xlabel=xlabel, ylabel="strict F1" if has_f1 else "recall")
    axes.set_xticks(range(len(names)), names, color=INK)
    axes.tick_params(axis="x", length=0)
    return figure


def draw_calibration(models: Mapping[str, Calibration]) -> Any:
    """Scores against the share of gold mentions; well calibrated scores are on the diagonal."""
    columns, head = legend_of_models(list(models), 3.8)
    figure = figure_with_margins(4.6, 3.9 + head, 0.65, top=0.1 + head)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
    for number, (model, found) in enumerate(models.items()):
        score, share = [one.score for one in found.bins], [one.share for one in found.bins]
        low, high = zip(*(one.interval() for one in found.bins), strict=True)
        colour = COLOURS[number % len(COLOURS)]
        if len(models) == 1:
            axes.vlines(score, low, high, color=colour, linewidth=1.2, alpha=0.6)
        marker, dashes = MARKERS[number % len(MARKERS)], DASHES[number % len(DASHES)]
        axes.plot(
            score,
            share,
            marker=marker,
            linestyle=dashes,
            color=colour,
            markersize=5,
            label=shorten(model),
            clip_on=False,
        )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="score", ylabel="share of gold mentions")
    axes.grid()
    if head:
        add_legend(axes, columns, handletextpad=0.4)
    return figure


def draw_thresholds(curves: ThresholdCurves) -> Any:
    """Precision, recall and F1 by threshold: all types, then one panel for each of the most frequent types."""
    frequent = sorted(curves.types, key=lambda name: -curves.types[name].scores[0].gold)[:SHOWN_PANELS]
    panels = {"all types (micro)": curves.micro} | {name: curves.types[name] for name in frequent}
    if len(curves.types) == 1:
        del panels[frequent[0]]
    figure, grid = _panels(len(panels))
    for axes, (name, curve) in zip(grid, panels.items(), strict=False):
        _draw_threshold_curve(axes, curve)
        axes.set_title(f"{shorten(name)} ({curve.scores[0].gold:,})", loc="left")
    _finish_panels(figure, grid, len(panels), "threshold", {"xlim": (0, 1), "ylim": (0, 1.03)})
    return figure


def _draw_threshold_curve(axes: Any, curve: ThresholdCurve) -> None:
    lines = {"precision": (ORANGE, DASHES[1]), "recall": (GREEN, DASHES[2]), "f1": (BLUE, DASHES[0])}
    for name, (colour, dashes) in lines.items():
        values = [getattr(one, name) if name != "precision" or one.predicted else np.nan for one in curve.scores]
        width = 1.8 if name == "f1" else 1.3
        axes.plot(THRESHOLDS, values, color=colour, linestyle=dashes, linewidth=width, label=name.replace("f1", "F1"))
    if curve.own is not None:
        axes.axvline(curve.own, color=INK, linewidth=1, linestyle=(0, (3, 2)), label="threshold of the model")
    axes.grid()


def draw_distributions(distributions: Mapping[str, ScoreDistribution]) -> Any:
    """Densities of the logits of scores: gold mentions, other spans, and the threshold, one panel per type."""
    shown = dict(list(distributions.items())[:SHOWN_PANELS])
    figure, grid = _panels(len(shown))
    centres = (LOGITS[1:] + LOGITS[:-1]) / 2
    for axes, (name, one) in zip(grid, shown.items(), strict=False):
        for counts, label, colour, dashes in (
            (one.entity, "gold mentions", BLUE, DASHES[0]),
            (one.other, "other spans", RED, DASHES[1]),
        ):
            density = _smooth(np.array(counts, np.float64))
            axes.plot(centres, density, color=colour, linestyle=dashes, linewidth=1.5, label=label)
            axes.fill_between(centres, density, color=colour, alpha=0.12, linewidth=0)
        if one.threshold is not None and 0 < one.threshold < 1:
            place = float(np.log(one.threshold) - np.log1p(-one.threshold))
            axes.axvline(place, color=INK, linewidth=1, linestyle=(0, (3, 2)), label="threshold of the model")
        axes.set_title(f"{shorten(name)} ({sum(one.entity) + one.unseen:,})", loc="left")
    marks = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
    places = [float(np.log(mark) - np.log1p(-mark)) for mark in marks]
    limits = {
        "xlim": (LOGITS[0], LOGITS[-1]),
        "yticks": [],
        "xticks": places,
        "xticklabels": [f"{one:g}" for one in marks],
    }
    _finish_panels(figure, grid, len(shown), "score (logarithmic odds)", limits)
    for axes in grid[: len(shown)]:
        axes.set_ylim(0, None)
    return figure


def _smooth(counts: Any) -> Any:
    """A density: a histogram smoothed by a Gaussian kernel of one bin and a half."""
    kernel = np.exp(-0.5 * (np.arange(-5, 6) / 1.5) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="same")
    return smooth / max(smooth.sum() * (LOGITS[1] - LOGITS[0]), 1e-12)


def _panels(count: int) -> tuple[Any, list[Any]]:
    top = 0.62  # for the legend and titles
    columns = min(3, count)
    rows = -(-count // columns)
    width, height = 2.75 * columns + 0.3, top + 1.75 * rows + 0.45
    figure = figure_with_margins(max(width, 4.2), height, 0.45, 0.2, 0.5, top)
    figure.subplots_adjust(wspace=0.18, hspace=0.42)
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=False).flatten().tolist()


def _finish_panels(figure: Any, grid: list[Any], count: int, xlabel: str, limits: dict[str, Any]) -> None:
    """Limits and one legend for all panels; the axes of unused panels are removed."""
    for axes in grid[:count]:
        axes.set(**limits)
        axes.tick_params(labelbottom=True, labelsize=FONT_SIZE - 1.5)
    for axes in grid[count:]:
        axes.remove()
    figure.supxlabel(xlabel, size=FONT_SIZE, y=0.06 / figure.get_figheight())
    handles, labels = grid[0].get_legend_handles_labels()
    height = figure.get_figheight()
    figure.legend(handles, labels, loc="upper left", ncols=4, bbox_to_anchor=(0, 1 - 0.02 / height), columnspacing=1.3)


def draw_projection(projection: Projection) -> Any:
    """Vectors of gold mentions in two dimensions; the most frequent types have a colour and marker of their own."""
    labels = np.array(projection.labels, dtype=object)
    names, counts = np.unique(labels.astype(str), return_counts=True)
    most = len(COLOURS) * 2 - 1
    frequent = names[np.argsort(-counts, kind="stable")][:most].tolist()
    shown = {name: labels == name for name in frequent}
    if len(names) > most:
        shown[f"{len(names) - most} other types"] = ~np.isin(labels.astype(str), frequent)
    legend = width_in_inches([shorten(name) for name in shown]) + 0.5
    figure = figure_with_margins(4.9 + legend, 4.4, 0.35, legend, 0.4)
    axes = figure.subplots()
    for number, (name, rows) in enumerate(shown.items()):
        places = projection.places[rows]
        colour = COLOURS[number % len(COLOURS)] if number < most else SOFT
        filled = number < len(COLOURS)
        axes.scatter(
            *places.T,
            s=22,
            marker=MARKERS[number % len(MARKERS)],
            facecolors=colour if filled else "none",
            edgecolors=PAPER if filled else colour,
            linewidths=0.5 if filled else 1.0,
            alpha=0.85,
            label=shorten(name),
        )
    first, second = (f"{share:.0%} of the variance" for share in projection.explained)
    axes.set(xticks=[], yticks=[], xlabel=first, ylabel=second)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.3)
    return figure


def draw_history(stage: StageHistory) -> Any:
    """Loss and dev scores by step; losses at the left axis, scores at the right one."""
    figure = figure_with_margins(5, 2.9, 0.65, 0.65, top=0.35)
    axes = figure.subplots()
    score_axes = None
    handles = []
    styles = {"training loss": (SOFT, "-", ""), "dev loss": (RED, DASHES[1], "s"), "dev F1": (BLUE, "-", "o")}
    for name, points in stage.lines.items():
        colour, dashes, marker = styles[name]
        is_score = name == "dev F1"
        if is_score:
            score_axes = axes.twinx() if len(stage.lines) > 1 else axes
        own = score_axes if is_score and score_axes is not None else axes
        steps, values = zip(*points, strict=True)
        marker = marker if len(points) > 1 else "o"  # a line of one point would be invisible
        handles += own.plot(
            steps,
            values,
            color=colour,
            linestyle=dashes,
            marker=marker,
            markersize=4,
            linewidth=1.4,
            label=name,
            clip_on=False,
        )
    axes.set(xlabel="step", ylabel="loss" if score_axes is not axes else "dev F1")
    if score_axes is not None and score_axes is not axes:
        score_axes.set_ylabel("dev F1")
        score_axes.spines.right.set_visible(True)
        score_axes.set_ylim(0, 100)
    axes.grid(axis="x")
    add_legend(axes, 3, handles=handles)
    return figure


def draw_sizes(history: History) -> Any:
    """F1 by the number of training sentences of a few-shot run."""
    return draw_curves(history.sizes)
