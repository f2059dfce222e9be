"""Plot the similarities of spans and types by thresholding strategy (BINDER's figures 2 and 3).

    python benchmarks/plot_similarities.py --runs RUNS

RUNS is the folder of the runs of `binder.py ablations`, of which full, global-thresholds and tuned-thresholds are
needed. The densities of similarities on dev, of mentions, all other spans and thresholds, are written to
docs/images/binder-similarities.svg, and their lowest part to docs/images/binder-similarities-zoom.svg.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from binder import WITH_SIMILARITIES
from experiments import SCORES_FILE
from onoma.errors import OnomaError
from onoma.evaluation.curves import SETTINGS
from onoma.files import atomic_write_bytes
from records import ROOT, main_with_errors

TITLES = ("dynamic thresholds", "learned global thresholds", "global thresholds tuned on dev")
COLOURS = {"entity": "C0", "non-entity": "C1", "threshold": "C2"}
ZOOM = 0.1  # the largest density of figure 3
POINTS = 150  # of a curve
SMOOTHING = 0.15  # standard deviation of the kernel, in similarity


def main() -> None:
    """Draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="folder of the runs")
    parser.add_argument("--encoder", default="gte-small")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--types", nargs="*", default=["protein", "DNA", "cell type"])
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "images", help="folder of the pictures")
    arguments = parser.parse_args()
    found = [read_similarities(arguments, name) for name in WITH_SIMILARITIES]
    for name, highest in (("binder-similarities.svg", None), ("binder-similarities-zoom.svg", ZOOM)):
        with rc_context(SETTINGS), atomic_write_bytes(arguments.output / name) as file:
            draw(found, arguments.types, highest).savefig(file, format="svg", metadata={"Date": None})


def read_similarities(arguments: argparse.Namespace, variant: str) -> dict[str, Any]:
    """The histograms of a run."""
    path = arguments.runs / f"{variant}-genia-{arguments.encoder}-{arguments.seed}" / SCORES_FILE
    if not path.is_file():
        raise OnomaError(f"there is no {path}. Fix: run benchmarks/binder.py ablations --variants {variant}")
    similarities: dict[str, Any] = json.loads(path.read_text("utf-8"))["scored"]["similarities"]
    return similarities


def draw(found: list[dict[str, Any]], types: list[str], highest: float | None) -> Figure:
    """One row per strategy, one column per type."""
    figure = Figure(figsize=(3 * len(types), 2.2 * len(found)), layout="constrained")
    grid = figure.subplots(len(found), len(types), squeeze=False)
    for row, (title, similarities) in enumerate(zip(TITLES, found, strict=True)):
        for column, name in enumerate(types):
            axes = grid[row][column]
            for kind, counts in similarities["types"][name].items():
                places, heights = density(np.array(counts), similarities["largest"])
                axes.plot(places, heights, color=COLOURS[kind], label=kind, linewidth=1)
            axes.set_ylim(0, highest)
            if row == 0:
                axes.set_title(name)
            if column == 0:
                axes.set_ylabel(title, fontsize="small")
    grid[0][0].legend(fontsize="small")
    figure.supxlabel("similarity")
    return figure


def density(counts: NDArray[np.float64], largest: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A kernel density estimate from a histogram over all similarities, -1/τ to 1/τ: places and heights."""
    centres = largest * ((2 * np.arange(len(counts)) + 1) / len(counts) - 1)
    used = centres[counts > 0] if counts.any() else centres
    places = np.linspace(used.min() - 1, used.max() + 1, POINTS)
    deviation = max(SMOOTHING, 2 * largest / len(counts))
    kernel = np.exp(-0.5 * np.square((places[:, None] - centres) / deviation)) / (deviation * np.sqrt(2 * np.pi))
    return places, np.asarray(kernel @ counts / max(counts.sum(), 1))


if __name__ == "__main__":
    main_with_errors(main)
