"""Zero-shot F1 on CrossNER and MIT: how well a model finds types that it was never trained on.

    python benchmarks/zero_shot.py --data CORPORA [--model FOLDER] [--limit N]

Strict F1 by character offsets, the model's own threshold, types by their natural names alone. The published rows are
what the papers report for all test sentences; they too are strict by offsets, except UniNER's and ChatGPT's.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

import onoma
from onoma.data import load_corpus
from onoma.evaluation.runs import run
from records import RESULTS, Record, write_records

SETS = ("crossner_ai", "crossner_literature", "crossner_music", "crossner_politics", "crossner_science")
SETS = (*SETS, "mit_movie_eng", "mit_restaurant")
PUBLISHED = {
    "ChatGPT": 47.5,
    "UniNER-7B": 53.7,
    "GLiNER-S": 52.7,
    "GLiNER-M": 55.4,
    "GLiNER-L": 60.9,
    "gliner-bi-v2 edge": 54.0,
    "gliner-bi-v2 small": 57.2,
    "gliner-bi-v2 base": 60.3,
    "NuNER-Zero-span": 62.0,
}


def main() -> None:
    """Measure, print the table and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/crossner_ai and the others")
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--name", default="embedded", help="what to call it in the records")
    parser.add_argument("--limit", type=int, default=None, help="take only so many sentences of each set")
    parser.add_argument("--output", type=Path, default=RESULTS / "zero_shot.json")
    arguments = parser.parse_args()
    model = onoma.load(arguments.model)
    scores = {}
    for name in track(SETS, "measuring", console=Console(stderr=True)):
        corpus = load_corpus(arguments.data / "en" / name, "test", natural_names=True)
        corpus = replace(corpus, documents=corpus.documents[: arguments.limit])
        scores[name] = 100 * run(model, corpus).report.strict.micro.f1
    average = sum(scores.values()) / len(scores)
    Console().print(table(arguments.name, scores, average))
    if arguments.limit is None:
        write_records(arguments.output, records(arguments.name, scores, average, model.config.encoder))


def table(name: str, scores: dict[str, float], average: float) -> Table:
    """Ours beside what others report."""
    shown = Table("model", "average", *(corpus.removeprefix("crossner_") for corpus in scores))
    shown.add_row(name, f"{average:.1f}", *(f"{score:.1f}" for score in scores.values()))
    for other, published in sorted(PUBLISHED.items(), key=lambda item: item[1]):
        shown.add_row(other, f"{published:.1f}")
    return shown


def records(name: str, scores: dict[str, float], average: float, encoder: str) -> list[Record]:
    """One record a set, and the average."""
    encoder = encoder.rpartition("/")[2]
    return [
        Record(
            f"{name}/zero-shot/{corpus}/{encoder}/f1",
            round(score, 2),
            "python benchmarks/zero_shot.py --data CORPORA",
            "all test sentences, types by natural name",
            None,
            encoder,
        )
        for corpus, score in (*scores.items(), ("average-of-seven", average))
    ]


if __name__ == "__main__":
    main()
