"""Zero-shot F1: how well a model finds types that it was never trained on.

    python benchmarks/zero_shot.py --data CORPORA [--suite SUITE] [--model FOLDER] [--language en|zh|both] [--limit N]

Suites (suites.py):

    benchmarks    CrossNER and MIT; Resume, CLUENER, E-commerce and MSRA: for finished models only
    wide          CoNLL-2003, WikiNEuRal and WikiANN, with published scores, too: for finished models only
    development   corpora by which everything is chosen; the embedded model is never trained on them

Strict F1 by character offsets, the model's own threshold, types by their natural names alone. The published rows are
what the papers report for all test sentences; they are strict by offsets, too, except UniNER's and ChatGPT's.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

import onoma
from onoma import Extractor
from onoma.data import load_corpus
from onoma.data.corpora import find_splits
from onoma.evaluation.runs import run
from onoma.models.folder import ModelFolder, open_folder
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from suites import SPLITS, SUITES, Suite

AVERAGES = {
    "ChatGPT": 47.5,
    "GLiNER-S": 52.7,
    "UniNER-7B": 53.7,
    "gliner-bi-v2 edge": 54.0,
    "GLiNER-M": 55.4,
    "gliner-bi-v2 small": 57.2,
    "gliner-bi-v2 base": 60.3,
    "GLiNER-L": 60.9,
    "NuNER-Zero-span": 62.0,
}
PUBLISHED: dict[str, dict[str, float]] = {
    **{name: {"average-of-seven": average} for name, average in AVERAGES.items()},
    "SUNER": {"mit_movie_eng": 46.4, "mit_restaurant": 43.8},
    "GLiNER-L, other corpora": {"conll2003": 64.6, "wikiann_en": 58.9, "wikineural_en_devtest": 71.8},
    "NuNER-Zero-span, other corpora": {"conll2003": 63.6, "wikiann_en": 58.1, "wikineural_en_devtest": 72.3},
    "UniNER-7B, other corpora": {"conll2003": 72.2, "wikiann_en": 55.4, "wikineural_en_devtest": 69.2},
}
SCRIPTS = {"en": "Latin", "zh": "Han"}


def main() -> None:
    """Measure, print the tables and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/crossner_ai and the others")
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--suite", choices=list(SUITES), default="benchmarks", help="which corpora")
    parser.add_argument("--language", choices=[*SCRIPTS, "both"], default="both", help="language of the corpora")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument(
        "--limit", type=int, default=None, help="number of sentences of each corpus; nothing is recorded"
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "zero_shot.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    model = onoma.load(arguments.model)
    for language, suite in SUITES[arguments.suite].items():
        if arguments.language not in (language, "both"):
            continue
        scores = measure(model, language, suite, arguments.data, arguments.limit)
        scores = {suite.average: fmean(scores.values()), **scores}
        Console().print(table(arguments.name, scores))
        if arguments.limit is None:
            encoder = encoder_of(model, language)
            write_records(arguments.output, records(arguments.name, scores, encoder, suite.texts, arguments.suite))


def measure(model: Extractor, language: str, suite: Suite, data: Path, limit: int | None = None) -> dict[str, float]:
    """F1 on each corpus of a suite."""
    scores = {}
    for name in track(suite.sets, f"measuring {language}", console=Console(stderr=True)):
        present = find_splits(data / language / name)
        split = SPLITS.get(name) or next(one for one in suite.splits if one in present)
        corpus = load_corpus(data / language / name, split, natural_names=True, language=language)
        corpus = replace(corpus, documents=corpus.documents[: limit or suite.limit])
        scores[name] = 100 * run(model, corpus).report.strict.micro.f1
    return scores


def encoder_of(model: Extractor, language: str) -> str:
    """The encoder that reads texts of a language; in a folder with several models, that of the route."""
    folder = open_folder(model.folder)
    if isinstance(folder, ModelFolder):
        return folder.config.encoder.rpartition("/")[2]
    routes = zip(folder.models(), folder.config.routes, strict=True)
    script = SCRIPTS[language]
    chosen = next(one for one, route in routes if not route.scripts or script in route.scripts)
    return chosen.config.encoder.rpartition("/")[2]


MOST_COLUMNS = 10


def table(name: str, scores: dict[str, float]) -> Table:
    """Ours beside what others report on the same sets; of many sets, one per row."""
    if len(scores) > MOST_COLUMNS:
        shown = Table("corpus", name)
        for corpus, score in scores.items():
            shown.add_row(corpus, f"{score:.1f}")
        return shown
    shown = Table(Column("model", no_wrap=True), *(one.removeprefix("crossner_").partition("-")[0] for one in scores))
    for model, values in [(name, scores), *PUBLISHED.items()]:
        if values.keys() <= scores.keys():
            shown.add_row(model, *(f"{values[one]:.1f}" if one in values else "" for one in scores))
    return shown


def records(name: str, scores: dict[str, float], encoder: str, texts: str, suite: str) -> list[Record]:
    """One record for each of the scores."""
    setting = "development" if suite == "development" else "zero-shot"
    return [
        Record(
            f"{name}/{setting}/{corpus}/{encoder}/f1",
            round(score, 2),
            command(without=["--output"]),
            f"{texts}, types by natural name",
            None,
            encoder,
        )
        for corpus, score in scores.items()
    ]


if __name__ == "__main__":
    main_with_errors(main)
