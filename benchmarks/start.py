"""Start-up time and memory of the embedded model: `python benchmarks/start.py`.

The time is that of `onoma extract TEXT --labels ...` in a new process, from start to end: the median of several. Memory
is the resident set of a process that has loaded the model and read one text.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from onoma.models.info import describe_model
from records import RESULTS, Record, commit_for, main_with_errors, write_records

TURNS = 7
TEXTS = {"en": ("Tom flew to Paris.", "person, city"), "zh": ("王芳昨天飞往北京。", "人名, 城市")}
READ = """
import onoma
ner = onoma.load()
for text in {texts!r}:
    ner.extract(text, ["person", "city"])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=RESULTS / "start.json")
    output = parser.parse_args().output
    commit_for(output)
    figures: dict[str, dict[str, float]] = {}
    for language, (text, labels) in TEXTS.items():
        figures[language] = {"start_s": start_up_seconds(text, "--labels", labels), "memory_mb": memory([text])}
    figures["both"] = {"memory_mb": memory([text for text, _ in TEXTS.values()])}
    size = sum(one.megabytes for one in describe_model())
    figures["both"]["disk_mb"] = round(size, 1)
    for language, values in figures.items():
        print(language, ", ".join(f"{name} {value:.2f}" for name, value in values.items()))
    write_records(
        output,
        [
            Record(f"embedded/start/{language}/none/{name}", round(value, 3), "python benchmarks/start.py", "one text")
            for language, values in figures.items()
            for name, value in values.items()
        ],
    )


def start_up_seconds(*arguments: str, model: Path | None = None) -> float:
    """Seconds of `onoma extract` from start to end, the median of several."""
    command = [sys.executable, "-m", "onoma", "extract", *arguments]
    command += ["--model", str(model)] if model is not None else []
    taken = []
    for _ in range(TURNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def memory(texts: list[str]) -> float:
    """Megabytes of a process that has read the texts."""
    found = subprocess.run([sys.executable, "-c", READ.format(texts=texts)], check=True, capture_output=True, text=True)
    return int(found.stdout) * 1024 / 1e6


if __name__ == "__main__":
    main_with_errors(main)
