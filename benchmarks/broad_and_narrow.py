"""F1 where a broad label is asked for together with narrow ones, such as "person" with "nurse" and "patient".

    python benchmarks/broad_and_narrow.py [--model FOLDER] [--language en|zh|both]

The sentences are our own (corpora/broad_and_narrow): twelve files per language with twenty sentences each, whose labels
are asked for by themselves. They are development data: the weight of breadths is fitted on them, too. Results are
written to benchmarks/results/broad_and_narrow.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean

import onoma
from onoma.data import load_corpus
from onoma.evaluation.runs import predict
from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records
from zero_shot import SCRIPTS, encoder_of, f1

FOLDER = ROOT / "corpora" / "broad_and_narrow"


def main() -> None:
    """Measure, print and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--language", choices=[*SCRIPTS, "both"], default="both")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--output", type=Path, default=RESULTS / "broad_and_narrow.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    model = onoma.load(arguments.model)
    languages = list(SCRIPTS) if arguments.language == "both" else [arguments.language]
    write_records(arguments.output, [one for each in languages for one in records(model, arguments.name, each)])


def records(model: onoma.Extractor, name: str, language: str) -> Iterator[Record]:
    """The F1 of each file, and their mean."""
    encoder, text = encoder_of(model, language), command(without=["--output"])
    paths = sorted((FOLDER / language).glob("*.jsonl"))
    scores = {one.stem: f1(partial(predict, model), load_corpus(one)) for one in paths}
    for corpus, value in {f"average-{language}": fmean(scores.values()), **scores}.items():
        print(f"{corpus}: {value:.1f}")
        metric = f"{name}/broad-and-narrow/{corpus}/{encoder}/f1"
        yield Record(metric, round(value, 2), text, "20 sentences of our own per file", None, encoder)


if __name__ == "__main__":
    main_with_errors(main)
