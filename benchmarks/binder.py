"""BINDER's experiments: CoNLL-2003 and GENIA (tables 1 and 10), and the ablations of tables 4, 5 and 6.

    python benchmarks/binder.py supervised --data CORPORA [--encoders FOLDER]
    python benchmarks/binder.py ablations --data CORPORA [--encoders FOLDER]

Results are written to benchmarks/results/binder_supervised.json and binder_ablations.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from experiments import HUB, Run, add_arguments, mean_record, run_all
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

PAPER = {"conll2003": 93.33, "genia": 80.5}
# Tables 4, 5 and 6 of the paper: F1 on ACE2005 with BERT-base, to compare the order, not the values.
ABLATIONS: dict[str, tuple[dict[str, Any], float | None]] = {
    "full": ({}, 89.5),
    "shared-linear": ({"shared_linear": True}, 89.3),
    "joint-inference": ({"inference": "joint"}, 89.3),
    "no-positions": ({"position_losses": False}, 89.3),
    "atomic-labels": ({"types": "atomic"}, 89.2),
    "keywords": ({"types": "name"}, 89.2),
    "prototypes": ({"types": "prototype"}, 89.4),
    "global-thresholds": ({"thresholds": "global"}, 88.6),
    "tuned-thresholds": ({"thresholds": "tuned"}, 87.5),
    "shared-encoder": ({"shared_encoder": True}, None),
}
# Chosen on dev: epochs, windows per batch, learning rate of the encoder.
SETTINGS = {
    ("conll2003", "mpnet-base"): (10, 16, 6e-5),
    ("conll2003", "gte-small"): (20, 16, 1.5e-4),
    ("genia", "mpnet-base"): (8, 48, 6e-5),
    ("genia", "gte-small"): (16, 32, 1.5e-4),
}
ABLATION_SETTINGS = (10, 64, 2e-4)


class Figure(NamedTuple):
    """What a run is a part of: runs that differ in the seed only make one figure."""

    setting: str
    corpus: str
    encoder: str
    seed: int


def plan(arguments: argparse.Namespace) -> Iterator[tuple[Figure, Run]]:
    """The runs of an experiment, the longest first; ablations use a small encoder."""
    if arguments.plan == "supervised":
        for encoder in arguments.only:
            for corpus in ("genia", "conll2003"):
                for seed in arguments.seeds:
                    yield _run(Figure("supervised", corpus, encoder, seed), settings(*SETTINGS[corpus, encoder]))
    else:
        for ablation in arguments.variants or ABLATIONS:
            options = tuple(f"options.{key}={json.dumps(value)}" for key, value in ABLATIONS[ablation][0].items())
            for seed in arguments.seeds:
                figure = Figure(ablation, "genia", arguments.small, seed)
                yield _run(figure, (*settings(*ABLATION_SETTINGS), *options))


def _run(figure: Figure, changes: tuple[str, ...]) -> tuple[Figure, Run]:
    name = f"{figure.setting}-{figure.corpus}-{figure.encoder}-{figure.seed}"
    changes = (f"seed={figure.seed}", *changes)
    return figure, Run(name, figure.encoder, f"binder/{figure.corpus}.yaml", changes)


def settings(epochs: float, batch: int, rate: float) -> tuple[str, ...]:
    """Larger batches and fewer epochs than in the paper, and a learning rate of its own for the heads."""
    return (
        f"training.epochs={epochs}",
        f"training.batch_size={batch}",
        f"training.learning_rate={rate}",
        "training.gradient_accumulation_steps=1",
        "training.head_learning_rate=3e-4",
        "training.eval_steps=200",
        "training.threshold_from=dev",
    )


def main() -> None:
    """Run an experiment and write its records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=["supervised", "ablations"])
    add_arguments(parser)
    parser.add_argument("--variants", nargs="*", choices=list(ABLATIONS), help="ablations to run; by default all")
    parser.add_argument("--small", default="gte-small", choices=list(HUB), help="encoder of the ablations")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    output = arguments.output or RESULTS / f"binder_{arguments.plan}.json"
    commit_for(output)
    figures = dict(plan(arguments))
    finished = run_all(list(figures.values()), arguments)
    found = {figure: finished[run] for figure, run in figures.items() if run in finished}
    device = next((metrics["device"] for metrics in found.values()), "")
    write_records(output, records(found, command(without=["--output", "--runs", "--cache"])), accelerator=device)


def records(found: dict[Figure, dict[str, Any]], command: str) -> Iterator[Record]:
    """The means over seeds."""
    groups: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = {}
    for figure, metrics in found.items():
        groups.setdefault(figure[:3], {})[figure.seed] = metrics["test"][figure.corpus]
    for (setting, corpus, encoder), scores in groups.items():
        paper = PAPER[corpus] if setting == "supervised" else ABLATIONS[setting][1]
        for measure in ("f1", "precision", "recall"):
            yield mean_record(
                f"binder/{setting}/{corpus}/{encoder}/{measure}",
                {seed: one[measure] for seed, one in scores.items()},
                command=command,
                data=f"{corpus}: trained on train, chosen on dev, tested on test",
                encoder=encoder,
                paper=paper if measure == "f1" else None,
            )


if __name__ == "__main__":
    main_with_errors(main)
