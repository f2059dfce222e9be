"""Pictures of scores, vectors and training, drawn with matplotlib (extra `onoma[report]`).

As those of `onoma.evaluation.plots`, they are drawn and written in the style of `plot_style`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onoma.evaluation.curves import draw_curves
from onoma.evaluation.history import History, StageHistory
from onoma.evaluation.plot_style import (
    BLUE,
    COLOURS,
    DASHES,
    FONT_SIZE,
    GREEN,
    INK,
    MARKERS,
    ORANGE,
    PAPER,
    RED,
    SOFT,
    add_legend,
    figure_with_margins,
    legend_of_models,
    shorten,
    width_in_inches,
)
from onoma.evaluation.scored import (
    LOGITS,
    THRESHOLDS,
    Calibration,
    ScoreDistribution,
    ThresholdCurve,
    ThresholdCurves,
)
from onoma.evaluation.vectors import Projection

SHOWN_PANELS = 12
"""Types in a picture with one panel per type."""


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
            axes.vlines(score, low, high, color=colour, linewidth=1.2)
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
    _mark_thresholds(axes, curve.used)
    axes.grid()


def _mark_thresholds(axes: Any, places: Sequence[float]) -> None:
    """Vertical lines with one entry in the legend; a folder of several models has several thresholds."""
    label = "thresholds used" if len(places) > 1 else "threshold used"
    for number, place in enumerate(places):
        axes.axvline(place, color=INK, linewidth=1, linestyle=(0, (3, 2)), label="_" if number else label)


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
        _mark_thresholds(axes, [_logit(value) for value in one.used if 0 < value < 1])
        axes.set_title(f"{shorten(name)} ({sum(one.entity) + one.unseen:,})", loc="left")
    marks = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
    places = [_logit(mark) for mark in marks]
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


def _logit(score: float) -> float:
    return float(np.log(score) - np.log1p(-score))


def _smooth(counts: Any) -> Any:
    """A density: a histogram smoothed by a Gaussian kernel of one bin and a half, and reflected at both ends."""
    kernel = np.exp(-0.5 * (np.arange(-5, 6) / 1.5) ** 2)
    smooth = np.convolve(np.pad(counts, 5, mode="symmetric"), kernel / kernel.sum(), mode="valid")
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
            alpha=0.95,
            label=shorten(name),
            zorder=2 if number < most else 1,  # types with a colour of their own are in front
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
