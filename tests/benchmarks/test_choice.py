"""The tables that compare the systems show measured figures only."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import choice
from figures import Figures
from records import RESULTS, ROOT, read_records

ROWS = [row for path in sorted(RESULTS.rglob("*.json")) for row in read_records(path)]


@pytest.mark.parametrize("name", choice.TABLES)
def test_every_cell_is_measured_and_several_systems_are_compared(name: str) -> None:
    table = choice.render(Figures(ROWS, {}), name)
    cells = [line.strip("| ").split(" | ")[1:] for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(cells) == len(choice.TABLES[name].corpora)
    assert all(cell[0].isdigit() for row in cells for cell in row)
    systems = {column.split()[0].rstrip(",") for column in choice.TABLES[name].columns}
    assert len(systems) >= 2
    assert ("†" in table) == ("† cannot be measured again" in table)


def test_the_page_has_every_table() -> None:
    page = (ROOT / "docs/systems/choose.md").read_text(encoding="utf-8")
    assert all(f"<!-- systems: {name} -->" in page for name in choice.TABLES)
    assert "not measured" not in page


def test_a_missing_record_is_an_error() -> None:
    rows = [row for row in ROWS if row["metric"] != "punifiedner/single/weibo/flan-t5-small-zh/f1"]
    with pytest.raises(LookupError, match="no record of punifiedner/single/weibo"):
        choice.render(Figures(rows, {}), "chinese")
