"""Zero-shot F1: how well a model finds types that it was never trained on.

    python benchmarks/zero_shot.py --data CORPORA [--suite SUITE] [--language en|zh|both] [--limit N]
    python benchmarks/zero_shot.py --data CORPORA --model runs/a --model runs/b --seeds 0 1 --name base
    python benchmarks/zero_shot.py --data CORPORA --language zh --uie ENCODERS/uie-nano-zh

Suites (suites.py):

    benchmarks    CrossNER and MIT; Resume, CLUENER, E-commerce and MSRA: for finished models only
    wide          CoNLL-2003, WikiNEuRal and WikiANN, with published scores, too: for finished models only
    development   corpora by which everything is chosen; the embedded model is never trained on them

Strict F1 by character offsets, the model's own threshold, types by their natural names alone. Of several models, which
differ in the seed only, the mean and the standard deviation are recorded. `--uie` lets UIE (uie.py) read the Chinese
corpora, too: the same documents, labels and evaluation. The published rows are what the papers report for all test
sentences; they are strict by offsets, too, except UniNER's and ChatGPT's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from experiments import mean_record
from onoma import Corpus, Entity, Extractor
from onoma.data import load_corpus
from onoma.data.corpora import find_splits
from onoma.errors import DataError, OnomaError
from onoma.evaluation import evaluate
from onoma.evaluation.runs import load_models, predict
from onoma.models.folder import ModelFolder, open_folder
from onoma.models.hub import EMBEDDED_NAME
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from suites import SPLITS, SUITES, Suite
from uie import FILES, UIE

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
UIE_LANGUAGE = "zh"
UIE_NOTE = "mentions of several types may overlap; what it was trained on is not known"

Predict = Callable[[Corpus], Iterable[Sequence[Entity]]]
"""What a model finds in each document of a corpus."""
Scores = dict[str, list[float]]
"""F1 by corpus, and the average; one value per model."""


class System(NamedTuple):
    """A row of the table: one model, or several that differ in the seed only."""

    name: str
    encoder: str
    models: Sequence[Predict]
    seeds: Sequence[int] = ()
    note: str = ""


def main() -> None:
    """Measure, print the tables and write the records."""
    arguments = parse_arguments()
    commit_for(arguments.output)
    suites = choose_suites(arguments)
    models = open_models(arguments.model or [EMBEDDED_NAME], arguments.seeds)
    systems = {language: [of_seeds(arguments.name, models, arguments.seeds, language)] for language in suites}
    if arguments.uie:
        systems[UIE_LANGUAGE].append(open_uie(arguments.uie))
    corpora = {
        language: list(read_corpora(suite, arguments.data / language, language, arguments.limit))
        for language, suite in suites.items()
    }
    for language, suite in suites.items():
        measured = [(one, measure(one, corpora[language], suite.average)) for one in systems[language]]
        Console().print(table({system.name: scores for system, scores in measured}))
        if arguments.limit is None:
            found = [one for system, scores in measured for one in records(system, scores, suite, arguments.suite)]
            write_records(arguments.output, found)


def parse_arguments() -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/crossner_ai and the others")
    parser.add_argument(
        "--model", action="append", help="model folder, once for each seed; by default the embedded one"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[], help="the seeds of the models, in their order")
    parser.add_argument("--uie", type=Path, help=f"folder with {' and '.join(FILES)} of UIE, for the Chinese corpora")
    parser.add_argument("--suite", choices=list(SUITES), default="benchmarks", help="which corpora")
    parser.add_argument("--language", choices=[*SCRIPTS, "both"], default="both", help="language of the corpora")
    parser.add_argument("--name", default="embedded", help="the name of the models in the records")
    parser.add_argument("--limit", type=int, help="number of sentences of each corpus; nothing is recorded")
    parser.add_argument("--output", type=Path, default=RESULTS / "zero_shot.json")
    return parser.parse_args()


# --- what is measured; all errors come from here, before anything long starts


def choose_suites(arguments: argparse.Namespace) -> dict[str, Suite]:
    """The parts of a suite by language."""
    if arguments.limit is not None and arguments.limit < 1:
        raise OnomaError(f"--limit is {arguments.limit}. Fix: give a positive number, or leave it out for a full suite")
    suites = SUITES[arguments.suite]
    chosen = {one: suite for one, suite in suites.items() if arguments.language in (one, "both")}
    if not chosen:
        known = ", ".join(suites)
        raise OnomaError(f"the suite {arguments.suite} has no corpora in {arguments.language}. Fix: --language {known}")
    if arguments.uie and UIE_LANGUAGE not in chosen:
        raise OnomaError("UIE reads Chinese, and no Chinese corpora were chosen. Fix: leave out --uie")
    return chosen


def open_models(names: Sequence[str], seeds: Sequence[int]) -> list[Extractor]:
    """All models, loaded. Without seeds, there may be only one."""
    if len(names) != (len(seeds) or 1) or len(set(seeds)) < len(seeds):
        given = ", ".join(map(str, seeds)) or "none"
        fix = "give each model its own seed, such as --model A --model B --seeds 0 1"
        raise OnomaError(f"number of models: {len(names)}, seeds: {given}. Fix: {fix}")
    models = list(load_models(names).values())
    for model in models:
        model.load_all()
    return models


def of_seeds(name: str, models: Sequence[Extractor], seeds: Sequence[int], language: str) -> System:
    """The system that consists of the models of several seeds."""
    encoders = sorted({encoder_of(model, language) for model in models})
    if len(encoders) > 1:
        raise OnomaError(f"the models have several encoders ({', '.join(encoders)}). Fix: measure each by itself")
    return System(name, encoders[0], [partial(predict, model) for model in models], seeds)


def open_uie(folder: Path) -> System:
    """UIE, under the name of its folder without the language."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        fix = "give the folder of a UIE model, such as uie-nano-zh"
        raise DataError(f"there is no {' and no '.join(missing)} of UIE", path=folder, fix=fix)
    model, name = UIE(folder), folder.absolute().name

    def read(corpus: Corpus) -> Iterator[list[Entity]]:
        texts = [document.text for document in corpus]
        for text, spans in zip(texts, model.extract(texts, corpus.labels), strict=True):
            yield [Entity(one.start, one.end, text[one.start : one.end], one.label, one.score) for one in spans]

    return System(name.removesuffix(f"-{UIE_LANGUAGE}"), name, [read], note=UIE_NOTE)


