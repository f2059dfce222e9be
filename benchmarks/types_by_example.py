"""Types by example: what 5 or 20 marked examples per type gain over the name alone, without training.

    python benchmarks/types_by_example.py --data CORPORA [--language en|zh|both] [--corpora NAME ...]
    python benchmarks/types_by_example.py --data CORPORA --dev

For each draw, documents with N mentions of every type (N-shot sampling, see `onoma.data.sample_mentions`) are drawn
from the train split and given to `Extractor.teach`. The test split is then scored with the model's own thresholds:
strict F1 by character offsets, types by their natural names. Published figures are for 5 examples per type: prototypes
on a pretrained encoder, and FFF-NER, which is fine-tuned.

The model was trained on the train split of WNUT 17, and on none of the other corpora. `--dev` measures on development
corpora instead, on which the method was chosen; no record is written for them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Column, Table

import onoma
from onoma import Corpus, Extractor
from onoma.data import load_corpus, sample_mentions
from onoma.data.corpora import find_splits
from onoma.evaluation.runs import run
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from zero_shot import encoder_of

BENCHMARKS = {
    "en": (
        *("conll2003", "wnut17", "mit_movie_eng", "mit_restaurant"),
        *("crossner_ai", "crossner_literature", "crossner_music", "crossner_politics", "crossner_science"),
    ),
    "zh": ("resume", "cluener", "ecommerce", "msra"),
}
DEVELOPMENT = {
    "en": (
        *("biored", "cadec", "gum", "hipe_ajmc_en", "hipe_hipe2020_en", "atis_slots", "scierc_flat"),
        *("ebmnlp_devtest", "uner_en_ewt_devtest", "few_tk"),
    ),
    "zh": ("people_daily_1998", "cmeee", "taobao", "video_music_book", "c_clue", "address_parsing"),
}
SHOTS = (5, 20)
DRAWS = 5
PROTOTYPES = {"conll2003": 58.4, "mit_movie_eng": 38.0, "mit_restaurant": 44.1, "wnut17": 29.5}
FINE_TUNED = {"conll2003": 67.9, "mit_movie_eng": 60.3, "mit_restaurant": 52.0, "wnut17": 30.5}
"""Published F1 with 5 examples per type."""


class Score(NamedTuple):
    """F1 over draws."""

    mean: float
    spread: float  # standard deviation


def main() -> None:
    """Measure, print the tables and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/conll2003 and the others")
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--language", choices=[*BENCHMARKS, "both"], default="both", help="language of the test sets")
    parser.add_argument("--corpora", nargs="+", default=None, help="only these corpora")
    parser.add_argument("--dev", action="store_true", help="development corpora instead of benchmarks")
    parser.add_argument("--shots", type=int, nargs="+", default=list(SHOTS), help="examples per type")
    parser.add_argument("--draws", type=int, default=DRAWS, help="support sets per corpus and number of examples")
    parser.add_argument("--limit", type=int, default=None, help="number of test sentences of each corpus")
    parser.add_argument("--output", type=Path, default=RESULTS / "types_by_example.json")
    arguments = parser.parse_args()
    is_record = not arguments.dev and arguments.limit is None
    if is_record:
        commit_for(arguments.output)
    model = onoma.load(arguments.model)
    for language in BENCHMARKS if arguments.language == "both" else [arguments.language]:
        named = (DEVELOPMENT if arguments.dev else BENCHMARKS)[language]
        chosen = [name for name in named if arguments.corpora is None or name in arguments.corpora]
        if not chosen:
            continue
        scores = {}
        for name in chosen:
            started = time.perf_counter()
            support, test = splits(arguments.data / language / name, language)
            test = replace(test, documents=test.documents[: arguments.limit])
            scores[name] = measure(model, support, test, arguments.shots, arguments.draws)
            shown = ", ".join(f"{shots}: {show(score)}" for shots, score in scores[name].items())
            print(f"{name}: {shown} ({time.perf_counter() - started:.0f} s)", flush=True)
        if set(chosen) == set(named):
            scores[f"average-of-{len(named)}"] = average(list(scores.values()))
        Console().print(table(scores))
        if is_record:
            encoder = encoder_of(model, language)
            write_records(arguments.output, records(arguments.name, scores, encoder, arguments.draws))


def splits(folder: Path, language: str) -> tuple[Corpus, Corpus]:
    """What support sets are drawn from, and what is scored: train and test, or dev where one of them is missing."""
    present = find_splits(folder)
    support = "train" if "train" in present else "dev"
    test = next(one for one in ("test", "dev") if one in present and one != support)
    some, other = (load_corpus(folder, one, natural_names=True, language=language) for one in (support, test))
    return some, other


def measure(model: Extractor, support: Corpus, test: Corpus, shots: Sequence[int], draws: int) -> dict[int, Score]:
    """F1 by number of examples per type; 0 is the name alone."""
    scores = {0: Score(f1(model, test), 0.0)}
    for count in shots:
        values = [f1(model.teach(sample_mentions(support, count, seed=seed)), test) for seed in range(draws)]
        scores[count] = Score(statistics.mean(values), statistics.stdev(values) if draws > 1 else 0.0)
    return scores


def f1(model: Extractor, test: Corpus) -> float:
    """Strict micro F1 in percent."""
    return 100 * run(model, test).report.strict.micro.f1


def average(scores: Sequence[dict[int, Score]]) -> dict[int, Score]:
    """The mean over corpora; its spread is that of a mean of independent figures."""
    count = len(scores)
    return {
        shots: Score(
            statistics.mean(one[shots].mean for one in scores),
            sum(one[shots].spread ** 2 for one in scores) ** 0.5 / count,
        )
        for shots in scores[0]
    }


def table(scores: dict[str, dict[int, Score]]) -> Table:
    """One row per corpus, with what others report."""
    shots = list(next(iter(scores.values())))
    columns = ["name only" if not one else f"{one} examples" for one in shots]
    shown = Table(Column("corpus", no_wrap=True), *columns, "prototypes, 5", "FFF-NER, 5")
    for name, values in scores.items():
        published = [f"{others[name]:.1f}" if name in others else "" for others in (PROTOTYPES, FINE_TUNED)]
        shown.add_row(name, *map(show, values.values()), *published)
    return shown


def show(score: Score) -> str:
    """The mean, and the spread if there is one."""
    return f"{score.mean:.1f} ± {score.spread:.1f}" if score.spread else f"{score.mean:.1f}"


def records(name: str, scores: dict[str, dict[int, Score]], encoder: str, draws: int) -> list[Record]:
    """One record for each of the scores."""
    return [
        Record(
            f"{name}/{f'{shots}-examples' if shots else 'name-only'}/{corpus}/{encoder}/f1",
            round(score.mean, 2),
            command(without=["--output"]),
            _data(corpus, shots, draws),
            PROTOTYPES.get(corpus) if shots == 5 else None,
            encoder,
            tuple(range(draws)) if shots else (),
            round(score.spread, 2) if shots else None,
        )
        for corpus, values in scores.items()
        for shots, score in values.items()
    ]


def _data(corpus: str, shots: int, draws: int) -> str:
    texts = "all test sentences, of CLUENER all of dev" if corpus == "cluener" else "all test sentences"
    drawn = f", {shots} examples per type from train, {draws} draws" if shots else ""
    return f"{texts}, types by natural name{drawn}"


if __name__ == "__main__":
    main_with_errors(main)
