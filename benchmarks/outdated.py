"""List the records that were measured before a change, with the commands that measure them again.

    python benchmarks/outdated.py COMMIT [--match TEXT]

A record is listed if its commit does not contain COMMIT, is not in the history, or had uncommitted changes, and its
metric contains TEXT. For example, all figures with MPNet from before its bias by distance was trained:
`python benchmarks/outdated.py COMMIT --match /mpnet-base/`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from onoma.errors import OnomaError
from records import RESULTS, git, main_with_errors, read_records


def main() -> None:
    """Print the commands, each with its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="records of commits that do not contain it are listed")
    parser.add_argument("--match", default="", help="only metrics that contain this text")
    arguments = parser.parse_args()
    newer = git("rev-list", f"{arguments.commit}..HEAD").split()
    change = git("rev-parse", "--verify", f"{arguments.commit}^{{commit}}")
    if not change:
        raise OnomaError(f"there is no commit {arguments.commit!r}. Fix: name one that `git log` shows")
    rows = [row for path in sorted(RESULTS.glob("*.json")) for row in read_records(path)]
    contains = contains_commit([change, *newer])
    for line in outdated(rows, arguments.match, contains):
        print(line)


def contains_commit(hashes: Iterable[str]) -> Callable[[str], bool]:
    """Whether a record's commit, which may be shortened, is one of some commits and had no uncommitted changes."""
    known = tuple(hashes)
    return lambda commit: "+" not in commit and any(one.startswith(commit) for one in known)


def outdated(rows: Iterable[dict[str, Any]], match: str, contains: Callable[[str], bool]) -> Iterator[str]:
    """One command, then one line for each of its metrics, with the commit that it was measured at."""
    by_command: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if match in row["metric"] and not contains(row["commit"]):
            by_command.setdefault(row["command"], []).append(row)
    for command, group in by_command.items():
        yield command
        for row in group:
            yield f"    {row['metric']} {row['value']}  {row['commit']}"


if __name__ == "__main__":
    main_with_errors(main)
