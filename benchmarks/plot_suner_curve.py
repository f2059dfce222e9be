"""Plot figure 3 of SUNER's paper, F1 by the number of training sentences: `python benchmarks/plot_suner_curve.py`.

The records are those of `python benchmarks/suner.py curve` (and `joint`); the result is written to
docs/images/suner-curve.svg.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from onoma.errors import OnomaError
from onoma.evaluation.curves import SETTINGS
from onoma.files import atomic_write_bytes
from papers import published_figure
from records import RESULTS, ROOT, main_with_errors, read_records
from suner import SIZES

PLOT = ROOT / "docs" / "images" / "suner-curve.svg"
CORPORA = {"mit_restaurant": "MIT Restaurant", "mit_movie_eng": "MIT Movie"}
ALL = 1000  # where the models that were trained on all sentences stand
LINES = {
    ("suner", "", "zero-shot"): "SUNER, 28 other corpora first",
    ("suner", "left-out-", "left-out"): "SUNER, the other seven corpora first",
    ("biaffine", "", ""): "biaffine classifier",
}
"""System, prefix of its few-shot settings and its zero-shot setting, and its name."""


def main() -> None:
    """Draw one panel per corpus and one line per start, with the standard deviation over samples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="mpnet-base")
    parser.add_argument("--records", type=Path, default=RESULTS / "suner.json")
    parser.add_argument("--output", type=Path, default=PLOT)
    arguments = parser.parse_args()
    rows = {row["metric"]: row for row in read_records(arguments.records)}
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, len(CORPORA))
    for axes, (corpus, title) in zip(panels, CORPORA.items(), strict=True):
        for (system, prefix, start), label in LINES.items():
            points = curve_points(rows, system, prefix, start, corpus, arguments.encoder)
            if points:
                places, values, spreads = zip(*points, strict=True)
                axes.errorbar(places, values, yerr=spreads, marker="o", capsize=3, label=label)
        _draw_all(axes, rows, corpus, arguments.encoder)
        axes.set(title=title, xlabel="training sentences", ylabel="strict F1 on test")
        axes.set_xscale("symlog", linthresh=20)
        axes.set_xticks([0, *SIZES, ALL], ["0", *map(str, SIZES), "all"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    handles, labels = panels[0].get_legend_handles_labels()
    if set(labels).isdisjoint(LINES.values()):
        raise OnomaError(
            f"{arguments.records} has no figures of {arguments.encoder} to plot. "
            "Fix: measure them with benchmarks/suner.py curve"
        )
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(SETTINGS), atomic_write_bytes(arguments.output) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
    print(f"written to {arguments.output}")


def curve_points(
    rows: dict[str, Any], system: str, prefix: str, start: str, corpus: str, encoder: str
) -> list[tuple[int, float, float]]:
    """Number of sentences, F1 and its standard deviation, of all points that were measured."""
    settings = {**({0: start} if start else {}), **{size: f"{prefix}{size}-shot" for size in SIZES}}
    found = {size: rows.get(f"{system}/{setting}/{corpus}/{encoder}/f1") for size, setting in settings.items()}
    return [(size, row["value"], row["spread"] or 0.0) for size, row in found.items() if row is not None]


def _draw_all(axes: Any, rows: dict[str, Any], corpus: str, encoder: str) -> None:
    """The joint model, which was trained on all sentences, and what the paper tells in numbers."""
    joint = rows.get(f"suner/joint/{corpus}/{encoder}/f1")
    if joint is not None:
        axes.errorbar(
            [ALL], [joint["value"]], yerr=[joint["spread"] or 0.0], marker="s", capsize=3, label="SUNER, joint"
        )
    published = {0: "zero-shot", 20: "20-shot", ALL: "joint"}
    values = [published_figure(f"suner/{setting}/{corpus}/{encoder}/f1") for setting in published.values()]
    axes.plot(list(published), values, "x", color="black", zorder=5, label="SUNER in the paper")


if __name__ == "__main__":
    main_with_errors(main)
