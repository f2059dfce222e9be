"""Learning curves: F1 by number of training sentences, plotted with matplotlib (extra `onoma[report]`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from onoma.errors import OnomaError
from onoma.files import atomic_write_bytes

# text is not converted to outlines, and equal curves give equal files
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "onoma"}


class Point(NamedTuple):
    """The result for one number of training sentences: the mean F1 over samples and its standard deviation."""

    sentences: int
    f1: float
    spread: float | None = None


Curves = Mapping[str, Sequence[Point]]


def require_plot(path: str | os.PathLike[str]) -> str:
    """The file format of a plot, from its name; an error if it is not supported. Call this before long computations."""
    known = new_figure().canvas.get_supported_filetypes()
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in known:
        raise OnomaError(f"a plot cannot be written to {path}. Fix: use .svg, or one of {', '.join(sorted(known))}.")
    return suffix


def plot_curves(curves: Curves, path: str | os.PathLike[str]) -> None:
    """Plot curves to a file; its extension selects the format (.svg, .png, .pdf)."""
    kind = require_plot(path)
    from matplotlib import rc_context

    with rc_context(SETTINGS), atomic_write_bytes(path) as file:
        draw_curves(curves).savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)


def draw_curves(curves: Curves) -> Any:
    """A matplotlib figure with one line per corpus on a logarithmic axis, and the spread over samples as a band."""
    figure = new_figure()
    axes = figure.subplots()
    for name, points in curves.items():
        ordered = sorted(points)
        sizes, means = [one.sentences for one in ordered], [one.f1 for one in ordered]
        (line,) = axes.plot(sizes, means, marker="o", label=name)
        if all(one.spread is not None for one in ordered):
            low = [one.f1 - (one.spread or 0.0) for one in ordered]
            high = [one.f1 + (one.spread or 0.0) for one in ordered]
            axes.fill_between(sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    ticks = sorted({one.sentences for points in curves.values() for one in points})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(size) for size in ticks])
    axes.minorticks_off()  # a logarithmic axis would add labels such as 3×10¹
    axes.set_xlabel("training sentences")
    axes.set_ylabel("strict F1 on test")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def new_figure(size: tuple[float, float] = (6, 4), layout: Literal["constrained"] | None = "constrained") -> Any:
    """A figure without pyplot, which keeps all figures in memory and may need a display; `size` is in inches."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise OnomaError(f'plots need {error.name}. Fix: pip install "onoma[report]".') from error
    return Figure(figsize=size, layout=layout)