def read_corpora(suite: Suite, folder: Path, language: str, limit: int | None = None) -> Iterator[tuple[str, Corpus]]:
    """The corpora of a suite by name, with the sentences that are tested."""
    splits = {name: choose_split(folder / name, suite) for name in suite.sets}  # of all, before any is read
    for name, split in splits.items():
        corpus = load_corpus(folder / name, split, natural_names=True, language=language)
        yield name, replace(corpus, documents=corpus.documents[: limit or suite.limit])


def choose_split(folder: Path, suite: Suite) -> str:
    """The first split of a suite that a corpus has."""
    present, wanted = find_splits(folder), SPLITS.get(folder.name)
    splits = suite.splits if wanted is None else (wanted,)
    found = next((one for one in splits if one in present), None)
    if found is None:
        raise DataError(
            f"there is no split {' or '.join(splits)}", path=folder, fix="give the corpus as it was published"
        )
    return found


def encoder_of(model: Extractor, language: str) -> str:
    """The encoder that reads texts of a language; in a folder with several models, that of the route."""
    folder = open_folder(model.folder)
    if isinstance(folder, ModelFolder):
        return folder.config.encoder.rpartition("/")[2]
    routes = zip(folder.models(), folder.config.routes, strict=True)
    script = SCRIPTS[language]
    chosen = next(one for one, route in routes if not route.scripts or script in route.scripts)
    return chosen.config.encoder.rpartition("/")[2]


# --- scores


def measure(system: System, corpora: Sequence[tuple[str, Corpus]], average: str) -> Scores:
    """F1 on each corpus for all models of a system, and before them the average under its name."""
    scores = {
        name: [f1(model, corpus) for model in system.models]
        for name, corpus in track(corpora, f"measuring {system.name}", console=Console(stderr=True))
    }
    return {average: [fmean(one) for one in zip(*scores.values(), strict=True)], **scores}


def f1(model: Predict, corpus: Corpus) -> float:
    """Strict F1 in percent."""
    return 100 * evaluate(corpus, list(model(corpus))).strict.micro.f1


MOST_COLUMNS = 8


def table(measured: Mapping[str, Scores]) -> Table:
    """Systems beside what others report on the same sets; of many sets, one per row."""
    names = list(next(iter(measured.values())))
    if len(names) > MOST_COLUMNS:
        shown = Table("corpus", *measured)
        for name in names:
            shown.add_row(name, *(cell(scores[name]) for scores in measured.values()))
        return shown
    shown = Table(Column("model", no_wrap=True), *(one.removeprefix("crossner_").partition("-")[0] for one in names))
    published = {
        model: {name: [value] for name, value in values.items()}
        for model, values in PUBLISHED.items()
        if values.keys() <= set(names)
    }
    for model, scores in (*measured.items(), *published.items()):
        shown.add_row(model, *(cell(scores.get(name, ())) for name in names))
    return shown


def cell(values: Sequence[float]) -> str:
    """The mean, with the standard deviation if there are several values."""
    return f"{fmean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "") if values else ""


def records(system: System, scores: Scores, suite: Suite, suite_name: str) -> Iterator[Record]:
    """One record for each of the scores."""
    setting = "development" if suite_name == "development" else "zero-shot"
    data = f"{suite.texts}, types by natural name" + (f"; {system.note}" if system.note else "")
    for corpus, values in scores.items():
        found = mean_record(
            f"{system.name}/{setting}/{corpus}/{system.encoder}/f1",
            dict(zip(system.seeds or (0,), values, strict=True)),
            command=command(without=["--output"]),
            data=data,
            encoder=system.encoder,
        )
        yield replace(found, seeds=tuple(system.seeds))


if __name__ == "__main__":
    main_with_errors(main)
