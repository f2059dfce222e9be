"""Plot the records of CoNLL-2003 with dropped mentions: `python benchmarks/plot_missing_labels.py`.

Results are written to docs/images/missing-labels.svg.
"""

from __future__ import annotations

from typing import Any

from incomplete_labels import MISSING_RATES, RESULTS_FILE
from onoma.evaluation.curves import new_figure
from onoma.evaluation.plot_style import DASHES, MARKERS, plot_style
from onoma.files import atomic_write_bytes
from records import ROOT, read_records

PLOT = ROOT / "docs" / "images" / "missing-labels.svg"
LINES = {"": "BINDER", "-sampled": "BINDER, sampled negatives, repeated words masked"}


def main() -> None:
    """Draw one line per setting, with the standard deviation over seeds."""
    records = {row["metric"]: row for row in read_records(RESULTS_FILE)}
    with plot_style(), atomic_write_bytes(PLOT) as file:
        draw(records).savefig(file, format="svg", metadata={"Date": None}, facecolor="white")
    print("now run python tools/dark_pictures.py")


def draw(records: dict[str, Any]) -> Any:
    """A figure with one line per setting; lines differ in their dashes and markers as well."""
    figure = new_figure((6, 4))
    axes = figure.subplots()
    for (suffix, label), marker, dashes in zip(LINES.items(), MARKERS, DASHES, strict=False):
        found = [(rate, _record(records, rate, suffix)) for rate in MISSING_RATES]
        points = [(rate, row["value"], row["spread"] or 0.0) for rate, row in found if row is not None]
        rates, values, spreads = zip(*points, strict=True)
        axes.errorbar(rates, values, yerr=spreads, marker=marker, linestyle=dashes, capsize=3, label=label)
    axes.set_xticks(MISSING_RATES)
    axes.set_xlabel("dropped mentions of train, percent")
    axes.set_ylabel("strict F1 on test")
    axes.grid()
    figure.legend(loc="outside upper center")
    return figure


def _record(records: dict[str, Any], rate: int, suffix: str) -> Any:
    """The record of a rate; nothing is dropped at 0, so all settings share it."""
    setting = f"missing-{rate}{suffix if rate else ''}"
    return records.get(f"binder/{setting}/conll2003/mpnet-base/f1")


if __name__ == "__main__":
    main()
