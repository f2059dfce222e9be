"""Records of measured figures: what every benchmark writes and every table of the documentation is made from.

A record is one figure with all that is needed to measure it again. Its metric is
`system/setting/corpus/encoder/measure`, with "none" for a part that does not apply. `spread` is the standard
deviation over seeds or repeats.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from onoma.data.files import atomic_write

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True, slots=True)
class Record:
    """One figure. `paper` is the published one, where there is one; `seeds` are empty where chance plays no part."""

    metric: str
    value: float
    command: str
    data: str
    paper: float | None = None
    encoder: str = "none"
    seeds: tuple[int, ...] = ()
    spread: float | None = None

    def __post_init__(self) -> None:
        if self.metric.count("/") != 4:
            raise ValueError(f"a metric is system/setting/corpus/encoder/measure, got {self.metric!r}")


def write_records(path: Path, records: Iterable[Record], *, accelerator: str = "") -> None:
    """Add records to a file, with the commit and the machine; a record of the same metric is replaced.

    The other records of the file stay, so that an experiment of many hours can be measured in parts.
    """
    added = {"commit": commit(), "machine": ", ".join(filter(None, [machine(), accelerator]))}
    rows = {row["metric"]: row for row in read_records(path)} if path.exists() else {}
    rows |= {record.metric: asdict(record) | added for record in records}
    with atomic_write(path) as file:
        json.dump(list(rows.values()), file, ensure_ascii=False, indent=1)
        file.write("\n")


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def commit() -> str:
    """The commit that is measured, with "+changes" if files of the package differ from it."""
    head = _git("rev-parse", "--short=12", "HEAD")
    return head + "+changes" if head and _git("status", "--porcelain", "--", "src") else head or "unknown"


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # no git, or a copy without its history
        return ""


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
