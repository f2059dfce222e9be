"""Speed and memory of words, windows, decoding and the command line: `python benchmarks/foundation.py`.

Every figure is the median over several fresh processes. Given a task, the script prints its figures as JSON:
`python benchmarks/foundation.py words english 10`. Seconds are measured by the clock and as processor time, which other
work on the machine disturbs less. Peak memory includes Python, numpy, the text and the work on it.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from onoma.decoding import Overlap, Proposals, decode, resolve_overlaps
from onoma.inputs.packing import PackedTexts
from onoma.text import cut_windows, segment, sentence_starts
from records import RESULTS, Record, commit_for, main_with_errors, write_records

COMMAND = "python benchmarks/foundation.py"
REPEATS = 5
MEGABYTE = 1_000_000  # of UTF-8
WINDOW, WINDOW_OVERLAP = 256, 16
PROPOSALS = 1_000_000
LABELS = [f"type {number}" for number in range(20)]

ENGLISH = (
    "Dr. Amara Okafor left the Lagos-based start-up Kite & Key in March 2021 and joined O'Neill's lab in Bergen.",
    "Take 5mg of Velorin twice a day; write to help@velorin.example or see https://velorin.example/dose.",
    "The bridge over the Tarn was closed at 10:30, and some 1,200 cars had to go round by the old mill road.",
    "“Nobody asked us,” said Ines Duarte, who has run the bakery on Harbour Street for twenty-two years.",
    "Shares of Northwind Foods fell 3.5% to $41.20 after the U.S. regulator opened a second inquiry.",
    "He couldn't find the third volume, so he read the first one again, slowly, with a pencil in his hand.",
    "Mutations of the gene were seen in 14 of 86 samples (16.3%), most of them in the second exon.",
    "It rained.",
)
CHINESE = (
    "林晓梅2019年从杭州搬到成都，在四川大学教书。",
    "这座桥上午十点半关闭，一千多辆车只好绕道旧磨坊路。",
    "北风食品公司的股价昨天下跌百分之三点五，报每股四十一元。",
    "“没有人问过我们，”在港口街开了二十二年面包店的杜女士说。",
    "每天两次，每次五毫克，饭后服用。",
)
TEXTS = {
    "english": ENGLISH,
    "chinese": CHINESE,
    "mixed": (
        *ENGLISH,
        *CHINESE,
        "omg just saw The Salt Ledger 🎬 mira dol was SO good 👏🏽",
        "القاهرة مدينة كبيرة جدا.",
    ),
}


def make_text(kind: str, size: int) -> str:
    """A text of about `size` bytes; "unbroken" is a single run of letters and digits."""
    source = random.Random(0)
    if kind == "unbroken":
        return source.randbytes(size // 2).hex()
    sentences = TEXTS[kind]
    mean = statistics.mean(len(sentence.encode()) + 1 for sentence in sentences)
    return " ".join(source.choices(sentences, k=round(size / mean)))


def measure_words(kind: str, megabytes: str) -> dict[str, float]:
    """Segment one document and cut it into windows."""
    text = make_text(kind, int(megabytes) * MEGABYTE)

    def work() -> None:
        words = segment(text)
        cut_windows(np.ones(len(words), np.int64), WINDOW, WINDOW_OVERLAP, sentence_starts(text, words))

    figures = _time(work)
    unit = 1 if sys.platform == "darwin" else 1024  # what ru_maxrss counts in
    return figures | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE}


def make_proposals(words: int) -> Proposals:
    """Random proposals of 1 to 10 words."""
    generator = np.random.default_rng(0)
    first = generator.integers(0, words - 10, PROPOSALS)
    last = first + generator.integers(0, 10, PROPOSALS)
    kind = generator.integers(0, len(LABELS), PROPOSALS)
    score = generator.random(PROPOSALS, np.float32)
    return Proposals(np.zeros(PROPOSALS, np.int64), first, last, kind, score)


def measure_decoding(layout: str, overlap: Overlap) -> dict[str, float]:
    """Resolve the overlaps of a million proposals; in one document, also create the entities."""
    words, documents = {"dense": (20_000, 1), "sparse": (2_000_000, 1), "documents": (200, 10_000)}[layout]
    proposals = make_proposals(words)
    document = np.random.default_rng(1).integers(0, documents, PROPOSALS)
    columns = (proposals.first, proposals.last + 1, proposals.type, proposals.score)
    figures = _time(lambda: resolve_overlaps(*columns, overlap=overlap, group=document))
    if documents == 1:
        text, starts = "x " * words, np.arange(words, dtype=np.int32) * 2
        packed = PackedTexts.pack([text], [np.stack([starts, starts + 1], axis=1)])

        def run() -> None:
            packed.entities(decode(proposals, LABELS, thresholds=0.0, overlap=overlap), LABELS)

        figures |= {f"{name}_to_entities": seconds for name, seconds in _time(run).items()}
    return figures


def measure_help() -> dict[str, float]:
    """`onoma --help`, the whole process."""
    return _time(partial(subprocess.run, [sys.executable, "-m", "onoma", "--help"], check=True, capture_output=True))


def measure_import() -> dict[str, float]:
    """`import onoma` in a new process."""
    source = "from time import perf_counter as now; start = now(); import onoma; print(now() - start)"
    output = subprocess.run([sys.executable, "-c", source], check=True, capture_output=True, text=True).stdout
    return {"seconds": float(output)}


def _time(work: Callable[[], object]) -> dict[str, float]:
    """Seconds by the clock, and processor seconds of this process and its children."""
    start, start_cpu = time.perf_counter(), _processor_seconds()
    work()
    return {"seconds": time.perf_counter() - start, "cpu_seconds": _processor_seconds() - start_cpu}


def _processor_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "words": measure_words,
    "decoding": measure_decoding,
    "help": measure_help,
    "import": measure_import,
}


def measure(metric: str, data: str, *task: str) -> list[Record]:
    """Run a task in fresh processes; one record per figure."""
    runs = [_run(*task) for _ in range(REPEATS)]
    records = []
    for name in runs[0]:
        values = [run[name] for run in runs]
        median, spread = statistics.median(values), statistics.stdev(values)
        records.append(
            Record(f"foundation/{metric}/none/{name}", round(median, 4), COMMAND, data, spread=round(spread, 4))
        )
        print(f"{records[-1].metric:55} {median:9.3f} ± {spread:.3f}", flush=True)
    return records


def _run(*task: str) -> dict[str, float]:
    child = subprocess.run([sys.executable, __file__, *task], check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(child.stdout)
    return figures


def measure_all() -> Iterator[Record]:
    """All figures of this benchmark."""
    for kind in (*TEXTS, "unbroken"):
        data = "letters and digits without a space" if kind == "unbroken" else f"own {kind} sentences in random order"
        sizes = {}
        for megabytes in (1, 2, 5, 10):
            records = measure(f"words/{kind}-{megabytes}mb", data, "words", kind, str(megabytes))
            sizes[megabytes] = next(record.value for record in records if record.metric.endswith("/cpu_seconds"))
            yield from records
        growth = sizes[10] / (10 * sizes[1])
        yield Record(
            f"foundation/words/{kind}/none/growth",
            round(growth, 3),
            COMMAND,
            f"{data}: processor time per MB, 10 MB over 1 MB",
        )
    layouts = {
        "dense": "1,000,000 random proposals in 20,000 words",
        "sparse": "1,000,000 random proposals in 2,000,000 words",
        "documents": "1,000,000 random proposals in 10,000 documents of 200 words",
    }
    for layout, data in layouts.items():
        for overlap in ("flat", "nested", "any"):
            yield from measure(f"decoding/{layout}-{overlap}", data, "decoding", layout, overlap)
    yield from measure("commands/help", "onoma --help, the whole process", "help")
    yield from measure("commands/import", "import onoma", "import")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the foundation and record it in benchmarks/results.")
    parser.add_argument(
        "task", nargs="*", help="a task to run in this process; without one, all tasks, each in its own process"
    )
    task = parser.parse_args().task
    if task:
        print(json.dumps(TASKS[task[0]](*task[1:])))
    else:
        commit_for(RESULTS / "foundation.json")
        write_records(RESULTS / "foundation.json", measure_all())


if __name__ == "__main__":
    main_with_errors(main)
