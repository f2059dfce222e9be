"""The service under load, with the embedded model: `python benchmarks/serve_load.py [--soak 600]`.

Client, service and the Extractor that it is compared with share one machine; service and Extractor alternate, and each
turn of both reads the same sentences. What is measured:

- 64 clients that send 10,000 requests of one sentence with 10 labels: every answer is compared with the offline one
  (same spans and labels, scores within 1e-4, because batches differ), throughput beside the Extractor's, latency;
- one client alone beside direct calls of `Extractor.extract`;
- twice the load that the service can hold: answers with 429, and goodput beside the best throughput;
- memory of the service during a soak;
- requests made by schemathesis out of the OpenAPI document, valid and invalid ones: none may get a 5xx.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import psutil

import onoma
from http_load import Answer, Load
from onoma.data import load_corpus
from onoma.entities import Entity
from onoma.errors import OnomaError
from onoma.text.sentences import sentence_ends
from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records

LABELS = (
    *("person", "company", "city", "country", "event"),
    *("book", "award", "university", "scientific theory", "programming language"),
)
SHORTEST_SENTENCE = 30
SENTENCES = 2_000
OVERLOAD_QUEUE_TOKENS = 4_096
SCORE_TOLERANCE = 1e-4
MEMORY_WARM_UP = 0.2
"""The share of a soak after which memory counts: caches fill at the start."""


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=5, help="alternations of service and Extractor")
    parser.add_argument("--single", type=int, default=400, help="requests of one client alone")
    parser.add_argument("--overload", type=float, default=30.0, help="seconds at twice the load")
    parser.add_argument("--soak", type=float, default=600.0, help="seconds; 0: no soak")
    parser.add_argument("--cases", type=int, default=2_000, help="requests of schemathesis; 0: none")
    parser.add_argument("--output", type=Path, default=RESULTS / "serve.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    texts = sentences(SENTENCES)
    extractor = onoma.load()
    expected = extractor.extract(texts, LABELS)
    bodies = [json.dumps({"texts": [text], "labels": LABELS}, ensure_ascii=False).encode() for text in texts]
    figures: dict[str, float] = {}
    with service() as (port, process):
        figures |= measure_throughput(arguments, port, bodies, texts, expected, extractor)
        show(figures)
        figures |= measure_single(port, bodies[: arguments.single], texts[: arguments.single], extractor)
        show(figures)
        if arguments.soak:
            figures |= measure_soak(arguments, port, process, bodies)
            show(figures)
    peak = figures["requests_per_s"]
    if arguments.overload:
        with service("--queue-tokens", str(OVERLOAD_QUEUE_TOKENS)) as (port, process):
            figures |= measure_overload(arguments, port, bodies, expected, peak)
            show(figures)
    if arguments.cases:
        figures |= run_schemathesis(arguments.cases)
        show(figures)
    data = f"{len(texts):,} English sentences of corpora/onoma_written, {len(LABELS)} labels"
    setting = f"embedded/serve-{arguments.clients}-clients/onoma_written/gte-small"
    write_records(
        arguments.output,
        [
            Record(f"{setting}/{name}", value, command(without=["--output"]), data, encoder="gte-small")
            for name, value in figures.items()
        ],
    )


def sentences(count: int) -> list[str]:
    """Different English sentences of our own passages, spread over all of them."""
    corpus = load_corpus(ROOT / "corpora/onoma_written/en", "train")
    found: dict[str, None] = {}
    step = max(1, len(corpus) // count)
    for document in corpus.documents[::step]:
        edges = [0, *sentence_ends(document.text).tolist(), len(document.text)]
        parts = (document.text[a:b].strip() for a, b in pairwise(edges))
        found.update(dict.fromkeys(part for part in parts if len(part) >= SHORTEST_SENTENCE))
    if len(found) < count:
        raise OnomaError(f"there are only {len(found)} sentences")
    return list(found)[:: len(found) // count][:count]


@contextmanager
def service(*options: str) -> Iterator[tuple[int, psutil.Process]]:
    """A running service, its port and its process."""
    arguments = [sys.executable, "-m", "onoma", "serve", "--port", "0", *options]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        port = 0
        for line in process.stderr:
            if '"event": "start"' in line:
                port = json.loads(line)["port"]
                break
        threading.Thread(target=process.stderr.read, daemon=True).start()  # keeps the pipe empty
        wait_until_ready(port)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


def wait_until_ready(port: int) -> None:
    """Wait for `/readyz`."""
    for _ in range(600):
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise OnomaError("the service does not become ready")


def measure_throughput(
    arguments: Any,
    port: int,
    bodies: Sequence[bytes],
    texts: Sequence[str],
    expected: Sequence[list[Entity]],
    extractor: onoma.Extractor,
) -> dict[str, float]:
    """Clients that wait for their answers, alternating with the Extractor."""
    each = arguments.requests // arguments.turns
    Load(port, bodies, min(each, 500), arguments.clients).run()  # warms up
    served, offline, latencies, statuses, wrong = [], [], list[float](), Counter[int](), 0
    for turn in range(arguments.turns):
        start = turn * each % len(texts)
        own = [(start + place) % len(texts) for place in range(each)]
        begin = time.perf_counter()
        extractor.extract([texts[place] for place in own], LABELS)
        offline.append(each / (time.perf_counter() - begin))
        answers = Load(port, [bodies[place] for place in own], each, arguments.clients).run()
        served.append(each / max(one.finished for one in answers))
        latencies += [one.seconds for one in answers]
        statuses.update(one.status for one in answers)
        wrong += each - len(answers) + sum(not is_expected(one, expected[own[one.request]]) for one in answers)
    middle, late = np.percentile(latencies, [50, 99])
    return {
        "requests": float(statuses.total()),
        "errors": float(statuses.total() - statuses[200]),
        "wrong_answers": float(wrong),
        "requests_per_s": max(served),
        "offline_sentences_per_s": max(offline),
        "share_of_offline_percent": 100 * sum(each / one for one in offline) / sum(each / one for one in served),
        "p50_ms": 1000 * float(middle),
        "p99_ms": 1000 * float(late),
        "p99_by_p50": float(late / middle),
    }


def is_expected(answer: Answer, expected: Sequence[Entity]) -> bool:
    """Whether an answer is what the Extractor finds."""
    if answer.status != 200:
        return False
    (found,) = json.loads(answer.body)["results"]
    return len(found) == len(expected) and all(
        (one["start"], one["end"], one["label"]) == own.key
        and one["text"] == own.text
        and abs(one["score"] - own.score) <= SCORE_TOLERANCE
        for one, own in zip(found, expected, strict=True)
    )


def measure_single(
    port: int, bodies: Sequence[bytes], texts: Sequence[str], extractor: onoma.Extractor
) -> dict[str, float]:
    """One client beside direct calls; medians."""
    for text in texts[:20]:
        extractor.extract(text, LABELS)
    direct, served = [], []
    step = max(1, len(texts) // 4)
    for start in range(0, len(texts), step):
        for text in texts[start : start + step]:
            begin = time.perf_counter()
            extractor.extract(text, LABELS)
            direct.append(time.perf_counter() - begin)
        part = bodies[start : start + step]
        served += [one.seconds for one in Load(port, part, len(part), 1).run()]
    ours, theirs = 1000 * statistics.median(served), 1000 * statistics.median(direct)
    return {
        "single_client_ms": ours,
        "direct_call_ms": theirs,
        "single_client_excess_ms": ours - 1.5 * theirs,  # the bar: at most 3
    }


def measure_overload(
    arguments: Any, port: int, bodies: Sequence[bytes], expected: Sequence[list[Entity]], peak: float
) -> dict[str, float]:
    """Twice the load that the service can hold, whether requests are answered or not."""
    Load(port, bodies, 500, arguments.clients).run()  # warms up
    here = Load(port, bodies, max(500, int(10 * peak)), arguments.clients, keep_bodies=False).run()
    best = len(here) / max(one.finished for one in here)
    rate = 2 * best
    answers = Load(port, bodies, int(rate * arguments.overload), rate=rate).run()
    good = [one for one in answers if one.status == 200]
    statuses = Counter(one.status for one in answers)
    wrong = sum(not is_expected(one, expected[one.request % len(bodies)]) for one in good)
    goodput = len(good) / max(one.finished for one in answers)
    return {
        "overload_rate": rate,
        "overload_429_percent": 100 * statuses[429] / len(answers),
        "overload_other_errors": float(len(answers) - statuses[200] - statuses[429]),
        "overload_wrong_answers": float(wrong),
        "overload_goodput_per_s": goodput,
        "overload_goodput_percent_of_peak": 100 * goodput / best,
    }


def measure_soak(arguments: Any, port: int, process: psutil.Process, bodies: Sequence[bytes]) -> dict[str, float]:
    """Memory of the service while clients keep it busy."""
    memory: list[tuple[float, float]] = []
    stop = threading.Event()
    begin = time.perf_counter()

    def sample() -> None:
        while not stop.wait(1.0):
            memory.append((time.perf_counter() - begin, process.memory_info().rss / 1e6))

    sampler = threading.Thread(target=sample)
    sampler.start()
    answers = Load(port, bodies, 10**9, arguments.clients, seconds=arguments.soak, keep_bodies=False).run()
    stop.set()
    sampler.join()
    values = np.array([value for at, value in memory if at > MEMORY_WARM_UP * arguments.soak])
    third = max(1, len(values) // 3)
    middle = float(np.median(values))
    return {
        "soak_s": arguments.soak,
        "soak_requests": float(len(answers)),
        "soak_errors": float(sum(one.status != 200 for one in answers)),
        "soak_memory_mb": middle,
        "soak_memory_deviation_percent": 100 * float(np.abs(values - middle).max()) / middle,
        "soak_memory_growth_percent": 100 * float(values[-third:].mean() / values[:third].mean() - 1),
    }


def run_schemathesis(cases: int) -> dict[str, float]:
    """The test of the OpenAPI document with more cases; it stops at the first failure."""
    test = [sys.executable, "-m", "pytest", "-q", str(ROOT / "tests/serve/test_openapi.py")]
    done = subprocess.run(test, env=os.environ | {"ONOMA_SCHEMATHESIS_CASES": str(cases)}, cwd=ROOT, check=False)
    return {"schemathesis_cases": float(cases), "schemathesis_failures": float(done.returncode != 0)}


def show(figures: dict[str, float]) -> None:
    """Print what has been measured so far."""
    for name, value in figures.items():
        print(f"{name:40} {value:12.3f}", flush=True)
    print()


if __name__ == "__main__":
    main_with_errors(main)
