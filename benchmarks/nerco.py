"""NerCo's experiments on Weibo, Resume and MSRA: tables 3, 4 and 5 and figure 3 of the paper.

    python benchmarks/nerco.py --data CORPORA [--encoders FOLDER]

Settings:

    supervised       NerCo: contrast first, then tagging over the lattice
    flat             without contrast
    joint            contrast and tagging at the same time (multi-task)
    no-filtering     words outside mentions attract each other, too
    bert-crf         no lattice, no contrast
    bert-crf-contrast  no lattice

SETUPS (of all settings with a lattice) and CONTRASTS are chosen by the mean F1 on the dev part of Weibo with the first
two seeds: the set-up without contrast, then the contrast with that set-up. All models are chosen on dev; MSRA's dev
part is cut from train. Measures: f1, span_f1 (regardless of types), type_accuracy (of correct spans), f1 by type group
of Weibo (named and nominal mentions) and by sentence length. Needs DATA/zh/lexicons, and word vectors at
ENCODERS/zh-word-vectors. Results are written to benchmarks/results/nerco.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from experiments import Run, add_arguments, mean_record, run_all
from papers import published_figure
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

SETTINGS: dict[str, dict[str, Any]] = {
    "supervised": {},
    "flat": {"contrast": "none"},
    "joint": {"contrast": "joint"},
    "no-filtering": {"contrast_non_entities": True},
    "bert-crf": {"lattice": False, "contrast": "none", "output_dropout": 0.3},
    "bert-crf-contrast": {"lattice": False, "freeze_encoder": False, "output_dropout": 0.3},
}
SETUPS: dict[str, tuple[str, ...]] = {
    "light-dropout": (),  # the recipes
    "paper-dropout": ("options.embedding_dropout=0.5", "options.output_dropout=0.3"),
    "encoder-scores": ("options.encoder_scores=true", "options.embedding_dropout=0.5", "options.output_dropout=0.3"),
    "encoder-scores-light": ("options.encoder_scores=true",),
}
CONTRASTS: dict[str, tuple[str, ...]] = {
    "frozen": (),  # as in the paper
    "frozen-long": ("stages.contrast.epochs=30",),
    "tuned": ("options.freeze_encoder=false",),
    "tuned-warm": ("options.freeze_encoder=false", "options.temperature=0.2"),
    "tuned-short": ("options.freeze_encoder=false", "stages.contrast.epochs=4"),
}
CORPUS_TO_CHOOSE = "weibo"
LENGTHS_MEASURE = "f1_sentences_of_"


class Figure(NamedTuple):
    """What a run is a part of: runs that differ in the seed only make one figure."""

    setting: str
    corpus: str
    encoder: str
    seed: int


Found = dict[Figure, dict[str, Any]]


class Experiment:
    """The runs in phases: each phase uses what the phases before it chose."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.encoder = arguments, arguments.only[0]
        self.deadline = time.monotonic() + arguments.seconds
        self.found: Found = {}
        self.setup, self.contrast = arguments.setup, arguments.contrast

    def run(self) -> Found:
        """All runs; those that are finished count, whatever became of the others."""
        if self.setup is None:
            self.setup = self._choose("setup", list(SETUPS))
        if self.contrast is None:
            self.contrast = self._choose("contrast", list(CONTRASTS))
        print(f"chosen on dev of {CORPUS_TO_CHOOSE}: {self.setup}, {self.contrast}", flush=True)
        self._phase(
            Figure(setting, corpus, self.encoder, seed)
            for corpus in ("msra", "resume", "weibo")  # the longest first
            for seed, setting in product(self.arguments.seeds, self.arguments.settings)
            if corpus in self.arguments.corpora
        )
        return self.found

    def _choose(self, what: str, names: list[str]) -> str:
        seeds = self.arguments.seeds[:2]
        places = product(names, seeds)
        self._phase(Figure(f"{what}-{name}", CORPUS_TO_CHOOSE, self.encoder, seed) for name, seed in places)
        scores: dict[str, float] = {}
        for name in names:
            figures = [Figure(f"{what}-{name}", CORPUS_TO_CHOOSE, self.encoder, seed) for seed in seeds]
            values = [self.found[one]["dev"][CORPUS_TO_CHOOSE]["f1"] for one in figures if one in self.found]
            scores[name] = fmean(values) if len(values) == len(seeds) else -1.0
        return max(scores, key=lambda name: scores[name])

    def _phase(self, figures: Iterator[Figure]) -> None:
        runs = {figure: self.run_of(figure) for figure in figures}
        self.arguments.seconds = self.deadline - time.monotonic()
        finished = run_all(list(runs.values()), self.arguments)
        self.found |= {figure: finished[run] for figure, run in runs.items() if run in finished}

    def run_of(self, figure: Figure) -> Run:
        """The run of a figure."""
        kind, _, name = figure.setting.partition("-")
        setup, contrast, options = self.setup, self.contrast, SETTINGS.get(figure.setting, {})
        if figure.setting.startswith("setup-"):
            setup, contrast, options = name, None, SETTINGS["flat"]
        elif kind == "contrast":
            contrast = name
        lattice = options.get("lattice", True)
        vectors = f"{self.arguments.encoders or '.'}/zh-word-vectors"
        changes = (
            f"seed={figure.seed}",
            f"parts.word_vectors={vectors}",
            *(SETUPS[setup] if lattice and setup else ()),
            *(CONTRASTS[contrast] if contrast and options.get("contrast", "first") == "first" else ()),
            *(f"options.{key}={json.dumps(value)}" for key, value in options.items()),
        )
        return Run(
            "-".join(map(str, figure)), figure.encoder, f"nerco/{figure.corpus}.yaml", changes, with_reports=True
        )


