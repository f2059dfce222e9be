"""SCL-RAI's experiments on EC and NEWS: tables 1 to 4 of the paper.

    python benchmarks/scl_rai.py --data CORPORA [--encoders FOLDER]

Settings (`A` is the annotated part of the training data, `DS` the distantly labelled one):

    ce                      cross-entropy; all unlabelled spans are negatives
    sampling                cross-entropy with uniform negative sampling
    weighted-sampling       cross-entropy with weighted negative sampling
    scl                     cross-entropy and span-based contrastive learning
    sampling-scl            the same with uniform negative sampling

Each is evaluated with retrieval at inference, too: `-rai` after the name for the paper's retrieval, `-rai-tuned`
for the best of RETRIEVALS (`full` and `full-tuned` are sampling-scl with them). `-a` means that only A was trained on,
`-batch-N` another batch size (table 3). The contrastive loss is the best of CONTRASTS. Both choices are made for each
corpus by the F1 on dev of the first seed; all models are chosen on dev, without retrieval.
Results are written to benchmarks/results/scl_rai.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from experiments import Run, Variant, add_arguments, mean_record, run_all
from papers import published_figure
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

OPTIONS: dict[str, dict[str, Any]] = {
    "sampling-scl": {},
    "sampling": {"contrast_weight": 0.0},
    "ce": {"contrast_weight": 0.0, "negative_sampling": "none"},
    "scl": {"negative_sampling": "none"},
    "weighted-sampling": {"contrast_weight": 0.0, "negative_sampling": "weighted"},
}
MEASURES = (("f1", "test"), ("precision", "test"), ("recall", "test"), ("dev_f1", "dev"))
BATCHES = (8, 16, 64)  # besides the usual one, 32
CLAIMS = ("sampling-scl", "sampling")
CONTRASTS: dict[str, dict[str, Any]] = {
    "10": {},  # the paper's
    "30": {"contrast_weight": 0.3},
    "50": {"contrast_weight": 0.5},
    "10-usual": {"positive_in_denominator": True},
    "30-usual": {"contrast_weight": 0.3, "positive_in_denominator": True},
    "50-usual": {"contrast_weight": 0.5, "positive_in_denominator": True},
}
"""Weights of the contrastive loss in percent, as printed in the paper or as usual (the positive in the denominator)."""
NO_RETRIEVAL = "no-retrieval"
RETRIEVALS: dict[str, dict[str, Any]] = {
    NO_RETRIEVAL: {"retrieval_weight": 0.0},
    "weak": {"retrieval_weight": 0.2},
    "sharp": {"retrieval_weight": 0.3, "retrieval_temperature": 0.2},
}
"""Besides the paper's, which is the default."""
# Fewer steps than in the paper (40 epochs of batches of 16 at 1e-5): epochs of A + DS, chosen on dev.
EPOCHS = {"ec": 12, "news": 7}
EVAL_STEPS = {"ec": 115, "news": 210}
BATCH_SIZE, RATE = 32, 4e-5


class Figure(NamedTuple):
    """What a run is a part of: runs that differ in the seed only make one figure."""

    setting: str
    corpus: str
    encoder: str
    seed: int


Found = dict[Figure, dict[str, Any]]


def contrast_figures(arguments: argparse.Namespace) -> Iterator[Figure]:
    """The runs by which the contrastive loss is chosen; the longer ones first."""
    for corpus, name, encoder in product(arguments.corpora[::-1], arguments.contrasts, arguments.only):
        yield Figure(f"contrast-{name}", corpus, encoder, arguments.seeds[0])


def figures(arguments: argparse.Namespace) -> Iterator[Figure]:
    """All other runs, those first that the claims rest on; then all settings with one seed."""
    every = list(product(arguments.corpora[::-1], arguments.only))
    for setting, seed, (corpus, encoder) in product(CLAIMS, arguments.seeds, every):
        yield Figure(setting, corpus, encoder, seed)
    for seed in arguments.seeds:
        for setting, (corpus, encoder) in product((*OPTIONS, *(f"{one}-a" for one in CLAIMS)), every):
            yield Figure(setting, corpus, encoder, seed)
        for size, encoder in product(BATCHES if "ec" in arguments.corpora else (), arguments.only):
            yield Figure(f"sampling-scl-batch-{size}", "ec", encoder, seed)


def run_of(figure: Figure, contrasts: Mapping[str, str]) -> Run:
    """The run of a figure; `contrasts` are the chosen contrastive losses by corpus."""
    training = {"epochs": EPOCHS[figure.corpus], "batch_size": BATCH_SIZE, "learning_rate": RATE}
    data: tuple[str, ...] = ()
    setting, contrast = figure.setting, contrasts.get(figure.corpus, "10")
    if _contrast_of(setting):
        setting, contrast = "sampling-scl", _contrast_of(setting)
    elif setting.endswith("-a"):
        setting = setting.removesuffix("-a")
        data = (f"data.corpora=[{{path: zh/{figure.corpus}}}]",)
        training["epochs"] *= 2  # A is smaller than A + DS
    elif "-batch-" in setting:
        setting, _, size = setting.partition("-batch-")
        training |= {"batch_size": int(size), "learning_rate": round(RATE * (int(size) / BATCH_SIZE) ** 0.5, 7)}
    return _run(figure, CONTRASTS[contrast] | OPTIONS[setting], training, data)


def _contrast_of(setting: str) -> str:
    """The contrastive loss that a setting tries out; empty for other settings."""
    return setting.removeprefix("contrast-") if setting.startswith("contrast-") else ""


