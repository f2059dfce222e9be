"""Sentences per second on the CPU beside other libraries: GLiNER, GLiNER2, SpanMarker, spaCy and UIE.

    python benchmarks/peers.py --data CORPORA --encoder FOLDER [--uie FOLDER] [--environments .peers]

The script makes an environment for each peer with pip, once; a peer that cannot be installed or started is reported
and left out. Each runs in a process of its own (`benchmarks/peer_worker.py`) with the encoder of the folder, untrained
heads and the same number of threads, and reads the same sentences of CrossNER with the same labels: these are figures
of speed only. Peers get their sentences sorted by length and their best batch size; Onoma sorts by itself. All take
turns; a peer that is slow reads some of the sentences, evenly spread over the lengths. Figures are medians over the
turns, and how many times as fast Onoma is the median over the ratios of each turn; spread is the standard deviation.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from onoma.data import Inventory, load_corpus
from onoma.entities import Corpus
from onoma.errors import OnomaError
from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records
from suites import SUITES

CROSSNER = tuple(name for name in SUITES["benchmarks"]["en"].sets if name.startswith("crossner_"))
TORCH = "torch==2.13.0"  # pinned: an unpinned torch brings gigabytes of GPU libraries along
GLINER = (TORCH, "gliner==0.2.29", "onnx==1.23.2", "onnxruntime==1.31.1")
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "gliner": GLINER,
    "gliner-onnx-int8": GLINER,
    "gliner2": (TORCH, "gliner2[local]==2.1.0"),
    "span-marker": (TORCH, "span_marker==1.8.1"),
    "spacy": ("spacy==3.8.18",),
    "uie": ("onnxruntime==1.31.1", "tokenizers==0.23.3"),
}
"""What each peer needs; peers with the same packages share an environment."""
OURS = "onoma"
LABEL_COUNTS = (10, 100)
BATCH_SIZES = (1, 4, 16)
LONGEST_NAME = 2  # words of a label: peers that read labels along with texts would be slowed down by long ones
MAX_TURN = 15.0  # seconds of a turn; slower peers read fewer sentences
MAX_ANSWER = 600.0  # seconds after which a peer is given up
PAUSE = 0.3  # between turns, in which threads of the last peer come to rest


def main() -> None:
    """Measure, print the table and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/crossner_ai and the others")
    parser.add_argument("--encoder", required=True, help="folder of the encoder of the peers")
    parser.add_argument("--uie", help="folder with model.onnx and vocab.txt of UIE; without it, UIE is left out")
    parser.add_argument("--peers", nargs="+", choices=list(PACKAGES), default=list(PACKAGES))
    parser.add_argument("--environments", type=Path, default=Path(".peers"), help="where environments are made")
    parser.add_argument("--model", help="model folder; by default the embedded one")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--label-counts", type=int, nargs="+", default=list(LABEL_COUNTS))
    parser.add_argument("--limit", type=int, default=24, help="sentences of each set")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "peers.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    corpora = [load_corpus(arguments.data / "en" / name, "test", natural_names=True) for name in CROSSNER]
    texts, labels = sentences(corpora, arguments.limit), label_names(corpora, max(arguments.label_counts))
    asked = [name for name in arguments.peers if name != "uie" or arguments.uie]
    options = {
        "encoder": str(Path(arguments.encoder).resolve()),
        "threads": arguments.threads,
        "folder": str(arguments.environments.resolve()),
        "uie": arguments.uie and str(Path(arguments.uie).resolve()),
        "model": arguments.model,
    }
    peers = start_all(asked, arguments.environments, options)
    try:
        questions: dict[tuple[str, int], Question] = {}
        for count in arguments.label_counts:
            for peer in peers:
                with leaving_out(peer.name):
                    questions[peer.name, count] = prepare(peer, labels[:count], texts)
        speeds = take_turns(peers, questions, arguments.turns)
    finally:
        for peer in peers:
            peer.stop()
    Console().print(table(speeds, {peer.name: peer.runs for peer in peers}))
    setting = f"{len(texts)} test sentences of the five sets, {arguments.threads} threads, {arguments.turns} turns"
    write_records(
        arguments.output,
        records(speeds, questions, {peer.name: f"{setting}; {peer.runs}" for peer in peers}, arguments),
    )