def main() -> None:
    """Run the experiments and write their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, encoders=["bert-zh"])
    corpora = ["weibo", "resume", "msra"]
    parser.add_argument("--corpora", nargs="*", default=corpora, choices=corpora)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--setup", choices=list(SETUPS), help="instead of choosing one")
    parser.add_argument("--contrast", choices=list(CONTRASTS), help="instead of choosing one")
    parser.add_argument("--output", type=Path, default=RESULTS / "nerco.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    experiment = Experiment(arguments)
    found = experiment.run()
    device = next((metrics["device"] for metrics in found.values()), "")
    text = command(without=["--output", "--runs", "--cache"])
    rows = records(found, f"{experiment.setup}, {experiment.contrast}", text)
    write_records(arguments.output, rows, accelerator=device)


def records(found: Found, chosen: str, command: str) -> Iterator[Record]:
    """The means over seeds."""
    values: dict[tuple[str, str, str, str], dict[int, float]] = {}
    for figure, metrics in found.items():
        for measure, value in measures(figure.corpus, metrics).items():
            values.setdefault((figure.setting, figure.corpus, figure.encoder, measure), {})[figure.seed] = value
    for (setting, corpus, encoder, measure), by_seed in values.items():
        metric = f"nerco/{setting}/{corpus}/{encoder}/{measure}"
        yield mean_record(
            metric,
            by_seed,
            command=command,
            data=f"{corpus}: trained on train, chosen on dev, tested on test; {chosen} chosen on dev of weibo",
            encoder=encoder,
            paper=published_figure(metric),
        )


def measures(corpus: str, metrics: Mapping[str, Any]) -> dict[str, float]:
    """The measures of one run, in percent."""
    report = metrics["reports"][corpus]
    strict = report["strict"]["micro"]
    found = {name: 100 * strict[name] for name in ("f1", "precision", "recall")}
    found["dev_f1"] = metrics["dev"][corpus]["f1"]
    found["span_f1"] = 100 * report["spans"]["span"]["f1"]
    found["type_accuracy"] = 100 * report["spans"]["type_accuracy"]
    for length, scores in report["slices"]["sentence_length"].items():
        found[f"{LENGTHS_MEASURE}{length}"] = 100 * scores["f1"]
    if corpus == "weibo":
        by_type = report["strict"]["types"]
        for group, ending in (("named", ".NAM"), ("nominal", ".NOM")):
            counts = [one for name, one in by_type.items() if name.endswith(ending)]
            found[f"{group}_f1"] = 100 * joined_f1(counts)
    return found


def joined_f1(counts: list[dict[str, Any]]) -> float:
    """The F1 over several types."""
    correct, gold, predicted = (sum(int(one[name]) for one in counts) for name in ("correct", "gold", "predicted"))
    return 2 * correct / max(gold + predicted, 1)


if __name__ == "__main__":
    main_with_errors(main)
