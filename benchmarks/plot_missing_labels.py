"""Plot the records of CoNLL-2003 with dropped mentions: `python benchmarks/plot_missing_labels.py`.

Results are written to docs/images/missing-labels.svg.
"""

from __future__ import annotations

from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from incomplete_labels import MISSING_RATES, RESULTS_FILE
from onoma.evaluation.curves import SETTINGS
from onoma.files import atomic_write_bytes
from records import ROOT, read_records

PLOT = ROOT / "docs" / "images" / "missing-labels.svg"
LINES = {"": "BINDER", "-sampled": "BINDER, sampled negatives, repeated words masked"}


def main() -> None:
    """Draw one line per setting, with the standard deviation over seeds."""
    records = {row["metric"]: row for row in read_records(RESULTS_FILE)}
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for suffix, label in LINES.items():
        found = [(rate, _record(records, rate, suffix)) for rate in MISSING_RATES]
        points = [(rate, row["value"], row["spread"] or 0.0) for rate, row in found if row is not None]
        rates, values, spreads = zip(*points, strict=True)
        axes.errorbar(rates, values, yerr=spreads, marker="o", capsize=3, label=label)
    axes.set_xticks(MISSING_RATES)
    axes.set_xlabel("dropped mentions of train, percent")
    axes.set_ylabel("strict F1 on test")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper center")
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(SETTINGS), atomic_write_bytes(PLOT) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})


def _record(records: dict[str, Any], rate: int, suffix: str) -> Any:
    """The record of a rate; nothing is dropped at 0, so all settings share it."""
    setting = f"missing-{rate}{suffix if rate else ''}"
    return records.get(f"binder/{setting}/conll2003/mpnet-base/f1")


if __name__ == "__main__":
    main()
