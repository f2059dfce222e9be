"""How often a score is right: the share of gold mentions among reported ones, by score.

    python benchmarks/reliability.py --data CORPORA [--model FOLDER] [--language en|zh|both]

Mentions are those that are reported at a low threshold on the development suite (suites.py), up to 200 sentences of
each corpus, types by their natural names; all corpora together. Results are written to
benchmarks/results/reliability.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

import onoma
from onoma import Corpus, Extractor
from onoma.evaluation.scored import score_spans
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from suites import SUITES
from zero_shot import SCRIPTS, encoder_of, read_corpora

LIMIT = 200
"""Sentences of each corpus."""
EDGES = tuple(range(10, 101, 10))
"""Of the bins, in percent."""
Scored = tuple[NDArray[np.float32], NDArray[np.bool_]]


def main() -> None:
    """Measure, print and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpora")
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--language", choices=[*SCRIPTS, "both"], default="both", help="language of the corpora")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--output", type=Path, default=RESULTS / "reliability.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    model = onoma.load(arguments.model)
    for language, suite in SUITES["development"].items():
        if arguments.language in (language, "both"):
            corpora = [one for _, one in read_corpora(suite, arguments.data / language, language, LIMIT)]
            shown = track(corpora, f"reading {language}", console=Console(stderr=True))
            score, right = (np.concatenate(part) for part in zip(*(scored(model, one) for one in shown), strict=True))
            made = list(records(arguments.name, language, encoder_of(model, language), score, right))
            for record in made:
                print(f"{record.metric}: {record.value:.1f} ({record.data})")
            write_records(arguments.output, made)


def scored(model: Extractor, corpus: Corpus) -> Scored:
    """The scores of reported mentions, and whether each is a gold mention."""
    spans, _ = score_spans(model, corpus)
    rows = spans.reported(EDGES[0] / 100)
    return spans.score[rows], spans.correct[rows]


def records(
    name: str, language: str, encoder: str, score: NDArray[np.float32], right: NDArray[np.bool_]
) -> Iterator[Record]:
    """The share of each bin of the score, in percent."""
    bins = np.digitize(100 * score, EDGES[1:-1])
    for place, (low, high) in enumerate(pairwise(EDGES)):
        chosen = right[bins == place]
        if len(chosen):
            metric = f"{name}/reliability/development-{language}/{encoder}/right_percent_{low}_{high}"
            data = f"development suite ({language}), up to {LIMIT} sentences of each corpus, mentions by score"
            yield Record(
                metric, round(100 * float(chosen.mean()), 1), command(without=["--output"]), data, None, encoder
            )


if __name__ == "__main__":
    main_with_errors(main)
