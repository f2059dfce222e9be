"""BINDER's experiments: CoNLL-2003 and GENIA (tables 1 and 10), and the ablations of tables 4, 5 and 6.

    python benchmarks/binder.py supervised --data CORPORA [--encoders FOLDER]
    python benchmarks/binder.py ablations --data CORPORA [--encoders FOLDER]

Runs go side by side on one GPU; results are written to benchmarks/results/binder_PLAN.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from records import Record, write_records

ROOT = Path(__file__).resolve().parents[1]
HUB = {
    "mpnet-base": "sentence-transformers/all-mpnet-base-v2",
    "gte-small": "thenlper/gte-small",
    "minilm-l6": "sentence-transformers/all-MiniLM-L6-v2",
}
USUAL = ["mpnet-base", "gte-small"]
PAPER = {"conll2003": 93.33, "genia": 80.5}
# Table 4, 5 and 6 of the paper: F1 on ACE2005 with BERT-base, for comparison of the order, not of the height.
ABLATIONS: dict[str, tuple[dict[str, Any], float | None]] = {
    "full": ({}, 89.5),
    "shared-linear": ({"shared_linear": True}, 89.3),
    "joint-inference": ({"inference": "joint"}, 89.3),
    "no-positions": ({"positions": False}, 89.3),
    "atomic-labels": ({"types": "atomic"}, 89.2),
    "keywords": ({"types": "name"}, 89.2),
    "prototypes": ({"types": "prototype"}, 89.4),
    "global-thresholds": ({"thresholds": "global"}, 88.6),
    "tuned-thresholds": ({"thresholds": "tuned"}, 87.5),
    "shared-encoder": ({"shared_encoder": True}, None),
}
# What we chose on dev: (epochs, windows in a batch, rate of the encoder).
SETTINGS = {
    ("conll2003", "mpnet-base"): (10, 16, 6e-5),
    ("conll2003", "gte-small"): (20, 16, 1.5e-4),
    ("genia", "mpnet-base"): (8, 48, 6e-5),
    ("genia", "gte-small"): (16, 32, 1.5e-4),
}
ABLATION_SETTINGS = (10, 64, 2e-4)


@dataclass(frozen=True)
class Run:
    """One training run."""

    setting: str
    corpus: str
    encoder: str
    seed: int
    changes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.setting}-{self.corpus}-{self.encoder}-{self.seed}"


def plan(
    name: str, seeds: list[int], encoders: list[str], variants: list[str] | None = None, small: str = "gte-small"
) -> Iterator[Run]:
    """The runs of a plan, the longest first; ablations are made on a small encoder."""
    if name in ("supervised", "all"):
        for encoder in encoders:
            for corpus in ("genia", "conll2003"):
                for seed in seeds:
                    yield Run("supervised", corpus, encoder, seed, settings(*SETTINGS[corpus, encoder]))
    if name in ("ablations", "all"):
        seeds = seeds[:1] if name == "all" else seeds
        for ablation, (options, _) in ABLATIONS.items():
            if variants is not None and ablation not in variants:
                continue
            for seed in seeds:
                changes = tuple(f"options.{key}={json.dumps(value)}" for key, value in options.items())
                yield Run(ablation, "genia", small, seed, (*settings(*ABLATION_SETTINGS), *changes))


def settings(epochs: float, batch: int, rate: float) -> tuple[str, ...]:
    """Larger batches and fewer epochs than the paper's, and a rate of its own for everything that is not pretrained."""
    return (
        f"training.epochs={epochs}",
        f"training.batch_size={batch}",
        f"training.rate={rate}",
        "training.accumulation=1",
        "training.head_rate=3e-4",
        "training.checkpoints=false",
        "training.evaluate_every=200",
        "training.threshold_on=dev",
    )


