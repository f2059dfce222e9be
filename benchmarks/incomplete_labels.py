"""Training with incomplete labels: distant labels of BC5CDR and CoNLL-2003, and CoNLL-2003 with dropped mentions.

    python benchmarks/incomplete_labels.py --data CORPORA [--encoders FOLDER]

Settings:

    plain        span classification with cross-entropy; all unlabelled spans are negatives
    binder       BINDER
    scl-rai      SCL-RAI, and `relabelled`: trained again on its own labels (replace-50 of the RELABELLINGS)
    sampled      BINDER with the best of the SAMPLINGS of negatives
    relabelled   BINDER trained on the labels that a `sampled` model has completed, by the best of the RELABELLINGS
                 (dropped mentions: at RATE_TO_CHOOSE only, with the first seed)

"Best" is chosen by the F1 on dev, with the first seed (of the dropped mentions: at RATE_TO_CHOOSE). All thresholds are
chosen on dev. Results are written to benchmarks/results/incomplete_labels.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from experiments import Run, add_arguments, mean_record, run_all
from papers import published_figure
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

DISTANT = {"bc5cdr": "en/distant_autoner_bc5cdr", "conll2003": "en/distant_conll2003"}
SYSTEMS = ("binder", "scl-rai", "plain")
MISSING_RATES = (0, 30, 50, 70)  # percent
RATE_TO_CHOOSE = 50
SAMPLINGS = {
    "uniform": ("options.negative_sampling=uniform",),
    "overlapping": ("options.negative_sampling=overlapping",),
    "overlapping-masked": ("options.negative_sampling=overlapping", "data.mask_repeated=true"),
}
RELABELLINGS = {
    "add-80": ("data.relabel.threshold=0.8", "data.relabel.keep=all"),
    "correct-60": ("data.relabel.threshold=0.6", "data.relabel.keep=unless_contradicted"),
    "replace-50": ("data.relabel.threshold=0.5", "data.relabel.keep=none"),
}
PLAIN = ("options.negative_sampling=none", "options.contrast_weight=0", "options.retrieval_weight=0")
MEASURES = (("f1", "test"), ("precision", "test"), ("recall", "test"), ("dev_f1", "dev"))
RESULTS_FILE = RESULTS / "incomplete_labels.json"


class Task(NamedTuple):
    """A corpus with incomplete labels."""

    setting: str  # distant, or missing-RATE
    corpus: str

    @property
    def binder_recipe(self) -> tuple[str, tuple[str, ...]]:
        """The recipe for BINDER and its changes."""
        if self.setting == "distant":
            return f"binder/distant_{self.corpus}.yaml", ()
        rate = int(self.setting.removeprefix("missing-")) / 100
        return f"binder/distant_{self.corpus}.yaml", (
            f"data.corpora=[{{path: en/{self.corpus}}}]",
            f"data.simulate_missing={rate}",
        )


class Figure(NamedTuple):
    """What a run is a part of: runs that differ in the seed only make one figure."""

    system: str
    variant: str  # empty for the system as it is
    task: Task
    seed: int


def binder_run(figure: Figure, encoder: str, first: Figure | None = None) -> Run:
    """A run of BINDER; with `first`, on the train data that this run's model has labelled."""
    recipe, changes = figure.task.binder_recipe
    sampling, _, relabelling = figure.variant.partition("+")
    options = RELABELLINGS[relabelling] if first else SAMPLINGS.get(sampling, ())
    return Run(
        _name(figure, encoder),
        encoder,
        recipe,
        (f"seed={figure.seed}", *changes, *options),
        after=_name(first, encoder) if first else None,
        after_key="data.relabel.model",
    )


def scl_rai_run(figure: Figure, encoder: str, first: Figure | None = None) -> Run:
    """A run of SCL-RAI, or of plain span classification; with `first`, as in `binder_run`."""
    options = PLAIN if figure.system == "plain" else ()
    relabelling = RELABELLINGS["replace-50"] if first else ()
    return Run(
        _name(figure, encoder),
        encoder,
        f"scl_rai/distant_{figure.task.corpus}.yaml",
        (f"seed={figure.seed}", *options, *relabelling),
        after=_name(first, encoder) if first else None,
        after_key="data.relabel.model",
    )


def run_of(figure: Figure, encoder: str) -> Run:
    """The run of a figure."""
    if figure.system == "binder":
        sampling, plus, _ = figure.variant.partition("+")
        return binder_run(figure, encoder, figure._replace(variant=sampling) if plus else None)
    return scl_rai_run(figure, encoder, figure._replace(variant="") if figure.variant else None)


def _name(figure: Figure, encoder: str) -> str:
    words = (figure.system, figure.variant, *figure.task, encoder, figure.seed)
    return "-".join(str(word).replace("+", "-") for word in words if word != "")


