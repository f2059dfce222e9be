"""Sentences per second on the CPU beside other libraries: GLiNER, GLiNER2, SpanMarker, spaCy and UIE.

    python benchmarks/peers.py --encoder FOLDER [--uie FOLDER] [--environments .peers]

The script makes an environment for each peer with pip, once; a peer that cannot be installed or started is reported
and left out. Each runs in a process of its own (`benchmarks/peer_worker.py`) and reads the same sentences of our own
passages (corpora/onoma_projects) with the same labels. GLiNER, GLiNER2 and SpanMarker run the encoder of the folder
with untrained heads, UIE and spaCy models of their own: these are figures of speed only. Peers get their sentences
sorted by length and their best batch size; Onoma sorts by itself.

In a turn, all read the same sentences, as many as the slowest peer reads within a limit, but at least 60. Figures are
medians over the turns, and how many times as fast Onoma is the median over the ratios of each turn; `cpu` in a name is
processor time. A run replaces the records of earlier ones.
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
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from onoma.data import Inventory, load_corpus
from onoma.entities import Corpus
from onoma.errors import OnomaError
from onoma.text.sentences import sentence_ends
from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records

TEXTS = ROOT / "corpora/onoma_projects/en"
SHORTEST_SENTENCE = 20  # characters
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
WARM_UP_SENTENCES = 12
LONGEST_NAME = 2  # words of a label: peers that read labels along with texts would be slowed down by long ones
MAX_TURN = 30.0  # seconds of a peer in a turn, if it reads more than the fewest sentences
FEWEST_SENTENCES = 60
MAX_ANSWER = 600.0  # seconds after which a peer is given up
PAUSE = 0.3  # between turns, in which threads of the last peer come to rest


def main() -> None:
    """Measure, print the table and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, help="folder of the encoder of the peers")
    parser.add_argument("--uie", help="folder with model.onnx and vocab.txt of UIE; without it, UIE is left out")
    parser.add_argument("--peers", nargs="+", choices=list(PACKAGES), default=list(PACKAGES))
    parser.add_argument("--environments", type=Path, default=Path(".peers"), help="where environments are made")
    parser.add_argument("--model", help="model folder; by default the embedded one")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--label-counts", type=int, nargs="+", default=list(LABEL_COUNTS))
    parser.add_argument("--limit", type=int, default=240, help="sentences at most")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--note", help="what else there is to say about this run, for the records")
    parser.add_argument("--output", type=Path, default=RESULTS / "peers.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    corpus = load_corpus(TEXTS, "train")
    texts, labels = sentences(corpus, arguments.limit), label_names(corpus, max(arguments.label_counts))
    names = [name for name in arguments.peers if name != "uie" or arguments.uie]
    options = {
        "encoder": str(Path(arguments.encoder).resolve()),
        "threads": arguments.threads,
        "folder": str(arguments.environments.resolve()),
        "uie": arguments.uie and str(Path(arguments.uie).resolve()),
        "model": arguments.model,
    }
    peers = start_all(names, arguments.environments, options)
    try:
        questions: dict[tuple[str, int], Question] = {}
        for count in arguments.label_counts:
            questions |= prepare_all(peers, labels[:count], texts)
        measured = take_turns(peers, questions, arguments.turns)
    finally:
        for peer in peers:
            peer.stop()
    runs = {peer.name: peer.runs for peer in peers}
    Console().print(table(measured, runs))
    write_records(arguments.output, records(measured, questions, runs, arguments), family="*/speed-beside-peers/*")


def sentences(corpus: Corpus, limit: int) -> list[str]:
    """Different sentences, drawn from all parts of a corpus."""
    documents = corpus.documents[:: max(1, len(corpus) // (2 * limit))]
    found: dict[str, None] = {}
    for document in documents:
        edges = [0, *sentence_ends(document.text).tolist(), len(document.text)]
        parts = (document.text[a:b].strip() for a, b in pairwise(edges))
        found.update(dict.fromkeys(part for part in parts if len(part) >= SHORTEST_SENTENCE))
    places = sorted(random.Random(0).sample(range(len(found)), min(limit, len(found))))
    every = list(found)
    return [every[place] for place in places]


def label_names(corpus: Corpus, count: int) -> list[str]:
    """Names of types: the most common short ones of the corpus, then other short ones out of Onoma's inventory."""
    own = Counter(entity.label for document in corpus.documents for entity in document.entities)
    others = list(Inventory.load().types)
    random.Random(0).shuffle(others)
    names_by_key: dict[str, str] = {}
    for name in (*(name for name, _ in own.most_common()), *others):
        if len(name.split()) <= LONGEST_NAME:
            names_by_key.setdefault(name.casefold(), name)
    names = list(names_by_key.values())
    if len(names) < count:
        raise OnomaError(f"{count} types are to be asked for, but there are only {len(names)} names")
    return names[:count]


@dataclass
class Peer:
    """A process that reads texts when it is asked to."""

    name: str
    process: subprocess.Popen[str]
    log: Path
    runs: dict[str, Any] = field(default_factory=dict)

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


def prepare_all(peers: Sequence[Peer], labels: list[str], texts: Sequence[str]) -> dict[tuple[str, int], Question]:
    """What each peer reads in a turn: all the same texts, as many as the slowest one allows."""
    ordered, chosen = sorted(texts, key=len), {}
    few = evenly(ordered, WARM_UP_SENTENCES)
    for peer in peers:
        with leaving_out(peer.name):
            chosen[peer.name] = best_batch_size(peer, labels, few)
    allowed = min(int(MAX_TURN * rate) for _, rate in chosen.values())
    same = evenly(ordered, max(FEWEST_SENTENCES, allowed))
    return {(name, len(labels)): Question(labels, same, size) for name, (size, _) in chosen.items()}


def evenly(ordered: Sequence[str], count: int) -> list[str]:
    """So many texts, evenly spread over all, or all if there are fewer."""
    count = min(count, len(ordered))
    return [ordered[place * len(ordered) // count] for place in range(count)]


def best_batch_size(peer: Peer, labels: list[str], few: Sequence[str]) -> tuple[int, float]:
    """The best batch size and the sentences per second with it; this warms a peer up as well."""
    print(f"warming up {peer.name} with {len(labels)} labels", file=sys.stderr, flush=True)
    peer.read(few[:2], labels, 1)
    sizes = (1,) if peer.name == OURS else BATCH_SIZES  # Onoma makes batches by itself
    seconds = {size: peer.read(few, labels, size)["seconds"] for size in sizes}
    best = min(seconds, key=seconds.__getitem__)
    return best, len(few) / max(seconds[best], 1e-9)


class Turn(NamedTuple):
    """Sentences per second, and milliseconds of the processor per sentence."""

    rate: float
    cpu_ms: float


Measured = dict[tuple[str, int], list[Turn]]
"""All turns, by peer and number of labels."""


def take_turns(peers: Sequence[Peer], questions: Mapping[tuple[str, int], Question], turns: int) -> Measured:
    """Ask all peers one after the other, in every turn; those that fail in one of them are left out."""
    measured: Measured = {key: [] for key in questions}
    named = {peer.name: peer for peer in peers}
    for turn in range(turns):
        print(f"turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
        for key, question in questions.items():
            if len(measured[key]) < turn:
                continue
            time.sleep(PAUSE)
            with leaving_out(key[0]):
                answer = named[key[0]].read(question.texts, question.labels, question.batch_size)
                question.found.append(answer["found"])
                count = len(question.texts)
                measured[key].append(Turn(count / answer["seconds"], 1e3 * answer["cpu_seconds"] / count))
    return {key: values for key, values in measured.items() if len(values) == turns}


def times(measured: Measured, peer: str, count: int) -> list[float]:
    """How many times as fast Onoma is, in each turn."""
    pairs = zip(measured[OURS, count], measured[peer, count], strict=True)
    return [ours.rate / other.rate for ours, other in pairs]


def times_cpu(measured: Measured, peer: str, count: int) -> list[float]:
    """How many times as much processor time a peer takes, in each turn."""
    pairs = zip(measured[OURS, count], measured[peer, count], strict=True)
    return [other.cpu_ms / max(ours.cpu_ms, 1e-9) for ours, other in pairs]


def describe(runs: Mapping[str, Any]) -> str:
    """What a peer runs, in words."""
    threads = f"{runs['threads']} thread{'s' * (runs['threads'] != 1)}"
    return f"{runs['model']}, encoder {runs['encoder']}, {runs['precision']}, {runs['runtime']}, {threads}"


def table(measured: Measured, runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """A line for each peer and number of labels: medians, and how many times as fast Onoma is."""
    shown = Table("labels", "peer", "sentences/s", "lowest–highest", "Onoma is", "runs")
    for (name, count), turns in sorted(measured.items(), key=lambda one: (one[0][1], one[0][0] != OURS)):
        faster = "" if name == OURS else f"{statistics.median(times(measured, name, count)):.1f} times as fast"
        rates = [turn.rate for turn in turns]
        ends = f"{min(rates):,.1f}–{max(rates):,.1f}"
        shown.add_row(f"{count:,}", name, f"{statistics.median(rates):,.1f}", ends, faster, describe(runs[name]))
    return shown


def records(
    measured: Measured,
    questions: Mapping[tuple[str, int], Question],
    runs: Mapping[str, Mapping[str, Any]],
    arguments: argparse.Namespace,
) -> list[Record]:
    """Speeds of all, and how many times as fast Onoma is, with what each of them runs."""
    found = []
    for (name, count), turns in measured.items():
        system, label = arguments.name if name == OURS else name, f"{count}_labels"
        figures = {
            (system, f"{label}_sentences_per_s"): [turn.rate for turn in turns],
            (system, f"{label}_cpu_ms_per_sentence"): [turn.cpu_ms for turn in turns],
        }
        if name != OURS:
            figures[arguments.name, f"{label}_times_{name}"] = times(measured, name, count)
            figures[arguments.name, f"{label}_times_{name}_cpu"] = times_cpu(measured, name, count)
        for (system, measure), values in figures.items():
            encoder = runs[OURS if system == arguments.name else name]["encoder"]
            metric = f"{system}/speed-beside-peers/{TEXTS.parent.name}/{encoder}/{measure}"
            data = data_of(name, questions[name, count], runs, arguments.note)
            found.append(Record.of_turns(metric, values, command(without=["--output"]), data, encoder, digits=3))
    return found


def data_of(name: str, question: Question, runs: Mapping[str, Mapping[str, Any]], note: str | None) -> str:
    """What was read, and what a peer ran; beside Onoma, what it ran as well."""
    batches = "own batches, labels encoded before" if name == OURS else f"batch size {question.batch_size}"
    parts = [f"{len(question.texts)} sentences", f"{name}: {describe(runs[name])}, {batches}"]
    parts.append(f"{statistics.median(question.found):,.0f} entities")
    if name != OURS:
        parts.append(f"{OURS}: {describe(runs[OURS])}")
    return "; ".join([*parts, *filter(None, [note])])


if __name__ == "__main__":
    main_with_errors(main)
