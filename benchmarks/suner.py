"""SUNER's experiments: joint training (table 1), markers (table 5), zero- and few-shot (table 3), figure 3.

    python benchmarks/suner.py joint --data CORPORA [--encoders FOLDER]
    python benchmarks/suner.py markers --data CORPORA [--encoders FOLDER]
    python benchmarks/suner.py zero-shot --data CORPORA [--encoders FOLDER]
    python benchmarks/suner.py few-shot --data CORPORA [--encoders FOLDER]
    python benchmarks/suner.py curve --data CORPORA [--encoders FOLDER]

`joint` also trains a BINDER on each corpus alone, to compare with. Runs that are there already are only read, so
that a plan may be finished in parts. Results are written to benchmarks/results/suner.json.
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

from binder import HUB, USUAL
from records import RESULTS, ROOT, Record, write_records

JOINT = ("conll2003", "genia", "mit_movie_eng", "mit_restaurant", "litbank", "bc5cdr", "wnut17", "snips_slots")
ALONE = JOINT[2:]  # the first two are trained by benchmarks/binder.py
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
RATES = {"mpnet-base": 8e-5, "gte-small": 2e-4}  # of the encoders, in joint training
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


@dataclass(frozen=True)
class Run:
    """One training run: a recipe with changes, or a few-shot run that starts from another run."""

    system: str
    setting: str
    encoder: str
    recipe: str
    changes: tuple[str, ...] = ()
    after: str | None = None  # the name of the run whose model it needs
    few: tuple[str, int, int] | None = None  # corpus, sentences, sample
    only: str | None = None  # the corpus, where it is trained on one

    @property
    def name(self) -> str:
        """The name of its folder."""
        parts = [self.system, self.setting, self.encoder, self.only or ""]
        parts += [] if self.few is None else [self.few[0], str(self.few[1]), str(self.few[2])]
        return "-".join(filter(None, parts))


def plan(name: str, encoders: list[str]) -> Iterator[Run]:
    """The runs of an experiment; what others start from comes first."""
    for encoder in encoders:
        rate = f"training.rate={RATES[encoder]}"
        joint = Run("suner", "joint", encoder, "suner/joint.yaml", (rate,))
        zero = Run("suner", "zero-shot", encoder, "suner/zero_shot.yaml", (f"training.rate={0.75 * RATES[encoder]}",))
        if name == "joint":
            for system, changes in FORMS.items():
                yield Run(system, "joint", encoder, "suner/joint.yaml", (rate, *changes))
            for corpus in ALONE:
                yield alone(corpus, encoder)
        if name == "markers" and encoder == "gte-small":
            yield joint
            for setting, changes in MARKERS.items():
                changes = (rate, *changes)
                yield Run("suner", setting, encoder, "suner/joint.yaml", changes, after=joint.name)
        if name in ("zero-shot", "few-shot", "curve"):
            yield zero
        if name == "few-shot":
            for corpus in TARGETS:
                for sample in SAMPLES:
                    yield few(zero, corpus, 20, sample)
        if name == "curve" and encoder == "gte-small":
            for corpus in TARGETS[1:]:
                for size in SIZES:
                    yield few(zero, corpus, size, 0)


def alone(corpus: str, encoder: str) -> Run:
    """A BINDER on one corpus, with the settings that served on CoNLL-2003 and GENIA."""
    changes = (
        f"data.corpora=[{{path: en/{corpus}}}]",
        "data.windows=sentence",
        "data.drop_empty=false",
        f"training.rate={2e-4 if encoder == 'gte-small' else 6e-5}",
        "training.head_rate=3e-4",
        "training.batch_size=64",
        "training.accumulation=1",
        f"training.epochs={EPOCHS.get(corpus, 8)}",
        "training.evaluate_every=150",
        "training.threshold_on=dev",
    )
    return Run("binder", "alone", encoder, "binder/genia.yaml", changes, only=corpus)


def few(start: Run, corpus: str, sentences: int, sample: int) -> Run:
    """Go on from a zero-shot model with some sentences of a corpus."""
    changes = (f"training.rate={RATES[start.encoder] / 2}", "training.head_rate=2e-4")
    return Run(
        "suner", f"{sentences}-shot", start.encoder, start.recipe, changes, start.name, (corpus, sentences, sample)
    )


def job(run: Run, arguments: argparse.Namespace) -> dict[str, Any]:
    """What the process of a run has to know."""
    encoder = f"{arguments.encoders}/{run.encoder}" if arguments.encoders else HUB[run.encoder]
    changes = [f"encoder={encoder}", "training.checkpoints=false", *run.changes, *arguments.set]
    start = str(arguments.runs / run.after / "model") if run.after else None
    if run.few is None and start is not None:
        changes.append(f"detector={start}")
    return {
        "recipe": str(ROOT / "recipes" / run.recipe),
        "changes": changes,
        "data": arguments.data,
        "cache": str(arguments.cache) if arguments.cache else None,
        "output": str(arguments.runs / run.name),
        "few": run.few,
        "start": start,
    }


def train_one(job: dict[str, Any]) -> None:
    """The process of one run."""
    from onoma.training.protocols import few_shot
    from onoma.training.recipe import load_recipe
    from onoma.training.run import train

    recipe = load_recipe(job["recipe"], job["changes"])
    if job["few"] is not None:
        corpus, sentences, sample = job["few"]
        recipe = few_shot(recipe, corpus, job["start"], sentences=sentences, sample=sample)
    train(recipe, output=job["output"], data=job["data"], cache=job["cache"])


def run_all(runs: list[Run], arguments: argparse.Namespace) -> dict[Run, dict[str, Any]]:
    """Run processes side by side, each after the one that it starts from; the metrics of those that finished."""
    waiting, running, ended = list(runs), {}, set()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    while waiting or running:
        for run, process in list(running.items()):
            if process.poll() is not None:
                del running[run]
                ended.add(run.name)
                if process.returncode:
                    print(f"{run.name}: failed, see {arguments.runs / run.name}.log", flush=True)
        for run in list(waiting):
            if (arguments.runs / run.name / "metrics.json").is_file():
                waiting.remove(run)
                ended.add(run.name)
            elif len(running) < arguments.parallel and (run.after is None or run.after in ended):
                waiting.remove(run)
                with open(arguments.runs / f"{run.name}.log", "wb") as log:
                    command = [sys.executable, __file__, arguments.plan, "--data", arguments.data]
                    command += ["--one", json.dumps(job(run, arguments))]
                    running[run] = subprocess.Popen(command, stdout=log, stderr=log)
        time.sleep(0.5)
    return finished(runs, arguments.runs)


def finished(runs: list[Run], folder: Path) -> dict[Run, dict[str, Any]]:
    """The metrics of those runs that are there."""
    found = {}
    for run in runs:
        path = folder / run.name / "metrics.json"
        if path.is_file():
            found[run] = json.loads(path.read_text("utf-8"))
    return found


def records(found: dict[Run, dict[str, Any]], command: str) -> Iterator[Record]:
    """The F1 of every corpus, the mean over samples where there are several, and the mean over corpora."""
    values: dict[tuple[str, str, str, str], list[float]] = {}
    for run, metrics in found.items():
        for corpus, scores in metrics["test"].items():
            values.setdefault((run.system, run.setting, corpus, run.encoder), []).append(scores["f1"])
    for (system, setting, corpus, encoder), f1 in values.items():
        yield Record(
            f"{system}/{setting}/{corpus}/{encoder}/f1",
            round(fmean(f1), 2),
            command,
            DATA.get(setting, "some sentences of train after zero-shot training, measured on test"),
            PAPER.get((system, setting), {}).get(corpus),
            encoder,
            tuple(range(len(f1))),
            round(stdev(f1), 2) if len(f1) > 1 else None,
        )


DATA = {
    "joint": "eight corpora, one model; chosen on dev, measured on test",
    "alone": "one model a corpus; chosen on dev, measured on test",
    "zero-shot": "trained on other corpora, chosen on others still, measured on test",
    **dict.fromkeys(MARKERS, "eight corpora, one model, the same detector; chosen on dev, measured on test"),
}


def main() -> None:
    """Run a plan, or one run of it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=["joint", "markers", "zero-shot", "few-shot", "curve"])
    parser.add_argument("--data", required=True, help="folder of the corpora")
    parser.add_argument("--encoders", help="folder with mpnet-base and gte-small, instead of the hub")
    parser.add_argument("--only", nargs="*", default=USUAL, help="encoders to run")
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--set", nargs="*", default=[], help="changes to all recipes, such as training.max_steps=10")
    parser.add_argument("--runs", default=ROOT / "runs", type=Path)
    parser.add_argument("--cache", type=Path, help="folder to keep tokenised corpora in")
    parser.add_argument("--output", type=Path, default=RESULTS / "suner.json")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        train_one(json.loads(arguments.one))
        return
    found = run_all(list(plan(arguments.plan, arguments.only)), arguments)
    device = next((metrics["device"] for metrics in found.values()), "")
    command = f"python benchmarks/suner.py {arguments.plan} --data CORPORA"
    for run, metrics in found.items():
        scores = ", ".join(f"{corpus} {one['f1']:.2f}" for corpus, one in metrics["test"].items())
        print(f"{run.name}: {scores} ({metrics['seconds']} s)")
    write_records(arguments.output, records(found, command), accelerator=device)


if __name__ == "__main__":
    main()
