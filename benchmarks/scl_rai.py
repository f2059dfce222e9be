"""SCL-RAI's experiments on EC and NEWS: tables 1 to 4 of the paper.

    python benchmarks/scl_rai.py --data CORPORA [--encoders FOLDER]

Settings (`A` is the annotated part of the training data, `DS` the distantly labelled one):

    ce                      cross-entropy; all unlabelled spans are negatives
    sampling                cross-entropy with uniform negative sampling
    weighted-sampling       cross-entropy with weighted negative sampling
    scl                     cross-entropy and span-based contrastive learning
    sampling-scl            the same with uniform negative sampling

Each is evaluated with retrieval at inference, too (-rai at the end of its name; `full` is sampling-scl-rai). `-a` means
that only A was trained on, `-batch-N` another batch size (table 3). All models are chosen on dev, without retrieval.
Results are written to benchmarks/results/scl_rai.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from experiments import Run, Variant, add_arguments, mean_record, run_all
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

OPTIONS: dict[str, dict[str, Any]] = {
    "sampling-scl": {},
    "sampling": {"contrast_weight": 0.0},
    "ce": {"contrast_weight": 0.0, "negative_sampling": "none"},
    "scl": {"negative_sampling": "none"},
    "weighted-sampling": {"contrast_weight": 0.0, "negative_sampling": "weighted"},
}
PAPER = {
    "ce": {"ec": 55.99, "news": 74.57},  # the biaffine model, which is the nearest one in table 1
    "sampling": {"ec": 66.17, "news": 85.39},
    "weighted-sampling": {"ec": 67.03, "news": 86.15},
    "sampling-scl": {"ec": 70.65, "news": 93.71},
    "scl-rai": {"ec": 69.70, "news": 94.11},
    "full": {"ec": 71.24, "news": 94.79},
    "sampling-a": {"ec": 76.82, "news": 94.38},
    "full-a": {"ec": 76.44, "news": 95.33},
    "full-batch-8": {"ec": 70.78},
    "full-batch-16": {"ec": 71.24},
    "full-batch-32": {"ec": 70.87},
    "full-batch-64": {"ec": 70.79},
}
MEASURES = (("f1", "test"), ("precision", "test"), ("recall", "test"), ("dev_f1", "dev"))
BATCHES = (8, 16, 64)  # besides the usual one, 32
NO_RETRIEVAL = Variant("no-retrieval", json.dumps({"retrieval_weight": 0.0}))
# Fewer steps than in the paper (40 epochs of batches of 16 at 1e-5): epochs of A + DS, chosen on dev.
EPOCHS = {"ec": 12, "news": 5}
EVAL_STEPS = {"ec": 115, "news": 210}
BATCH_SIZE, RATE = 32, 4e-5


class Figure(NamedTuple):
    """What a run is a part of: runs that differ in the seed only make one figure."""

    setting: str
    corpus: str
    encoder: str
    seed: int


def plan(arguments: argparse.Namespace) -> Iterator[tuple[Figure, Run]]:
    """All runs, those first that the claims rest on."""
    for setting, options in OPTIONS.items():
        for figure in _figures(setting, arguments):
            yield _run(figure, options)
    for setting in ("sampling-scl", "sampling"):
        for figure in _figures(f"{setting}-a", arguments):
            epochs = 2 * EPOCHS[figure.corpus]  # A is smaller than A + DS
            changes = (f"data.corpora=[{{path: zh/{figure.corpus}}}]", f"training.epochs={epochs}")
            yield _run(figure, OPTIONS[setting], changes)
    for size in BATCHES:
        rate = RATE * (size / BATCH_SIZE) ** 0.5
        changes = (f"training.batch_size={size}", f"training.learning_rate={rate:.2e}")
        for figure in _figures(f"sampling-scl-batch-{size}", arguments):
            if figure.corpus == "ec" and figure.seed == arguments.seeds[0]:
                yield _run(figure, {}, changes)


def _figures(setting: str, arguments: argparse.Namespace) -> Iterator[Figure]:
    for corpus, encoder, seed in product(arguments.corpora, arguments.only, arguments.seeds):
        yield Figure(setting, corpus, encoder, seed)


def _run(figure: Figure, options: dict[str, Any], changes: tuple[str, ...] = ()) -> tuple[Figure, Run]:
    settings = (
        f"seed={figure.seed}",
        f"training.epochs={EPOCHS[figure.corpus]}",
        f"training.batch_size={BATCH_SIZE}",
        f"training.learning_rate={RATE}",
        "training.head_learning_rate=3e-4",
        f"training.eval_steps={EVAL_STEPS[figure.corpus]}",
        *(f"options.{key}={json.dumps(value)}" for key, value in options.items()),
        *changes,
    )
    name = "-".join(map(str, figure))
    return figure, Run(name, figure.encoder, f"scl_rai/{figure.corpus}.yaml", settings, variants=(NO_RETRIEVAL,))


def main() -> None:
    """Run the experiments and write their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, encoders=["bert-zh"])
    parser.add_argument("--corpora", nargs="*", default=["ec", "news"], choices=["ec", "news"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--output", type=Path, default=RESULTS / "scl_rai.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    figures = dict(plan(arguments))
    finished = run_all(list(figures.values()), arguments)
    found = {figure: finished[run] for figure, run in figures.items() if run in finished}
    device = next((metrics["device"] for metrics in found.values()), "")
    text = command(without=["--output", "--runs", "--cache"])
    write_records(arguments.output, records(found, text), accelerator=device)


def records(found: dict[Figure, dict[str, Any]], command: str) -> Iterator[Record]:
    """The means over seeds on test, and on dev for the choice of settings."""
    values: dict[tuple[str, str, str, str], dict[int, float]] = {}
    for figure, metrics in found.items():
        plain = metrics["variants"][NO_RETRIEVAL.name]
        for setting, scores in ((figure.setting, plain), (with_retrieval(figure.setting), metrics)):
            for measure, part in MEASURES:
                place = (setting, figure.corpus, figure.encoder, measure)
                score = scores[part][figure.corpus][measure.removeprefix("dev_")]
                values.setdefault(place, {})[figure.seed] = score
    for (setting, corpus, encoder, measure), by_seed in values.items():
        yield mean_record(
            f"scl-rai/{setting}/{corpus}/{encoder}/{measure}",
            by_seed,
            command=command,
            data=f"{corpus}: trained on {'A' if setting.endswith('-a') else 'A + DS'}, chosen on dev, tested on test",
            encoder=encoder,
            paper=PAPER.get(setting, {}).get(corpus) if measure == "f1" else None,
        )


def with_retrieval(setting: str) -> str:
    """The name of a setting with retrieval at inference."""
    for training, name in (("sampling-scl", "full"), ("weighted-sampling", "weighted-sampling-rai")):
        if setting.startswith(training):
            return setting.replace(training, name, 1)
    return f"{setting.removesuffix('-a')}-rai{'-a' if setting.endswith('-a') else ''}"


if __name__ == "__main__":
    main_with_errors(main)
