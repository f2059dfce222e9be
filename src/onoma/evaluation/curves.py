"""Learning curves: F1 over the number of training sentences, drawn with matplotlib (extra `onoma[report]`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onoma.data.files import atomic_write_bytes
from onoma.errors import OnomaError

# letters stay letters, and the same curves give the same file
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "onoma"}


class Point(NamedTuple):
    """What a number of training sentences gives: the mean F1 over samples, and its standard deviation."""

    sentences: int
    f1: float
    spread: float | None = None


Curves = Mapping[str, Sequence[Point]]


def require_plot(path: str | os.PathLike[str]) -> str:
    """The format in which a plot with this name is written; an error if it cannot be. To be asked before long work."""
    known = _new_figure().canvas.get_supported_filetypes()
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in known:
        raise OnomaError(f"a plot cannot be written to {path}: name it .svg, or one of {', '.join(sorted(known))}")
    return suffix


def plot_curves(curves: Curves, path: str | os.PathLike[str]) -> None:
    """Draw curves into a file; its name says the format (.svg, .png, .pdf)."""
    kind = require_plot(path)
    from matplotlib import rc_context

    with rc_context(SETTINGS), atomic_write_bytes(path) as file:
        draw_curves(curves).savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)


def draw_curves(curves: Curves) -> Any:
    """A matplotlib figure: one line a corpus on a logarithmic axis, the spread over samples as a band."""
    figure = _new_figure()
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
    axes.minorticks_off()  # a logarithmic axis would write 3×10¹ between them
    axes.set_xlabel("training sentences")
    axes.set_ylabel("strict F1 on test")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _new_figure() -> Any:
    """A figure of its own, without pyplot, which keeps every figure in memory and may want a display."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise OnomaError(f'plots need {error.name}: pip install "onoma[report]"') from error
    return Figure(figsize=(6, 4), layout="constrained")
