"""Make docs/benchmarks.md from the records in benchmarks/results: `python benchmarks/tables.py`.

With `--check` nothing is written; the exit code is 1 if the page does not show what the records say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from onoma.files import atomic_write
from records import RESULTS, ROOT, read_records

PAGE = ROOT / "docs" / "benchmarks.md"
HEAD = """\
# Benchmarks

This page is generated from the records in `benchmarks/results` by `python benchmarks/tables.py`; do not edit it by
hand. A cell is the value, ± the standard deviation over seeds or repeats, and in brackets the published figure if there
is one. `cpu_seconds` is processor time. Rows marked *historic* cannot be measured again as they stand; the reason is
below the table. In commands, `$CORPORA` and `$ENCODERS` are the folders of corpora and encoders.
"""

Row = dict[str, Any]


def render(rows: Iterable[Row]) -> str:
    """The whole page: one section per system, one table per setting."""
    return "\n".join([HEAD, *_sections(sorted(rows, key=_place))])


def _place(row: Row) -> list[str]:
    """System and setting of a record."""
    place: list[str] = row["metric"].split("/")[:2]
    return place


def _sections(rows: list[Row]) -> Iterator[str]:
    last_system = None
    for (system, setting), group in groupby(rows, _place):
        if system != last_system:
            yield f"## {system}\n"
        last_system = system
        records = list(group)
        yield f"### {setting}\n"
        yield from _table(records)
        yield ""
        yield from dict.fromkeys(map(_origin, records))
        yield ""


def _table(records: list[Row]) -> Iterator[str]:
    """One line per corpus and encoder, one column per measure."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    data: dict[tuple[str, str], str] = {}
    for record in records:
        _, _, corpus, encoder, measure = record["metric"].split("/")
        cells.setdefault((corpus, encoder), {})[measure] = _cell(record)
        data[corpus, encoder] = ("*historic*; " if record.get("historic") else "") + record["data"]
    measures = list(dict.fromkeys(measure for line in cells.values() for measure in line))
    yield _line(["corpus", "encoder", *measures, "data"])
    yield _line(["---", "---", *["---:"] * len(measures), "---"])
    for (corpus, encoder), line in cells.items():
        yield _line([corpus, encoder, *(line.get(measure, "") for measure in measures), data[corpus, encoder]])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cell(record: Row) -> str:
    value, spread, paper = record["value"], record["spread"], record["paper"]
    decimals = 0 if abs(value) >= 1000 else 2 if abs(value) >= 1 else 3
    text = f"{value:,.{decimals}f}"
    if spread is not None:
        text += f" ± {spread:,.{decimals}f}"
    return text if paper is None else f"{text} ({paper:,.{decimals}f})"


def _origin(record: Row) -> str:
    """The command, commit and machine of a figure, and why it is historic if it is."""
    seeds = f", seeds {', '.join(map(str, record['seeds']))}" if record["seeds"] else ""
    historic = f"; historic: {record['historic']}" if record.get("historic") else ""
    return f"- `{record['command']}`{seeds}; commit {record['commit']}; {record['machine']}{historic}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Make docs/benchmarks.md from the records in benchmarks/results.")
    parser.add_argument("--check", action="store_true", help="only check whether the page is up to date")
    check = parser.parse_args().check
    page = render(row for path in sorted(RESULTS.rglob("*.json")) for row in read_records(path))
    if not check:
        with atomic_write(PAGE) as file:
            file.write(page)
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit("docs/benchmarks.md does not show the records: run python benchmarks/tables.py")


if __name__ == "__main__":
    main()
