"""The quick start, literally: its commands in a fresh clone and a fresh environment, and how long they take.

    python benchmarks/quick_start.py [--work FOLDER]

The commands are those of docs/quick-start.md, and the clone is one of this repository.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records

PAGE = ROOT / "docs/quick-start.md"
ENCODER = "gte-small"
ADDRESS = "ADDRESS-OF-THIS-REPOSITORY"


def main() -> None:
    """Run, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="an empty folder for the clone, by default a temporary one")
    parser.add_argument("--output", type=Path, default=RESULTS / "quick_start.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    with tempfile.TemporaryDirectory() as folder:
        seconds, scores = follow(arguments.work or Path(folder))
    print(f"{sum(seconds.values()):.0f} s in all")
    write_records(arguments.output, records(seconds, scores))


def commands() -> Iterator[str]:
    """The lines of the page's bash blocks."""
    for block in re.findall(r"^```bash[^\n]*\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        yield from block.splitlines()


def follow(work: Path) -> tuple[dict[str, float], dict[str, float]]:
    """The seconds of each command, and the F1 of each evaluation in percent."""
    seconds, scores = {}, {}
    folder, environment = work, dict(os.environ)
    environment.pop("PYTHONPATH", None)
    for line in commands():
        words = shlex.split(line)
        if words[0] == "cd":
            folder = folder / words[1]
        elif words[0] == "source":
            environment["PATH"] = f"{folder / words[1]}".removesuffix("/activate") + f":{environment['PATH']}"
        else:
            evaluates = words[:2] == ["onoma", "evaluate"]
            words = [str(ROOT) if word == ADDRESS else word for word in words]
            started = time.perf_counter()
            done = subprocess.run(
                [*words, *(["--json"] if evaluates else [])],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE if evaluates else subprocess.DEVNULL,
                text=True,
                check=True,
            )
            seconds[line] = time.perf_counter() - started
            print(f"{seconds[line]:6.1f} s  {line}", flush=True)
            if evaluates:
                scores[line] = 100 * json.loads(done.stdout)["strict"]["micro"]["f1"]
    return seconds, scores


def records(seconds: dict[str, float], scores: dict[str, float]) -> Iterator[Record]:
    """The time of all commands and of training, and F1 before and after."""
    text, where = command(without=["--output", "--work"]), "commands of docs/quick-start.md in a fresh environment"
    training = sum(value for line, value in seconds.items() if line.startswith("onoma train"))
    for name, value in (("seconds", sum(seconds.values())), ("training_seconds", training)):
        yield Record(f"fine-tuned/quick-start/repairs/{ENCODER}/{name}", round(value, 1), text, where, None, ENCODER)
    for name, value in zip(("embedded", "fine-tuned"), scores.values(), strict=True):
        metric = f"{name}/quick-start/repairs/{ENCODER}/f1"
        yield Record(metric, round(value, 2), text, "40 test notes of examples/repairs, int8", None, ENCODER)


if __name__ == "__main__":
    main_with_errors(main)
