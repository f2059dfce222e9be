"""Make the tables of the documentation from the records in benchmarks/results: `python benchmarks/tables.py`.

Made are docs/benchmarks.md (all records), docs/reproduction.md (the tables of the papers), and in all other pages and
in the card of the embedded model what stands between `<!-- table: binder, Table 1 -->`, `<!-- claims: binder -->`,
`<!-- sizing: corpora -->`, `<!-- systems: full -->` or `<!-- card: benchmarks en -->` and `<!-- end -->`. With
`--check` nothing is written; the exit code is 1 if a page does not show what the records say.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import card
import choice
import reproduction
import sizing
from figures import Figures, number, table_line
from onoma.files import atomic_write
from papers import Papers, read_papers
from records import RESULTS, ROOT, main_with_errors, read_records

BENCHMARKS, REPRODUCTION = "benchmarks.md", "reproduction.md"
CARD = ROOT / "src/onoma/models/default/README.md"
PART = re.compile(r"(<!-- (table|claims|sizing|systems|card): (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = """\
# Benchmarks

This page is generated from the records in `benchmarks/results` by `python benchmarks/tables.py`; do not edit it by
hand. A cell is the value, ± the standard deviation over seeds or repeats, and in brackets the published figure if there
is one. Benchmarks of speed run what they compare in turns: their value is the median over the turns. `cpu` is processor
time, `cpu_seconds` as well. Rows marked *historic* cannot be measured again as they stand; the reason is below the
table. In commands, `$CORPORA` and `$ENCODERS` are the folders of corpora and encoders.
"""

RENDERERS: dict[str, Callable[[Figures, str], str]] = {
    "sizing": lambda figures, key: sizing.render(figures),
    "systems": choice.render,
    "card": card.render,
}
"""Of parts that are not tables of papers."""

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
    """One line per corpus, encoder and data, one column per measure; or one line per measure if there are turns."""
    if any(record.get("turns") for record in records):
        yield from _table_of_turns(records)
        return
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    for record in records:
        corpus, encoder, measure = _names(record)
        cells.setdefault((corpus, encoder, _data(record)), {})[measure] = _cell(record)
    measures = list(dict.fromkeys(measure for line in cells.values() for measure in line))
    yield table_line(["corpus", "encoder", *measures, "data"])
    yield table_line(["---", "---", *["---:"] * len(measures), "---"])
    for (corpus, encoder, data), line in cells.items():
        yield table_line([corpus, encoder, *(line.get(measure, "") for measure in measures), data])


def _table_of_turns(records: list[Row]) -> Iterator[str]:
    """Medians with their standard deviation, the lowest and the highest turn, and the number of turns."""
    yield table_line(["corpus", "encoder", "measure", "value", "standard deviation", "lowest–highest", "turns", "data"])
    yield table_line(["---", "---", "---", "---:", "---:", "---:", "---:", "---"])
    for record in records:
        value, spread = record["value"], record["spread"]
        deviation = "" if spread is None else number(spread, like=value)
        ends = "–".join(number(end, like=value) for end in record.get("range", ()))
        yield table_line([*_names(record), number(value), deviation, ends, str(record.get("turns", "")), _data(record)])


def _names(record: Row) -> tuple[str, str, str]:
    """Corpus, encoder and measure of a record."""
    _, _, corpus, encoder, measure = record["metric"].split("/")
    return corpus, encoder, measure


def _data(record: Row) -> str:
    data: str = record["data"]
    return f"*historic*; {data}" if record.get("historic") else data


def _cell(record: Row) -> str:
    value, spread, paper = record["value"], record["spread"], record["paper"]
    text = number(value)
    if spread is not None:
        text += f" ± {number(spread, like=value)}"
    return text if paper is None else f"{text} ({number(paper, like=value)})"


def _origin(record: Row) -> str:
    """The command, commit and machine of a figure, and why it is historic if it is."""
    seeds = f", seeds {', '.join(map(str, record['seeds']))}" if record["seeds"] else ""
    historic = f"; historic: {record['historic']}" if record.get("historic") else ""
    return f"- `{record['command']}`{seeds}; commit {record['commit']}; {record['machine']}{historic}"


def pages(docs: Path, rows: list[Row], papers: Papers, others: Iterable[Path] = ()) -> dict[Path, str]:
    """The pages below a folder that show records, and other ones, with their texts."""
    figures = Figures(rows, papers.published())
    made = {
        docs / BENCHMARKS: render(rows),
        docs / REPRODUCTION: reproduction.render(papers, figures, docs),
    }
    for path in [*sorted(docs.rglob("*.md")), *others]:
        if path not in made and PART.search(text := path.read_text(encoding="utf-8")):
            made[path] = fill_parts(text, papers, figures)
    return made


def fill_parts(text: str, papers: Papers, figures: Figures) -> str:
    """A page with what belongs between its markers."""

    def part(found: re.Match[str]) -> str:
        start, kind, key, end = found.groups()
        made = (
            RENDERERS[kind](figures, key) if kind in RENDERERS else reproduction.render_part(kind, key, papers, figures)
        )
        return f"{start}\n{made}\n\n{end}"

    return PART.sub(part, text)


def stale(made: dict[Path, str]) -> list[Path]:
    """The pages that do not show the records."""
    return [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> None:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description="Make the tables of the documentation from benchmarks/results.")
    parser.add_argument("--check", action="store_true", help="only check whether the pages are up to date")
    check = parser.parse_args().check
    rows = [row for path in sorted(RESULTS.rglob("*.json")) for row in read_records(path)]
    made = pages(ROOT / "docs", rows, read_papers(), [CARD])
    changed = stale(made)
    if check and changed:
        names = ", ".join(str(path.relative_to(ROOT)) for path in changed)
        sys.exit(f"pages that do not show the records: {names}. Fix: run python benchmarks/tables.py")
    for path in changed:
        with atomic_write(path) as file:
            file.write(made[path])
        print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main_with_errors(main)
