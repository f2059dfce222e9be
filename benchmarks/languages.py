"""F1 on five European languages that the embedded model was not made for, beside English.

    python benchmarks/languages.py [--model FOLDER]

The sentences are our own (corpora/languages, thirty per language), with persons, organizations, locations and dates,
which are asked for in English. They are few: a score has a wide confidence interval, which is recorded as `low` and
`high` (95%, bootstrap over sentences). Results are written to benchmarks/results/languages.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import onoma
from onoma.data import load_corpus
from onoma.evaluation import Comparison, bootstrap
from onoma.evaluation.runs import run
from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records
from zero_shot import encoder_of

LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "nl": "Dutch"}


def main() -> None:
    """Measure, print and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--output", type=Path, default=RESULTS / "languages.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    write_records(arguments.output, list(records(onoma.load(arguments.model), arguments.name)))


def records(model: onoma.Extractor, name: str) -> Iterator[Record]:
    """The F1 of each language, with the ends of its interval."""
    encoder, text = encoder_of(model, "en"), command(without=["--output"])
    for code, language in LANGUAGES.items():
        corpus = load_corpus(ROOT / "corpora" / "languages" / f"{code}.jsonl")
        found = bootstrap(Comparison.between(corpus, run(model, corpus).predicted)).f1
        values = {"f1": found.value, "low": found.low, "high": found.high}
        print(f"{language}: {100 * values['f1']:.1f} ({100 * values['low']:.1f} to {100 * values['high']:.1f})")
        for measure, value in values.items():
            metric = f"{name}/languages/{code}/{encoder}/{measure}"
            yield Record(metric, round(100 * value, 2), text, f"{len(corpus)} sentences of our own", None, encoder)


if __name__ == "__main__":
    main_with_errors(main)
