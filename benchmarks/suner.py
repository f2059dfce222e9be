"""SUNER's experiments: joint training (table 1), markers (table 5), zero- and few-shot (table 3), figure 3.

    python benchmarks/suner.py joint --data CORPORA [--encoders FOLDER]
    python benchmarks/suner.py markers --data CORPORA [--encoders FOLDER]
    python benchmarks/suner.py zero-shot --data CORPORA [--encoders FOLDER]
    python benchmarks/suner.py few-shot --data CORPORA [--encoders FOLDER]
    python benchmarks/suner.py curve --data CORPORA [--encoders FOLDER]

`joint` also trains one BINDER per corpus for comparison. Results are written to benchmarks/results/suner.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from experiments import FewShot, Run, add_arguments, mean_record, run_all
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

JOINT = ("conll2003", "genia", "mit_movie_eng", "mit_restaurant", "litbank", "bc5cdr", "wnut17", "snips_slots")
SINGLE = JOINT[2:]  # the first two are trained by benchmarks/binder.py
EPOCHS = {"snips_slots": 4, "mit_movie_eng": 5}  # of a BINDER on one corpus; others: 8
TARGETS = ("conll2003", "mit_restaurant", "mit_movie_eng")
SAMPLES = (0, 1, 2)
SIZES = (50, 100, 200, 500)
PAPER = {
    ("suner", "joint"): {"conll2003": 93.34, "genia": 78.75, "mit_restaurant": 82.41, "mit_movie_eng": 88.39},
    ("suner-one-stage", "joint"): {"conll2003": 92.83, "genia": 77.32, "mit_restaurant": 81.75, "mit_movie_eng": 88.95},
    ("suner", "zero-shot"): {"conll2003": 70.43, "mit_restaurant": 43.75, "mit_movie_eng": 46.36},
    ("suner", "20-shot"): {"conll2003": 79.74, "mit_restaurant": 62.67, "mit_movie_eng": 60.89},
    ("suner", "no-mask"): {"conll2003": 93.01, "genia": 78.14},
    ("suner", "no-position-tie"): {"conll2003": 93.13, "genia": 78.42},
    ("suner", "no-markers"): {"conll2003": 92.89, "genia": 77.93},
}
RATES = {"mpnet-base": 8e-5, "gte-small": 2e-4}  # learning rates of the encoders, in joint training
FORMS = {
    "suner": (),
    "suner-one-stage": ('options.form="one-stage"', "options.dataset_prefix=false", "training.batch_size=48"),
    "suner-fused": ('options.form="fused"',),
}
MARKERS: dict[str, tuple[str, ...]] = {
    "no-mask": ("options.attention_mask=false",),
    "no-position-tie": ("options.tied_positions=false",),
    "no-markers": ("options.markers=false",),
    "markers-alone": ('options.spans="markers"',),
}
DATA = {
    "joint": "eight corpora, one model; chosen on dev, tested on test",
    "alone": "one model per corpus; chosen on dev, tested on test",
    "zero-shot": "trained on other corpora, chosen on yet others, tested on test",
    **dict.fromkeys(MARKERS, "eight corpora, one model, the same detector; chosen on dev, tested on test"),
}


class Figure(NamedTuple):
    """What the scores of a run are called in records."""

    system: str
    setting: str
    encoder: str


def plan(name: str, encoders: list[str]) -> Iterator[tuple[Figure, Run]]:
    """The runs of an experiment; those that others need come first."""
    for encoder in encoders:
        rate = f"training.learning_rate={RATES[encoder]}"
        if name == "joint":
            for system, changes in FORMS.items():
                yield _run(Figure(system, "joint", encoder), "suner/joint.yaml", (rate, *changes))
            for corpus in SINGLE:
                yield single(corpus, encoder)
        if name == "markers":
            joint = _run(Figure("suner", "joint", encoder), "suner/joint.yaml", (rate,))
            yield joint
            for setting, changes in MARKERS.items():
                figure = Figure("suner", setting, encoder)
                yield _run(figure, "suner/joint.yaml", (rate, *changes), after=joint[1].name)
        if name in ("zero-shot", "few-shot", "curve"):
            slower = f"training.learning_rate={0.75 * RATES[encoder]}"
            start = _run(Figure("suner", "zero-shot", encoder), "suner/zero_shot.yaml", (slower,))
            yield start
            yield from few_shot_runs(name, start[1], encoder)


def few_shot_runs(name: str, start: Run, encoder: str) -> Iterator[tuple[Figure, Run]]:
    """The runs that start from the zero-shot model."""
    if name == "few-shot":
        for corpus in TARGETS:
            for sample in SAMPLES:
                yield few_shot(start, encoder, FewShot(corpus, 20, sample))
    if name == "curve":
        for corpus in TARGETS[1:]:
            for size in SIZES:
                yield few_shot(start, encoder, FewShot(corpus, size, 0))


def few_shot(start: Run, encoder: str, few: FewShot) -> tuple[Figure, Run]:
    """Fine-tuning of the zero-shot model on some sentences of a corpus."""
    changes = (f"training.learning_rate={RATES[encoder] / 2}", "training.head_learning_rate=2e-4")
    figure = Figure("suner", f"{few.sentences}-shot", encoder)
    name = f"{'-'.join(figure)}-{few.corpus}-{few.sentences}-{few.sample}"
    return figure, Run(name, encoder, start.recipe, changes, start.name, few)


def single(corpus: str, encoder: str) -> tuple[Figure, Run]:
    """A BINDER on one corpus, with the settings that were chosen on CoNLL-2003 and GENIA."""
    changes = (
        f"data.corpora=[{{path: en/{corpus}}}]",
        "data.windows=sentence",
        "data.drop_empty_windows=false",
        f"training.learning_rate={2e-4 if encoder == 'gte-small' else 6e-5}",
        "training.head_learning_rate=3e-4",
        "training.batch_size=64",
        "training.gradient_accumulation_steps=1",
        f"training.epochs={EPOCHS.get(corpus, 8)}",
        "training.eval_steps=150",
        "training.threshold_from=dev",
    )
    figure = Figure("binder", "alone", encoder)
    return figure, Run(f"{'-'.join(figure)}-{corpus}", encoder, "binder/genia.yaml", changes)


def _run(figure: Figure, recipe: str, changes: tuple[str, ...], after: str | None = None) -> tuple[Figure, Run]:
    return figure, Run("-".join(figure), figure.encoder, recipe, changes, after)


def records(found: list[tuple[Figure, dict[str, Any]]], command: str) -> Iterator[Record]:
    """The F1 of each corpus; the mean over samples if there are several."""
    values: dict[tuple[Figure, str], list[float]] = {}
    for figure, metrics in found:
        for corpus, scores in metrics["test"].items():
            values.setdefault((figure, corpus), []).append(scores["f1"])
    for (figure, corpus), f1 in values.items():
        yield mean_record(
            f"{figure.system}/{figure.setting}/{corpus}/{figure.encoder}/f1",
            dict(enumerate(f1)),
            command=command,
            data=DATA.get(figure.setting, "some sentences of train after zero-shot training, tested on test"),
            encoder=figure.encoder,
            paper=PAPER.get(figure[:2], {}).get(corpus),
        )


def main() -> None:
    """Run an experiment and write its records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=["joint", "markers", "zero-shot", "few-shot", "curve"])
    add_arguments(parser)
    parser.add_argument("--output", type=Path, default=RESULTS / "suner.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    planned = list(plan(arguments.plan, arguments.only))
    finished = run_all([run for _, run in planned], arguments)
    found = [(figure, finished[run]) for figure, run in planned if run in finished]
    device = next((metrics["device"] for _, metrics in found), "")
    text = command(without=["--output", "--runs", "--cache"])
    write_records(arguments.output, records(found, text), accelerator=device)


if __name__ == "__main__":
    main_with_errors(main)
