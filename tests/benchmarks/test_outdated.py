"""The list of records to measure again."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from outdated import contains_commit, outdated


def row(metric: str, commit: str, command: str = "python a.py") -> dict[str, object]:
    return {"metric": f"binder/x/c/{metric}/f1", "value": 1.0, "commit": commit, "command": command}


def test_records_of_older_and_of_changed_trees_are_listed_by_command() -> None:
    contains = contains_commit(["aaaa1111", "bbbb2222"])
    rows = [
        row("new", "aaaa11"),
        row("old", "cccc33"),
        row("dirty", "aaaa11+changes", "python b.py"),
        row("other", "cccc33"),
    ]
    assert list(outdated(rows, "", contains)) == [
        "python a.py",
        "    binder/x/c/old/f1 1.0  cccc33",
        "    binder/x/c/other/f1 1.0  cccc33",
        "python b.py",
        "    binder/x/c/dirty/f1 1.0  aaaa11+changes",
    ]
    assert list(outdated(rows, "/old/", contains)) == ["python a.py", "    binder/x/c/old/f1 1.0  cccc33"]