class Experiment:
    """The runs in phases: each phase chooses by what the phases before it found."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.encoder: str = arguments.only[0]
        self.seeds: list[int] = arguments.seeds
        self.deadline = time.monotonic() + arguments.seconds
        self.found: dict[Figure, dict[str, Any]] = {}
        self.chosen: dict[Task, dict[str, str]] = {}

    def run(self) -> dict[Figure, dict[str, Any]]:
        """All runs; those that are finished count, whatever became of the others."""
        distant = [Task("distant", corpus) for corpus in self.arguments.corpora]
        missing = [Task(f"missing-{rate}", "conll2003") for rate in self.arguments.rates]
        incomplete = [*distant, *(one for one in missing if one.setting != "missing-0")]
        to_choose = [one for one in incomplete if one.setting in ("distant", f"missing-{RATE_TO_CHOOSE}")]
        first = self.seeds[0]
        self._phase(
            [Figure("binder", name, task, first) for name in SAMPLINGS for task in to_choose]
            + [Figure("binder", "", task, seed) for task in (*distant, *missing) for seed in self._seeds(task)]
        )
        sampled = {task: self._best(task, list(SAMPLINGS)) for task in incomplete}
        self._phase(
            [Figure("binder", f"{sampled[task]}+{name}", task, first) for name in RELABELLINGS for task in to_choose]
            + [Figure("binder", name, task, seed) for task, name in sampled.items() for seed in self._seeds(task)]
            + [Figure(system, "", task, first) for system in ("scl-rai", "plain") for task in distant]
        )
        relabelled = {
            task: self._best(task, [f"{sampled[task]}+{name}" for name in RELABELLINGS]) for task in incomplete
        }
        self.chosen = {task: {"sampled": sampled[task], "relabelled": relabelled[task]} for task in incomplete}
        self._phase(
            [Figure("binder", relabelled[task], task, seed) for task in distant for seed in self.seeds]
            + [
                Figure(system, variant, task, seed)
                for system, variant in (("scl-rai", ""), ("plain", ""), ("scl-rai", "relabelled"))
                for task in distant
                for seed in self.seeds
            ]
        )
        return self.found

    def _seeds(self, task: Task) -> list[int]:
        seeds: list[int] = self.seeds if task.setting == "distant" else self.arguments.missing_seeds
        return seeds

    def _phase(self, figures: Iterable[Figure]) -> None:
        systems = self.arguments.systems
        runs = {figure: run_of(figure, self.encoder) for figure in figures if figure.system in systems}
        needed = {run.after for run in runs.values()} - {run.name for run in runs.values()} - {None}
        known = [run for run in (run_of(figure, self.encoder) for figure in self.found) if run.name in needed]
        self.arguments.seconds = self.deadline - time.monotonic()
        finished = run_all([*known, *runs.values()], self.arguments)
        self.found |= {figure: finished[run] for figure, run in runs.items() if run in finished}

    def _best(self, task: Task, names: Iterable[str]) -> str:
        """The variant with the best F1 on dev, with the first seed; the first one if none is finished."""
        if task.setting != "distant":
            task = Task(f"missing-{RATE_TO_CHOOSE}", task.corpus)
        scores = {}
        for name in names:
            metrics = self.found.get(Figure("binder", name, task, self.seeds[0]))
            scores[name] = -1.0 if metrics is None else next(iter(metrics["dev"].values()))["f1"]
        return max(scores, key=lambda name: scores[name])


def main() -> None:
    """Run the experiments and write their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, encoders=["mpnet-base"])
    parser.add_argument("--corpora", nargs="*", default=list(DISTANT), choices=list(DISTANT))
    parser.add_argument("--systems", nargs="*", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--rates", nargs="*", type=int, default=list(MISSING_RATES), help="percent of dropped mentions")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--missing-seeds", nargs="*", type=int, default=[0, 1, 2], help="of runs with dropped mentions")
    parser.add_argument("--output", type=Path, default=RESULTS_FILE)
    arguments = parser.parse_args()
    commit_for(arguments.output)
    experiment = Experiment(arguments)
    found = experiment.run()
    device = next((metrics["device"] for metrics in found.values()), "")
    text = command(without=["--output", "--runs", "--cache"])
    rows = records(found, experiment.chosen, experiment.encoder, text)
    write_records(arguments.output, rows, accelerator=device)


def records(
    found: Mapping[Figure, dict[str, Any]], chosen: Mapping[Task, Mapping[str, str]], encoder: str, command: str
) -> Iterator[Record]:
    """The means over seeds on test, and on dev for the choices."""
    values: dict[tuple[str, str, Task], dict[int, dict[str, Any]]] = {}
    for figure, metrics in found.items():
        values.setdefault((figure.system, figure.variant, figure.task), {})[figure.seed] = metrics
        for name, variant in chosen.get(figure.task, {}).items():
            if figure.system == "binder" and figure.variant == variant:
                values.setdefault(("binder", name, figure.task), {})[figure.seed] = metrics
    for (system, variant, task), by_seed in values.items():
        setting = f"{task.setting}-{variant}" if variant else task.setting
        note = chosen.get(task, {}).get(variant) if system == "binder" else None
        for measure, part in MEASURES:
            scores = {
                seed: next(iter(metrics[part].values()))[measure.removeprefix("dev_")]
                for seed, metrics in by_seed.items()
            }
            metric = f"{system}/{setting}/{task.corpus}/{encoder}/{measure}"
            yield mean_record(
                metric,
                scores,
                command=command,
                data=f"{task.corpus}: {_describe(task)}{f', chosen: {note}' if note else ''}; gold dev and test",
                encoder=encoder,
                paper=published_figure(metric),
            )


def _describe(task: Task) -> str:
    if task.setting == "distant":
        return "distant labels of train"
    return f"train without {task.setting.removeprefix('missing-')} % of its mentions"


if __name__ == "__main__":
    main_with_errors(main)