def _run(figure: Figure, options: dict[str, Any], training: dict[str, Any], data: tuple[str, ...]) -> Run:
    settings = (
        f"seed={figure.seed}",
        *(f"training.{key}={value}" for key, value in training.items()),
        "training.head_learning_rate=3e-4",
        f"training.eval_steps={EVAL_STEPS[figure.corpus]}",
        *(f"options.{key}={json.dumps(value)}" for key, value in options.items()),
        *data,
    )
    variants = tuple(Variant(name, json.dumps(values)) for name, values in RETRIEVALS.items())
    return Run("-".join(map(str, figure)), figure.encoder, f"scl_rai/{figure.corpus}.yaml", settings, variants=variants)


def main() -> None:
    """Run the experiments and write their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, encoders=["bert-zh"])
    parser.add_argument("--corpora", nargs="*", default=["ec", "news"], choices=["ec", "news"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--settings", nargs="*", help="only these settings, such as ce or sampling-scl-batch-16")
    parser.add_argument("--contrasts", nargs="*", default=list(CONTRASTS), choices=list(CONTRASTS))
    parser.add_argument("--output", type=Path, default=RESULTS / "scl_rai.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    deadline = time.monotonic() + arguments.seconds
    first = {figure: run_of(figure, {}) for figure in contrast_figures(arguments)}
    finished = run_all(list(first.values()), arguments)
    found = {figure: finished[run] for figure, run in first.items() if run in finished}
    contrasts = choose_contrasts(found, arguments)
    print("contrastive losses:", contrasts, flush=True)
    for figure in list(found):
        if _contrast_of(figure.setting) == contrasts[figure.corpus]:
            found[figure._replace(setting="sampling-scl")] = found[figure]
    wanted = [one for one in figures(arguments) if arguments.settings is None or one.setting in arguments.settings]
    runs = {figure: run_of(figure, contrasts) for figure in wanted if figure not in found}
    arguments.seconds = deadline - time.monotonic()
    finished = run_all(list(runs.values()), arguments)
    found |= {figure: finished[run] for figure, run in runs.items() if run in finished}
    device = next((metrics["device"] for metrics in found.values()), "")
    text = command(without=["--output", "--runs", "--cache"])
    write_records(arguments.output, records(found, contrasts, text), accelerator=device)


def choose_contrasts(found: Found, arguments: argparse.Namespace) -> dict[str, str]:
    """The contrastive loss with the best F1 on dev, without retrieval, for each corpus."""
    chosen = {}
    for corpus in arguments.corpora:
        scores = {
            _contrast_of(figure.setting): _dev(metrics["variants"][NO_RETRIEVAL])
            for figure, metrics in found.items()
            if figure.corpus == corpus
        }
        chosen[corpus] = max(scores, key=lambda name: scores[name]) if scores else next(iter(CONTRASTS))
    return chosen


def choose_retrievals(found: Found) -> dict[tuple[str, str], str]:
    """The retrieval with the best F1 on dev, with the first seed, for each setting and corpus."""
    chosen: dict[tuple[str, str], str] = {}
    for figure, metrics in found.items():
        if (figure.setting, figure.corpus) not in chosen:
            scores = {name: _dev(metrics["variants"][name]) for name in RETRIEVALS if name != NO_RETRIEVAL}
            chosen[figure.setting, figure.corpus] = max(scores, key=lambda name: scores[name])
    return chosen


def _dev(scores: dict[str, Any]) -> float:
    value: float = next(iter(scores["dev"].values()))["f1"]
    return value


def records(found: Found, contrasts: Mapping[str, str], command: str) -> Iterator[Record]:
    """The means over seeds on test, and on dev for the choice of settings."""
    values: dict[tuple[str, str, str, str, str], dict[int, float]] = {}
    retrievals = choose_retrievals(found)
    for figure, metrics in found.items():
        setting, tuned = figure.setting, retrievals[figure.setting, figure.corpus]
        rows = [(setting, metrics["variants"][NO_RETRIEVAL], "no retrieval")]
        if not _contrast_of(setting):
            rows.append((with_retrieval(setting), metrics, "the paper's retrieval"))
            rows.append((f"{with_retrieval(setting)}-tuned", metrics["variants"][tuned], f"{tuned} retrieval"))
        for name, scores, note in rows:
            for measure, part in MEASURES:
                place = (name, figure.corpus, figure.encoder, measure, note)
                score = scores[part][figure.corpus][measure.removeprefix("dev_")]
                values.setdefault(place, {})[figure.seed] = score
    for (setting, corpus, encoder, measure, note), by_seed in values.items():
        trained = "A" if "-a" in setting.removesuffix("-tuned")[-2:] else "A + DS"
        loss = f"contrastive loss {_contrast_of(setting) or contrasts[corpus]}"
        metric = f"scl-rai/{setting}/{corpus}/{encoder}/{measure}"
        yield mean_record(
            metric,
            by_seed,
            command=command,
            data=f"{corpus}: trained on {trained}, chosen on dev, tested on test; {loss}, {note}",
            encoder=encoder,
            paper=published_figure(metric),
        )


def with_retrieval(setting: str) -> str:
    """The name of a setting with retrieval at inference: "full" for sampling-scl, else -rai after the setting."""
    if setting.startswith("sampling-scl"):
        return setting.replace("sampling-scl", "full", 1)
    return f"{setting.removesuffix('-a')}-rai{'-a' if setting.endswith('-a') else ''}"


if __name__ == "__main__":
    main_with_errors(main)
