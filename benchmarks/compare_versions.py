"""Compare two versions of Onoma: same entities and scores, and not slower, in one alternating run.

    git worktree add /tmp/before COMMIT
    python benchmarks/compare_versions.py /tmp/before --data CORPORA

Both versions run with the embedded model of their own tree, in processes of their own that take turns. They read the
first sentences of some corpora (see SETS) and are asked for the types of the corpus by their natural names. Figures:
the share of sentences with the same entities, the largest difference of scores, sentences per second (the best turn),
the time of `onoma extract` in a new process, its memory, and the functions, files and switches between files of one
call of `extract` (the first and the second call after `load`, named functions of the package only).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records

SETS = {
    "en": (
        ("conll2003", "dev", 300),
        ("wnut17", "dev", 200),
        ("genia", "dev", 200),
        ("snips_slots", "dev", 150),
        ("litbank", "dev", 150),
    ),
    "zh": (("msra", "train", 300), ("weibo", "dev", 250), ("cmeee", "dev", 200), ("ec", "dev", 250)),
}
TURNS = 7
START = ("Tom flew to Paris.", "person, city")

READ = r"""
import json, sys, time
sys.path.insert(0, sys.argv[1] + "/src")
import onoma
sets = json.loads(open(sys.argv[2]).read())
ner = onoma.load()
found, seconds = [], 0.0
for texts, labels in sets:
    ner.extract(texts[:20], labels)  # warm-up
    start = time.perf_counter()
    results = ner.extract(texts, labels)
    seconds += time.perf_counter() - start
    found.append([[[e.start, e.end, e.label, e.score] for e in entities] for entities in results])
assert onoma.__file__.startswith(sys.argv[1]), onoma.__file__
json.dump({"seconds": seconds, "found": found}, open(sys.argv[3], "w"))
"""
TRACE = r"""
import json, sys
sys.path.insert(0, sys.argv[1] + "/src")
import onoma
functions, files, switches, last = set(), set(), 0, None
def profile(frame, event, argument):
    global switches, last
    code = frame.f_code
    if event != "call" or "/src/onoma/" not in code.co_filename or code.co_name.startswith("<"):
        return
    functions.add((code.co_filename, code.co_qualname))
    files.add(code.co_filename)
    switches += last is not None and code.co_filename != last
    last = code.co_filename
ner = onoma.load()
if sys.argv[2] == "second":
    ner.extract("Tom flew to Paris.", ["person", "city"])
sys.setprofile(profile)
ner.extract("Tom flew to Paris.", ["person", "city"])
sys.setprofile(None)
print(json.dumps({"functions": len(functions), "files": len(files), "switches": switches}))
"""
MEMORY = r"""
import sys
sys.path.insert(0, sys.argv[1] + "/src")
import onoma
onoma.load().extract("Tom flew to Paris.", ["person", "city"])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""
COMMAND = r"""
import sys
sys.path.insert(0, sys.argv[1] + "/src")
sys.argv = ["onoma", *sys.argv[2:]]
from onoma.cli import main
main()
"""


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="checkout of the earlier version")
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--output", type=Path, default=RESULTS / "compare_versions.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    trees = {"before": arguments.before.resolve(), "after": ROOT}
    figures: dict[str, tuple[float, str]] = {}
    for language, sets in SETS.items():
        figures |= compare_results(trees, language, sets, arguments.data)
    figures |= compare_start(trees)
    figures |= {f"{name}_all": (value, "one call") for name, value in compare_traces(trees).items()}
    commits = {name: _commit(tree) for name, tree in trees.items()}
    records = []
    for name, (value, data) in figures.items():
        measure, _, corpus = name.rpartition("_")
        metric = f"embedded/compare-versions/{corpus}/none/{measure}"
        note = f"{data}; before: {commits['before']}, after: {commits['after']}"
        records.append(Record(metric, round(value, 6), command(without=["--output"]), note))
        print(f"{metric:70} {value:14.6f}")
    write_records(arguments.output, records)


def compare_results(
    trees: dict[str, Path], language: str, sets: tuple[tuple[str, str, int], ...], data: Path
) -> dict[str, tuple[float, str]]:
    """Entities, scores and speed on some sentences of a language."""
    from onoma.data import load_corpus

    texts = []
    for name, split, count in sets:
        corpus = load_corpus(data / language / name, split, natural_names=True, language=language)
        texts.append([[one.text for one in corpus.documents[:count]], list(corpus.labels)])
    folder = ROOT / "runs" / "compare_versions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.json").write_text(json.dumps(texts), "utf-8")
    seconds: dict[str, list[float]] = {name: [] for name in trees}
    found: dict[str, Any] = {}
    for _ in range(TURNS):
        for name, tree in trees.items():
            target = folder / f"{name}.json"
            _run(READ, tree, str(folder / "texts.json"), str(target))
            result = json.loads(target.read_text("utf-8"))
            seconds[name].append(result["seconds"])
            found[name] = [entities for part in result["found"] for entities in part]
    count = len(found["before"])
    pairs = list(zip(found["before"], found["after"], strict=True))
    same = [[one[:3] for one in a] == [one[:3] for one in b] for a, b in pairs]
    equal = [pair for pair, is_same in zip(pairs, same, strict=True) if is_same]
    differences = [abs(one[3] - other[3]) for a, b in equal for one, other in zip(a, b, strict=True)]
    data_note = f"{count} sentences of {', '.join(name for name, _, _ in sets)}"
    rates = {name: count / min(values) for name, values in seconds.items()}  # other work can only slow down
    return {
        f"same_entities_percent_{language}": (100 * sum(same) / count, data_note),
        f"entities_{language}": (sum(map(len, found["after"])), data_note),
        f"largest_score_difference_{language}": (max(differences, default=0.0), data_note),
        f"sentences_per_s_before_{language}": (rates["before"], f"{data_note}, best of {TURNS} alternating turns"),
        f"sentences_per_s_after_{language}": (rates["after"], f"{data_note}, best of {TURNS} alternating turns"),
        f"speed_ratio_{language}": (rates["after"] / rates["before"], f"{data_note}, after / before"),
    }


def compare_start(trees: dict[str, Path]) -> dict[str, tuple[float, str]]:
    """The time of `onoma extract` in a new process, and the memory of a process that has read one text."""

    taken: dict[str, list[float]] = {name: [] for name in trees}
    memory: dict[str, list[float]] = {name: [] for name in trees}
    for turn in range(TURNS + 1):
        for name, tree in trees.items():
            start = time.perf_counter()
            _run(COMMAND, tree, "extract", START[0], "--labels", START[1])
            if turn:  # the first one fills the disk cache
                taken[name].append(time.perf_counter() - start)
                memory[name].append(int(_run(MEMORY, tree)) * 1024 / 1e6)
    note = f"one sentence, median of {TURNS} alternating turns"
    return {f"start_s_{name}_en": (statistics.median(values), note) for name, values in taken.items()} | {
        f"memory_mb_{name}_en": (statistics.median(values), note) for name, values in memory.items()
    }


def compare_traces(trees: dict[str, Path]) -> dict[str, float]:
    """Functions, files and switches between files of one call of `extract`."""
    figures: dict[str, float] = {}
    for call in ("first", "second"):
        for name, tree in trees.items():
            traced = json.loads(_run(TRACE, tree, call))
            figures |= {f"{call}_call_{key}_{name}": value for key, value in traced.items()}
    return figures


def _run(source: str, tree: Path, *arguments: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", source, str(tree), *arguments], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def _commit(tree: Path) -> str:
    done = subprocess.run(["git", "-C", str(tree), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main_with_errors(main)
