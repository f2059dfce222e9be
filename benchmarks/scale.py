"""`onoma corpus`: speed by workers, kills in the middle of a large corpus, memory over a million documents.

    python benchmarks/scale.py [--parts speed kills memory]

- speed: one and two workers of both engines take turns; whole runs are timed, from reading the files to the summary,
  but not the start of the Ray cluster. Two workers of Ray are compared with one, and with one worker of the local
  engine, which is a single thread. `cpu_ms` is the time of the processor in all processes of a run.
- kills: the local engine annotates a corpus of which 1% of the rows are damaged. Then Ray does, while the process that
  runs it is killed and started again, an actor is killed, and an actor exits by itself. The results must be equal.
- memory: very short documents with two workers of each engine. The memory of all processes (without what they share) is
  read every two seconds; compared are the largest sums in the second and in the last tenth of the documents.

Texts are sentences of our own passages (corpora/onoma_written). Every part writes its records when it is done, in place
of all records of this part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import psutil

from onoma.data import read
from onoma.errors import OnomaError
from onoma.scale import annotate_corpus, ray_data
from onoma.text.sentences import sentence_starts
from onoma.text.words import segment
from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records

SAMPLE_SECONDS = 2.0
"""Between two readings of the memory."""
PASSAGES = ROOT / "corpora/onoma_written/en/train.jsonl.xz"
LABELS = ("person", "city", "company", "date", "product", "disease", "drug", "event", "law", "work of art")
PARTS = ("speed", "kills", "memory")
ENGINES = ("local", "ray")
ENCODER = "gte-small"
DAMAGED_EVERY = 100
SHORT_WORDS = 6
EXIT_MARK = "exit"
"""File beside the output; the actor that sees it removes it and exits."""


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES, help="of speed and memory")
    parser.add_argument("--documents", type=int, default=20_000, help="of each run of the part speed")
    parser.add_argument("--turns", type=int, default=5, help="of the part speed")
    parser.add_argument("--kill-documents", type=int, default=100_000)
    parser.add_argument("--short-documents", type=int, default=1_000_000)
    parser.add_argument("--model", help="by default the embedded one")
    parser.add_argument("--work", type=Path, help="folder for corpora and results, by default a temporary one")
    parser.add_argument("--output", type=Path, default=RESULTS / "scale.json")
    parser.add_argument("--note", help="what else there is to say about this run, for the records")
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.drive:
        drive(*arguments.drive, arguments.model)
        return
    commit_for(arguments.output)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for part in arguments.parts:
            run: Callable[[Path, argparse.Namespace], list[Record]] = globals()[f"measure_{part}"]
            records = run(folder, arguments)
            if arguments.note:
                records = [replace(record, data=f"{record.data}; {arguments.note}") for record in records]
            for record in records:
                print(f"{record.metric:75} {record.value:12.3f}", flush=True)
            write_records(arguments.output, records, family=f"embedded/scale-{part}/*")


def record(setting: str, measure: str, value: float, data: str) -> Record:
    """One figure."""
    metric = f"embedded/{setting}/onoma_written/{ENCODER}/{measure}"
    return Record(metric, value, command(without=["--output", "--work"]), data, encoder=ENCODER)


def sentences() -> Iterator[str]:
    """The sentences of all passages, again and again."""
    found = []
    for document in read(PASSAGES):
        words = segment(document.text)
        starts = [int(words[start, 0]) for start in sentence_starts(document.text, words)]
        found += [document.text[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return cycle([text for text in found if text])


def write_corpus(path: Path, texts: Sequence[str] | Iterator[str], *, damaged: bool = False) -> Path:
    """JSON lines with ids, of which some are damaged."""
    with open(path, "w", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            line = json.dumps({"id": number, "text": text}, ensure_ascii=False)
            file.write(f"{line[:-9] if damaged and not number % DAMAGED_EVERY else line}\n")
    return path


# --- speed


def measure_speed(folder: Path, arguments: argparse.Namespace) -> list[Record]:
    """Documents per second of both engines with one and two workers."""
    texts = list(islice(sentences(), arguments.documents))
    words = sum(len(segment(text)) for text in texts)
    path = write_corpus(folder / "speed.jsonl", texts)
    runs = [(engine, workers) for engine in arguments.engines for workers in (1, 2)]
    measured: dict[tuple[str, int], list[Turn]] = {one: [] for one in runs}
    if "ray" in arguments.engines:
        import ray

        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    for turn in range(arguments.turns):
        for engine, workers in runs:
            output = folder / "speed"
            shutil.rmtree(output, ignore_errors=True)
            start = time.perf_counter()
            with ProcessorTime() as used:
                annotate_corpus(
                    str(path),
                    output,
                    LABELS,
                    model=arguments.model,
                    engine=engine,  # type: ignore[arg-type]
                    workers=workers,
                    rows_per_shard=max(256, arguments.documents // 40),
                )
                rate = len(texts) / (time.perf_counter() - start)
            measured[engine, workers].append(Turn(rate, 1000 * used.seconds / len(texts)))
            print(f"turn {turn + 1}: {engine}, {workers} workers: {rate:.1f} per second", flush=True)
    if "ray" in arguments.engines:
        ray.shutdown()
    data = f"{len(texts):,} sentences with {words:,} words, {len(LABELS)} types"
    return list(_speed_records(measured, words / len(texts), data))


class Turn(NamedTuple):
    """Documents per second, and milliseconds of the processor per document."""

    rate: float
    cpu_ms: float


class ProcessorTime:
    """The seconds of the processor that this process and its descendants use in a block.

    They are read twice a second, because processes that end cannot be asked any more: of each, at most half a second is
    missing.
    """

    def __enter__(self) -> ProcessorTime:
        self._own = psutil.Process()
        self._stopped, self._last = threading.Event(), self._read()
        self._first = dict(self._last)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._last |= self._read()

    @property
    def seconds(self) -> float:
        return sum(value - self._first.get(process, 0.0) for process, value in self._last.items())

    def _run(self) -> None:
        while not self._stopped.wait(0.5):
            self._last |= self._read()

    def _read(self) -> dict[psutil.Process, float]:
        found = {}
        for process in [self._own, *self._own.children(recursive=True)]:
            with suppress(psutil.Error):
                times = process.cpu_times()
                found[process] = times.user + times.system
        return found


def _speed_records(measured: dict[tuple[str, int], list[Turn]], words: float, data: str) -> Iterator[Record]:
    yield record("scale-speed", "words_per_document", words, data)
    figures = {}
    for (engine, workers), turns in measured.items():
        name = f"{engine}_{workers}_worker{'s' * (workers > 1)}"
        figures[f"{name}_documents_per_s"] = [turn.rate for turn in turns]
        figures[f"{name}_cpu_ms_per_document"] = [turn.cpu_ms for turn in turns]
    for engine in dict.fromkeys(engine for engine, _ in measured):
        figures[f"{engine}_2_workers_times_1"] = _ratios(measured[engine, 2], measured[engine, 1])
    if len(ENGINES) == len({engine for engine, _ in measured}):
        figures["ray_2_workers_times_local_1"] = _ratios(measured["ray", 2], measured["local", 1])
    for name, values in figures.items():
        metric = f"embedded/scale-speed/onoma_written/{ENCODER}/{name}"
        yield Record.of_turns(metric, values, command(without=["--output", "--work"]), data, ENCODER)


def _ratios(turns: Sequence[Turn], others: Sequence[Turn]) -> list[float]:
    """How many times as many documents per second, in each turn."""
    return [one.rate / other.rate for one, other in zip(turns, others, strict=True)]


# --- kills


class ExitingActor(ray_data.ShardActor):
    """Exits by itself in the middle of a shard when it is told to."""

    def __init__(self, output: str) -> None:
        super().__init__(output)
        mark, annotate_group = Path(output).with_suffix(f".{EXIT_MARK}"), self.worker._annotate_group

        def annotate_or_exit(*arguments: Any) -> None:
            annotate_group(*arguments)
            if mark.exists():
                mark.unlink()
                sys.exit(0)

        self.worker._annotate_group = annotate_or_exit  # type: ignore[method-assign]


def drive(source: str, output: str, engine: Literal["local", "ray"], model: str | None) -> None:
    """The process that runs an engine, to be killed or watched."""
    ray_data.ShardActor = ExitingActor  # type: ignore[misc]
    annotate_corpus(source, output, LABELS, model=model, engine=engine, workers=2)


def measure_kills(folder: Path, arguments: argparse.Namespace) -> list[Record]:
    """A run of Ray with kills beside one of the local engine without."""
    count = arguments.kill_documents
    path = write_corpus(folder / "kills.jsonl", islice(sentences(), count), damaged=True)
    expected, output = folder / "kills-local", folder / "kills-ray"
    for one in (expected, output):
        shutil.rmtree(one, ignore_errors=True)
    annotate_corpus(str(path), expected, LABELS, model=arguments.model, workers=2)
    shards = len(list(expected.glob("part-*")))
    if shards < 8:
        raise OnomaError(f"{count} documents are too few for kills in the middle. Fix: raise --kill-documents")
    driver = _start_driver(path, output, "ray", arguments.model)
    _wait(driver, output, shards // 4)
    driver.kill()
    driver.wait()
    driver = _start_driver(path, output, "ray", arguments.model)
    _wait(driver, output, shards // 2)
    _kill_actor(driver)
    _wait(driver, output, 3 * shards // 4)
    mark = output.with_suffix(f".{EXIT_MARK}")
    mark.touch()
    code = driver.wait()
    if code or mark.exists():
        raise OnomaError(f"the run with kills ended with exit code {code}, or before an actor could exit")
    rows = [json.loads(line)["id"] for part in sorted(output.glob("part-*")) for line in part.open(encoding="utf-8")]
    damaged = sum(1 for _ in (output / "_errors.jsonl").open(encoding="utf-8"))
    data = f"{count:,} documents, 1% damaged; driver killed and started again, actor killed, actor exiting by itself"
    figures = {
        "documents": len(rows),
        "missing_documents": count - damaged - len(set(rows)),
        "duplicate_documents": len(rows) - len(set(rows)),
        "rows_in_side_file": damaged,
        "equal_to_local_engine": float(_digest(output) == _digest(expected)),
    }
    return [record("scale-kills", name, value, data) for name, value in figures.items()]


def _start_driver(source: Path, output: Path, engine: str, model: str | None) -> subprocess.Popen[bytes]:
    program = [
        sys.executable,
        __file__,
        "--drive",
        str(source),
        str(output),
        engine,
        *(["--model", model] if model else []),
    ]
    return subprocess.Popen(program, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})


def _wait(driver: subprocess.Popen[bytes], output: Path, shards: int) -> None:
    """Until a number of shards is done."""
    while len(list(output.glob("part-*"))) < shards:
        if driver.poll() is not None:
            raise OnomaError(f"the run ended with exit code {driver.returncode} before it could be killed")
        time.sleep(0.05)
    print(f"{shards} shards are done", flush=True)


def _kill_actor(driver: subprocess.Popen[bytes]) -> None:
    actors = [
        one for one in psutil.Process(driver.pid).children(recursive=True) if "MapWorker" in " ".join(one.cmdline())
    ]
    if not actors:
        raise OnomaError("no actor of the run was found")
    actors[0].kill()
    print(f"killed {actors[0]}", flush=True)


def _digest(folder: Path) -> str:
    """Of all results."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("part-*"), folder / "_errors.jsonl", folder / "_summary.json"]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