def main() -> None:
    """Run a plan, or one run of it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=["supervised", "ablations", "all"])
    parser.add_argument("--data", required=True, help="folder with en/conll2003 and en/genia")
    parser.add_argument("--encoders", help="folder with mpnet-base and gte-small, instead of the hub")
    parser.add_argument("--only", nargs="*", default=USUAL, choices=list(HUB), help="encoders to run")
    parser.add_argument("--variants", nargs="*", choices=list(ABLATIONS), help="ablations to run; by default all")
    parser.add_argument("--small", default="gte-small", choices=list(HUB), help="encoder of the ablations")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1e9, help="no run is started or kept after that time")
    parser.add_argument("--set", nargs="*", default=[], help="changes to all recipes, such as training.max_steps=10")
    parser.add_argument("--runs", default=ROOT / "runs", type=Path)
    parser.add_argument("--output", type=Path, default=None)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        train_one(json.loads(arguments.one))
        return
    runs = list(plan(arguments.plan, arguments.seeds, arguments.only, arguments.variants, arguments.small))
    finished = run_all(runs, arguments)
    output = arguments.output or ROOT / "benchmarks" / "results" / f"binder_{arguments.plan}.json"
    command = f"python benchmarks/binder.py {arguments.plan} --data CORPORA"
    command += "".join(f" --set {change}" for change in arguments.set)
    device = next((metrics["device"] for metrics in finished.values()), "")
    write_records(output, records(finished, command), accelerator=device)


def run_all(runs: list[Run], arguments: argparse.Namespace) -> dict[Run, dict[str, Any]]:
    """Run processes side by side; the metrics of those that finished."""
    deadline = time.monotonic() + arguments.seconds
    waiting, running, finished = list(runs), {}, {}
    while waiting or running:
        for run, process in list(running.items()):
            if process.poll() is None and time.monotonic() < deadline:
                continue
            process.kill()
            del running[run]
            metrics = arguments.runs / run.name / "metrics.json"
            if metrics.is_file():
                finished[run] = json.loads(metrics.read_text())
                scores = finished[run]["test"][run.corpus]
                print(f"{run.name}: test F1 {scores['f1']:.2f}, {finished[run]['seconds']} s", flush=True)
            else:
                print(f"{run.name}: failed or stopped, see {arguments.runs / run.name}.log", flush=True)
        while waiting and len(running) < arguments.parallel and time.monotonic() < deadline:
            run = waiting.pop(0)
            running[run] = start(run, arguments)  # a run that is there already is only read
        if time.monotonic() >= deadline:
            waiting.clear()
        time.sleep(0.5)
    return finished


def start(run: Run, arguments: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start one run in a process of its own; nothing to do if its metrics are there."""
    if (arguments.runs / run.name / "metrics.json").is_file():
        return subprocess.Popen([sys.executable, "-c", ""])
    encoder = f"{arguments.encoders}/{run.encoder}" if arguments.encoders else HUB[run.encoder]
    job = {
        "recipe": str(ROOT / "recipes" / "binder" / f"{run.corpus}.yaml"),
        "data": arguments.data,
        "output": str(arguments.runs / run.name),
        "changes": [f"encoder={encoder}", f"seed={run.seed}", *run.changes, *arguments.set],
    }
    arguments.runs.mkdir(parents=True, exist_ok=True)
    with open(arguments.runs / f"{run.name}.log", "wb") as log:
        command = [sys.executable, __file__, arguments.plan, "--data", arguments.data, "--one", json.dumps(job)]
        return subprocess.Popen(command, stdout=log, stderr=log)


def train_one(job: dict[str, Any]) -> None:
    """The process of one run."""
    from onoma.training.run import train

    train(job["recipe"], output=job["output"], data=job["data"], changes=job["changes"])


def records(finished: dict[Run, dict[str, Any]], command: str) -> Iterator[Record]:
    """Means over seeds, in the form of all results."""
    groups: dict[tuple[str, str, str], list[tuple[Run, dict[str, Any]]]] = {}
    for run, metrics in finished.items():
        groups.setdefault((run.setting, run.corpus, run.encoder), []).append((run, metrics))
    for (setting, corpus, encoder), members in groups.items():
        paper = PAPER[corpus] if setting == "supervised" else ABLATIONS[setting][1]
        for measure in ("f1", "precision", "recall"):
            values = [metrics["test"][corpus][measure] for _, metrics in members]
            yield Record(
                f"binder/{setting}/{corpus}/{encoder}/{measure}",
                round(fmean(values), 2),
                command,
                f"{corpus}: trained on train, chosen on dev, measured on test",
                paper if measure == "f1" else None,
                encoder,
                tuple(run.seed for run, _ in members),
                round(stdev(values), 2) if len(values) > 1 else None,
            )


if __name__ == "__main__":
    main()