def sentences(corpora: Sequence[Corpus], limit: int) -> list[str]:
    """As many sentences of each set, drawn from all of it, in the order of the corpora."""
    chosen = [sorted(random.Random(0).sample(range(len(corpus)), min(limit, len(corpus)))) for corpus in corpora]
    return [corpus.documents[place].text for corpus, places in zip(corpora, chosen, strict=True) for place in places]


def label_names(corpora: Sequence[Corpus], count: int) -> list[str]:
    """Names of types: those of the corpora, the most common first, then other short ones out of Onoma's inventory."""
    asked = Counter(one.name for corpus in corpora for one in corpus.types)
    others = [name for name in Inventory.load().types if len(name.split()) <= LONGEST_NAME]
    random.Random(0).shuffle(others)
    names = list(dict.fromkeys([*(name for name, _ in asked.most_common()), *others]))
    if len(names) < count:
        raise OnomaError(f"{count} types are to be asked for, but there are only {len(names)} names")
    return names[:count]


@dataclass
class Peer:
    """A process that reads texts when it is asked to."""

    name: str
    process: subprocess.Popen[str]
    log: Path
    runs: str = ""

    @classmethod
    def start(cls, name: str, python: Path, options: Mapping[str, Any], log: Path) -> Peer:
        """Start a peer and wait until its model is loaded."""
        worker = Path(__file__).with_name("peer_worker.py")
        changed = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}
        changed |= {"OMP_NUM_THREADS": str(options["threads"])}
        changed |= {"PYTHONPATH": str(ROOT / "src")} if name == OURS else {"PYTHONPATH": ""}
        process = subprocess.Popen(
            [python, worker, name, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w", encoding="utf-8"),
            text=True,
            encoding="utf-8",
            env=os.environ | changed,
        )
        peer = cls(name, process, log)
        peer.runs = peer._answer()["runs"]
        return peer

    def read(self, texts: Sequence[str], labels: Sequence[str], batch_size: int) -> dict[str, Any]:
        """Seconds, and the number of entities that were found."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and the answer says why
            self.process.stdin.write(json.dumps({"texts": texts, "labels": labels, "batch_size": batch_size}) + "\n")
            self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        limit = threading.Timer(MAX_ANSWER, self.process.kill)
        limit.start()
        line = self.process.stdout.readline()
        limit.cancel()
        if not line:
            self.process.wait()
            reason = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise OnomaError(f"{self.name} ended: {' '.join(reason):.300} (see {self.log})")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_all(names: Iterable[str], folder: Path, options: Mapping[str, Any]) -> list[Peer]:
    """Onoma and all peers that can be installed and started."""
    folder.mkdir(parents=True, exist_ok=True)
    peers = [Peer.start(OURS, Path(sys.executable), options, folder / f"{OURS}.log")]
    for name in names:
        print(f"starting {name}", file=sys.stderr, flush=True)
        with leaving_out(name):
            python = environment(folder, PACKAGES[name])
            peers.append(Peer.start(name, python, options, folder / f"{name}.log"))
    return peers


@contextlib.contextmanager
def leaving_out(name: str) -> Iterator[None]:
    """Report an error of a peer and go on without it; one of Onoma itself ends the benchmark."""
    try:
        yield
    except OnomaError as error:
        if name == OURS:
            raise
        print(f"left out: {error}", file=sys.stderr, flush=True)


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """The Python of an environment with these packages, which is made unless it exists."""
    place = folder.resolve() / "-".join(one.partition("=")[0].partition("[")[0] for one in packages)
    python, done = place / "bin" / "python", place / "installed.txt"
    if done.exists() and done.read_text("utf-8").split() == list(packages):
        return python
    run(sys.executable, "-m", "venv", "--clear", place)
    run(python, "-m", "pip", "install", "--quiet", *packages)
    done.write_text("\n".join(packages), "utf-8")
    return python


def run(*words: object) -> None:
    """Run a command; an error with the last line that it printed if it fails."""
    ended = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if ended.returncode:
        reason = (ended.stderr or ended.stdout).strip().splitlines()[-1:]
        raise OnomaError(f"{' '.join(map(str, words[1:]))}: {' '.join(reason):.300}")


@dataclass
class Question:
    """What a peer reads in each turn."""

    labels: list[str]
    texts: list[str]
    batch_size: int
    found: list[int] = field(default_factory=list)


def prepare(peer: Peer, labels: list[str], texts: Sequence[str]) -> Question:
    """The best batch size, and as many texts as a peer reads in a turn; this warms it up as well."""
    print(f"warming up {peer.name} with {len(labels)} labels", file=sys.stderr, flush=True)
    if peer.name == OURS:
        peer.read(texts, labels, 1)
        return Question(labels, list(texts), 1)
    ordered = sorted(texts, key=len)
    few = ordered[:: max(1, len(ordered) // 12)]
    peer.read(few[:2], labels, 1)
    seconds = {size: peer.read(few, labels, size)["seconds"] for size in BATCH_SIZES}
    best = min(seconds, key=seconds.__getitem__)
    affordable = max(len(few), int(MAX_TURN / max(seconds[best], 1e-9) * len(few)))
    return Question(labels, ordered[:: max(1, -(-len(ordered) // affordable))], best)


Speeds = dict[tuple[str, int], list[float]]
"""Sentences per second in each turn, by peer and number of labels."""


def take_turns(peers: Sequence[Peer], questions: Mapping[tuple[str, int], Question], turns: int) -> Speeds:
    """Ask all peers one after the other, in every turn; those that fail in one of them are left out."""
    speeds: Speeds = {key: [] for key in questions}
    named = {peer.name: peer for peer in peers}
    for turn in range(turns):
        print(f"turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
        for key, question in questions.items():
            if len(speeds[key]) < turn:
                continue
            time.sleep(PAUSE)
            with leaving_out(key[0]):
                answer = named[key[0]].read(question.texts, question.labels, question.batch_size)
                question.found.append(answer["found"])
                speeds[key].append(len(question.texts) / answer["seconds"])
    return {key: values for key, values in speeds.items() if len(values) == turns}


def times(speeds: Speeds, peer: str, count: int) -> list[float]:
    """How many times as fast Onoma is, in each turn."""
    pairs = zip(speeds[OURS, count], speeds[peer, count], strict=True)
    return [ours / theirs for ours, theirs in pairs]


def table(speeds: Speeds, runs: Mapping[str, str]) -> Table:
    """A line for each peer and number of labels: medians, and how many times as fast Onoma is."""
    shown = Table("labels", "peer", "sentences/s", "lowest–highest", "Onoma is", "runs")
    for (name, count), values in sorted(speeds.items(), key=lambda one: (one[0][1], one[0][0] != OURS)):
        faster = "" if name == OURS else f"{statistics.median(times(speeds, name, count)):.1f} times as fast"
        spread = f"{min(values):,.1f}–{max(values):,.1f}"
        shown.add_row(f"{count:,}", name, f"{statistics.median(values):,.1f}", spread, faster, runs[name])
    return shown


def records(
    speeds: Speeds,
    questions: Mapping[tuple[str, int], Question],
    data: Mapping[str, str],
    arguments: argparse.Namespace,
) -> list[Record]:
    """Speeds of all, and how many times as fast Onoma is, with what each of them runs."""
    encoder, pasted, found = Path(arguments.encoder).name, command(without=["--output"]), []
    for (name, count), values in speeds.items():
        question = questions[name, count]
        told = f"{data[name]}; {statistics.median(question.found):,.0f} entities in {len(question.texts)} texts"
        if name == OURS:
            told += ", labels encoded before"
        else:
            told += f", batch size {question.batch_size}, untrained heads on {encoder}"
        measured = {(arguments.name if name == OURS else name, f"{count}_labels_sentences_per_s"): values}
        if name != OURS:
            measured[arguments.name, f"{count}_labels_times_{name}"] = times(speeds, name, count)
        found += [
            Record(
                f"{system}/speed-beside-peers/crossner/{encoder}/{measure}",
                round(statistics.median(turns), 3),
                pasted,
                told,
                encoder=encoder,
                spread=round(statistics.stdev(turns), 3) if turns[1:] else None,
            )
            for (system, measure), turns in measured.items()
        ]
    return found


if __name__ == "__main__":
    main_with_errors(main)