# --- memory


def measure_memory(folder: Path, arguments: argparse.Namespace) -> list[Record]:
    """Memory of all processes of a run with each engine."""
    count = arguments.short_documents
    texts = (" ".join(text.split()[:SHORT_WORDS]) for text in sentences())
    path = write_corpus(folder / "memory.jsonl", islice(texts, count))
    data = f"{count:,} documents of at most {SHORT_WORDS} words, two workers"
    figures: dict[str, float] = {}
    for engine in arguments.engines:
        found = _memory_of(engine, path, folder / f"memory-{engine}", arguments)
        figures |= {f"{engine}_{name}": value for name, value in found.items()}
    return [record("scale-memory", name, value, data) for name, value in figures.items()]


def _memory_of(engine: str, path: Path, output: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """Rate, and the largest memory near the start and near the end."""
    count = arguments.short_documents
    shutil.rmtree(output, ignore_errors=True)
    start = time.perf_counter()
    driver = _start_driver(path, output, engine, arguments.model)
    samples: list[tuple[int, float]] = []  # shards that are done, megabytes
    while driver.poll() is None:
        samples.append((len(list(output.glob("part-*"))), _megabytes(driver.pid)))
        time.sleep(SAMPLE_SECONDS)
    seconds, shards = time.perf_counter() - start, len(list(output.glob("part-*")))
    if driver.returncode:
        raise OnomaError(f"the run with the engine {engine} ended with exit code {driver.returncode}")
    early = [size for done, size in samples if 0.1 <= done / shards <= 0.2]
    late = [size for done, size in samples if 0.9 <= done / shards < 1.0]
    if not early or not late:
        raise OnomaError(f"{count} documents are too few to see how memory grows. Fix: raise --short-documents")
    return {
        "documents_per_s": count / seconds,
        "early_peak_mb": max(early),
        "late_peak_mb": max(late),
        "late_peak_times_early": max(late) / max(early),
    }


def _megabytes(process: int) -> float:
    """The memory of a process and all its descendants that they do not share."""
    total = 0
    try:
        for one in [psutil.Process(process), *psutil.Process(process).children(recursive=True)]:
            with suppress(psutil.Error):
                total += one.memory_full_info().uss
    except psutil.Error:  # it has just ended
        return 0.0
    return total / 1e6


if __name__ == "__main__":
    main_with_errors(main)
