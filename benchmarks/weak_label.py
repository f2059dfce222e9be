"""Labelling with a million entries: `python benchmarks/weak_label.py --data FOLDER [--megabytes 1000]`.

The dictionary consists of mentions of the corpora in FOLDER, without those that are only frequent words, and of random
combinations of their words. The text consists of the sentences of these corpora, mixed at random into documents of
about 1,200 characters and repeated as often as needed. `onoma weak-label` reads the dictionary and the text, labels it
and writes JSON lines, in a process of its own on one core; its speed is megabytes of text per second from start to end.

With `--automaton`, the same phrases are also searched for with an Aho-Corasick automaton (ahocorasick_rs, if it is
installed), in the first 20 MB of the text, in parts of 64 KB. That is the search alone: nothing is read, compared with
word boundaries, or written.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from onoma.data import find_splits, read
from onoma.entities import Document
from onoma.errors import OnomaError
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

DOCUMENTS_PER_CORPUS = 20_000
DOCUMENT = 1200  # characters
TYPES = 10
FREQUENT = 40  # occurrences per million words, above which a word is not an entry by itself
AUTOMATON = """
import sys, time
from ahocorasick_rs import AhoCorasick, Implementation
phrases = [line.split("\\t")[0].lower() for line in open(sys.argv[1], encoding="utf-8")]
text = open(sys.argv[2], encoding="utf-8").read(20_000_000).lower()
start = time.perf_counter()
automaton = AhoCorasick(phrases, implementation=Implementation.ContiguousNFA, store_patterns=False)
built = time.perf_counter()
for place in range(0, len(text), 1 << 16):
    automaton.find_matches_as_indexes(text[place : place + (1 << 16)], overlapping=True)
print(built - start, len(text.encode()) / 1e6 / (time.perf_counter() - built))
"""


class Run(NamedTuple):
    """A process that has ended: what it printed, and what it needed."""

    printed: str
    seconds: float
    cpu_seconds: float
    megabytes: float  # largest resident set


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of corpora, such as $CORPORA/en")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the text")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--automaton", action="store_true", help="also measure ahocorasick_rs")
    parser.add_argument("--output", type=Path, default=RESULTS / "weak_label.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    documents = [document for path in sorted(arguments.data.iterdir()) for document in read_corpus(path)]
    if not documents:
        raise OnomaError(f"{arguments.data} has no corpora with a train split. Fix: give a folder of corpus folders")
    generator = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dictionary(documents, arguments.entries, generator, folder / "entries.tsv")
        write_text([one.text for one in documents], arguments.megabytes * 1_000_000, generator, folder / "text.txt")
        figures = {"weak-label": measure(folder)}
        if arguments.automaton:
            figures["ahocorasick_rs"] = measure_automaton(folder)
    setting = "million-entries" if arguments.entries == 1_000_000 else f"{arguments.entries}-entries"
    data = f"{arguments.megabytes} MB of sentences of {len(documents)} documents, mixed; {arguments.entries} entries"
    records = [
        Record(
            f"{system}/{setting}/mixed-texts/none/{measure}",
            round(value, 3),
            command(without=["--output"]),
            data,
            seeds=(arguments.seed,),
        )
        for system, values in figures.items()
        for measure, value in values.items()
    ]
    for record in records:
        print(f"{record.metric:65} {record.value:12.2f}")
    write_records(arguments.output, records)


def read_corpus(path: Path) -> Iterator[Document]:
    """Documents of the train split of a corpus, if it has one."""
    try:
        split = find_splits(path).get("train")
    except OnomaError:  # word lists and other files
        return
    if split is not None:
        yield from islice(read(split), DOCUMENTS_PER_CORPUS)


def write_dictionary(documents: list[Document], size: int, generator: random.Random, path: Path) -> None:
    """Real mentions that are not just frequent words, and combinations of two or three of their words."""
    words = Counter(word.lower() for document in documents for word in document.text.split())
    limit = FREQUENT * words.total() / 1_000_000
    surfaces = sorted({entity.text for document in documents for entity in document.entities})
    entries = [
        text
        for text in (" ".join(surface.split()) for surface in surfaces)
        if 3 < len(text) < 60 and any(words[word.lower()] <= limit for word in text.split())
    ]
    entries = entries[: size // 2]
    parts = sorted({word for entry in entries for word in entry.split() if len(word) > 3})
    known = dict.fromkeys(entries)
    while len(known) < size:
        known[" ".join(generator.choices(parts, k=generator.choice((2, 2, 3))))] = None
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{entry}\ttype {generator.randrange(TYPES)}\n" for entry in known)


def write_text(sentences: list[str], size: int, generator: random.Random, path: Path) -> None:
    """One document per line, of sentences in random order."""
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        while written < size:
            for line in mixed_documents(sentences, generator):
                file.write(line)
                written += len(line.encode())
                if written >= size:
                    break


def mixed_documents(sentences: list[str], generator: random.Random) -> Iterator[str]:
    """All sentences once, in random order."""
    parts: list[str] = []
    for sentence in generator.sample(sentences, len(sentences)):
        parts.append(" ".join(sentence.split()))
        if sum(map(len, parts)) >= DOCUMENT:
            yield " ".join(parts) + "\n"
            parts = []
    yield " ".join(parts) + "\n"


def measure(folder: Path) -> dict[str, float]:
    """The command from start to end."""
    paths = [folder / name for name in ("entries.tsv", "text.txt", "labelled.jsonl")]
    megabytes = paths[1].stat().st_size / 1e6
    done = run([sys.executable, "-m", "onoma", "weak-label", *map(str, paths), "--json"])
    report = json.loads(done.printed)
    return {
        "mb_per_s": megabytes / done.seconds,
        "mb_per_cpu_s": megabytes / done.cpu_seconds,
        "peak_memory_mb": done.megabytes,
        "entries_used": report["entries_used"],
        "mentions_per_kb": report["mentions"] / megabytes / 1000,
    }


def measure_automaton(folder: Path) -> dict[str, float]:
    """Only the search, in 20 MB."""
    done = run([sys.executable, "-c", AUTOMATON, str(folder / "entries.tsv"), str(folder / "text.txt")])
    build, speed = map(float, done.printed.split())
    return {"build_s": build, "search_mb_per_s": speed, "peak_memory_mb": done.megabytes}


def run(words: list[str]) -> Run:
    """Run a program on one core."""
    start = time.perf_counter()
    before, memory = os.times(), 0.0
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(words, stdout=printed, preexec_fn=use_one_core)
        while process.poll() is None:
            memory = max(memory, peak_memory(process.pid))
            time.sleep(0.05)
        seconds, after = time.perf_counter() - start, os.times()
        if process.returncode:
            raise OnomaError(f"{words[:3]} ended with exit code {process.returncode}. Fix: see the message above")
        printed.seek(0)
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return Run(printed.read(), seconds, cpu, memory)


def peak_memory(process: int) -> float:
    """The largest resident set of a process so far, in megabytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM")), 0.0)


def use_one_core() -> None:
    """Restrict this process to one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


if __name__ == "__main__":
    main_with_errors(main)
