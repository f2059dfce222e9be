"""Zero-shot F1: how well a model finds types that it was never trained on.

    python benchmarks/zero_shot.py --data CORPORA [--model FOLDER] [--language en|zh|both] [--limit N]
    python benchmarks/zero_shot.py --data CORPORA --others

English is tested on CrossNER and MIT, Chinese on Resume, CLUENER, E-commerce and MSRA. Strict F1 by character offsets,
the model's own threshold, types by their natural names alone. The published rows are what the papers report for all
test sentences; they are strict by offsets, too, except UniNER's and ChatGPT's. `--others` tests on other corpora, on
the first 400 sentences of each; they have no average, because they are very different.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

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

SETS = (
    "crossner_ai",
    "crossner_literature",
    "crossner_music",
    "crossner_politics",
    "crossner_science",
    "mit_movie_eng",
    "mit_restaurant",
)
SPLITS = {"cluener": "dev"}  # nobody has published the labels of its test sentences
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
}
OTHERS = {
    "en": (
        *("conll2003", "wikineural_en_devtest", "wikiann_en", "biored", "cadec", "hipe_hipe2020_en", "hipe_ajmc_en"),
        *("gum", "mit_movie_trivia", "wnut16", "ebmnlp_devtest", "uner_en_ewt_devtest"),
    ),
    "zh": (
        *("people_daily_1998", "people_daily_2014_punified", "address_parsing", "cmeee", "taobao", "tcm"),
        *("video_music_book", "c_clue"),
    ),
}
OTHERS_LIMIT = 400


class Language(NamedTuple):
    """The test sets of a language."""

    sets: tuple[str, ...]
    average: str  # name of the mean over them
    script: str  # of the texts
    texts: str  # description in the records


LANGUAGES = {
    "en": Language(SETS, "average-of-seven", "Latin", "all test sentences"),
    "zh": Language(
        ("resume", "cluener", "ecommerce", "msra"),
        "average-of-four",
        "Han",
        "all test sentences, of CLUENER all of dev",
    ),
}


def main() -> None:
    """Measure, print the tables and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/crossner_ai and the others")
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--language", choices=[*LANGUAGES, "both"], default="both", help="language of the test sets")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--others", action="store_true", help="test on other corpora than the benchmarks")
    parser.add_argument("--limit", type=int, default=None, help="number of sentences of each set")
    parser.add_argument("--output", type=Path, default=RESULTS / "zero_shot.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    model = onoma.load(arguments.model)
    for language in LANGUAGES if arguments.language == "both" else [arguments.language]:
        encoder = encoder_of(model, language)
        if arguments.others:
            scores = measure(model, language, OTHERS[language], arguments.data, OTHERS_LIMIT)
            print("\n".join(f"{name}: {score:.1f}" for name, score in scores.items()))
            texts = f"first {OTHERS_LIMIT} sentences of test, else of dev, else of train"
            write_records(arguments.output, records(arguments.name, scores, encoder, texts, "other-corpora"))
            continue
        scores = measure(model, language, LANGUAGES[language].sets, arguments.data, arguments.limit)
        scores = {LANGUAGES[language].average: sum(scores.values()) / len(scores), **scores}
        Console().print(table(arguments.name, scores))
        if arguments.limit is None:
            write_records(arguments.output, records(arguments.name, scores, encoder, LANGUAGES[language].texts))


def measure(model: Extractor, language: str, sets: Sequence[str], data: Path, limit: int | None) -> dict[str, float]:
    """F1 on each set of a language."""
    scores = {}
    for name in track(sets, f"measuring {language}", console=Console(stderr=True)):
        present = find_splits(data / language / name)
        split = SPLITS.get(name) or next(one for one in ("test", "dev", "train") if one in present)
        corpus = load_corpus(data / language / name, split, natural_names=True, language=language)
        corpus = replace(corpus, documents=corpus.documents[:limit])
        scores[name] = 100 * run(model, corpus).report.strict.micro.f1
    return scores


def encoder_of(model: Extractor, language: str) -> str:
    """The encoder that reads texts of a language; in a folder with several models, that of the route."""
    folder = open_folder(model.folder)
    if isinstance(folder, ModelFolder):
        return folder.config.encoder.rpartition("/")[2]
    routes = zip(folder.models(), folder.config.routes, strict=True)
    script = LANGUAGES[language].script
    chosen = next(one for one, route in routes if not route.scripts or script in route.scripts)
    return chosen.config.encoder.rpartition("/")[2]


def table(name: str, scores: dict[str, float]) -> Table:
    """Ours beside what others report on the same sets."""
    shown = Table(Column("model", no_wrap=True), *(one.removeprefix("crossner_").partition("-")[0] for one in scores))
    for model, values in [(name, scores), *PUBLISHED.items()]:
        if values.keys() <= scores.keys():
            shown.add_row(model, *(f"{values[one]:.1f}" if one in values else "" for one in scores))
    return shown


def records(name: str, scores: dict[str, float], encoder: str, texts: str, setting: str = "zero-shot") -> list[Record]:
    """One record for each of the scores."""
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
