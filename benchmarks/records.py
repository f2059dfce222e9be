"""Records of measured figures, which every benchmark writes and every table of the documentation is made from.

A record is one figure with everything that is needed to measure it again. Its metric is
`system/setting/corpus/encoder/measure`, with "none" for a part that does not apply; `spread` is the standard deviation
over seeds or repeats. The median over the turns of a benchmark of speed has `turns`, their number, and `range`, the
lowest and the highest, as well. Records in benchmarks/results are written for a commit, so the tree must be clean:
commit first, then measure. On a machine without git, set ONOMA_COMMIT to the commit of the copy that is measured. Files
elsewhere (`--output`) may be written from a changed tree.

A record that cannot be measured again as it stands (its commit had uncommitted changes or is not in the history, or
its command cannot be pasted) has a field `historic` with the reason.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from onoma.errors import OnomaError
from onoma.files import atomic_write

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
COMMIT_VARIABLE = "ONOMA_COMMIT"
FOLDER_VARIABLES = ("CORPORA", "ENCODERS")
MEASURED = ("src", "benchmarks", "recipes", "corpora")
"""Folders whose changes may change a figure; new results do not count."""
TURN_FIELDS = ("turns", "range")


@dataclass(frozen=True, slots=True)
class Record:
    """One figure. `paper` is the published one, if there is one; `seeds` are empty if chance plays no part."""

    metric: str
    value: float
    command: str
    data: str
    paper: float | None = None
    encoder: str = "none"
    seeds: tuple[int, ...] = ()
    spread: float | None = None
    turns: int | None = None
    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.metric.count("/") != 4:
            raise ValueError(f"a metric is system/setting/corpus/encoder/measure, got {self.metric!r}")

    @classmethod
    def of_turns(
        cls, metric: str, values: Sequence[float], command: str, data: str, encoder: str = "none", digits: int = 4
    ) -> Record:
        """The median over turns, with their standard deviation, number, and range."""
        spread = round(statistics.stdev(values), digits) if len(values) > 1 else None
        low, high, median = (round(one, digits) for one in (min(values), max(values), statistics.median(values)))
        return cls(metric, median, command, data, encoder=encoder, spread=spread, turns=len(values), range=(low, high))


def write_records(
    path: Path,
    records: Iterable[Record],
    *,
    accelerator: str = "",
    commit: str | None = None,
    family: str | None = None,
) -> None:
    """Add records to a file, with the commit and the machine; records of the same metrics are replaced.

    The other records of the file stay, so that a long experiment can be measured in parts; except those whose metric
    matches `family`, such as `*/speed-beside-peers/*`: these must all be of one run.
    """
    added = {"commit": commit or commit_for(path), "machine": ", ".join(filter(None, [machine(), accelerator]))}
    old = read_records(path) if path.exists() else []
    rows = {row["metric"]: row for row in old if family is None or not fnmatchcase(row["metric"], family)}
    rows |= {record.metric: _row(record) | added for record in records}
    with atomic_write(path) as file:
        json.dump(list(rows.values()), file, ensure_ascii=False, indent=1)
        file.write("\n")


def _row(record: Record) -> dict[str, Any]:
    """A record as JSON; `turns` and `range` only where there are turns."""
    return {name: value for name, value in asdict(record).items() if value is not None or name not in TURN_FIELDS}


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def commit_for(path: Path) -> str:
    """The commit that is measured. An error if a record is to be written and files that matter differ from it.

    Call it before measuring, too, so that no time is lost.
    """
    if COMMIT_VARIABLE in os.environ:
        return os.environ[COMMIT_VARIABLE]
    head, is_record = git("rev-parse", "--short=12", "HEAD"), RESULTS in path.resolve().parents
    changed = git("status", "--porcelain", "--", *MEASURED, ":!benchmarks/results")
    if is_record and not head:
        raise OnomaError(f"there is no git history here. Fix: set {COMMIT_VARIABLE} to the commit that is measured")
    if is_record and changed:
        files = ", ".join(line[3:] for line in changed.splitlines()[:5])
        raise OnomaError(f"records are for a commit, but there are changes ({files}). Fix: commit, then measure")
    return f"{head or 'unknown'}+changes" if changed or not head else head


def git(*arguments: str) -> str:
    """The output of git, without the trailing line break; empty if it fails."""
    try:
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        ).stdout.rstrip("\n")
    except (OSError, subprocess.CalledProcessError):  # no git, or a copy without its history
        return ""


def command(*, without: Iterable[str] = ()) -> str:
    """The command of this process as it can be pasted, without some of its options, which take one value each.

    Folders that the environment variables CORPORA and ENCODERS name are written as these variables.
    """
    words, skip = [], False
    for word in sys.argv[1:]:
        if skip or word in without:
            skip = not skip
            continue
        for variable in FOLDER_VARIABLES:
            folder = os.environ.get(variable)
            if folder and (word == folder or word.startswith(f"{folder}/")):
                word = f"${variable}{word.removeprefix(folder)}"
        quoted = f'"{word}"' if " " in word else word  # in double quotes, the shell still replaces the variable
        words.append(quoted if word.startswith("$") else shlex.quote(word))
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def machine() -> str:
    """The kind of machine, without its name."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, {python}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(filter(None, names), platform.machine())


def main_with_errors(main: Any) -> None:
    """Run a benchmark; bad input ends with a message and exit code 2 instead of a traceback."""
    try:
        main()
    except OnomaError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
