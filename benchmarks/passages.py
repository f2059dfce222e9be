"""How much machine-written passages resemble benchmarks, and copies without those that do.

    python benchmarks/passages.py corpora/onoma_written/en --data CORPORA --language en [--write FOLDER]

A passage resembles a benchmark if it asks for half or more of the benchmark's labels (of those with five labels or
more), or if it shares a run of five words (Chinese: ten characters) or a whole short sentence with any split of it.
Nothing else of a benchmark is read, and nothing of it is shown. `--write` makes a corpus of the other passages, which
may replace the one that is read. The counts are written to benchmarks/results/passages.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from onoma import Corpus, Document
from onoma.data import load_corpus
from onoma.data.corpora import find_splits
from onoma.files import atomic_write, read_lines
from onoma.text.words import segment
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from suites import SUITES

FEWEST_LABELS = 5
"""Of a benchmark whose labels are compared: every text has persons and places."""
RUNS = {"en": 5, "zh": 10}
"""Words in a row that a passage must not share with a benchmark."""
TRAIN_FILE = "train.jsonl.xz"
Run = tuple[str, ...]


def main() -> None:
    """Count, and write what is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", type=Path, help="folder of the passages")
    parser.add_argument("--data", required=True, type=Path, help="folder of the benchmarks")
    parser.add_argument("--language", choices=list(RUNS), default="en")
    parser.add_argument("--write", type=Path, help="folder for the passages that resemble no benchmark")
    parser.add_argument("--output", type=Path, default=RESULTS / "passages.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    corpus = load_corpus(arguments.passages, "train", natural_names=True, language=arguments.language)
    benchmarks = list(read_benchmarks(arguments.data, arguments.language))
    by_labels = {row for row, one in enumerate(corpus.documents) if asks_like(one, label_sets(benchmarks))}
    known = runs_of((one.text for part in benchmarks for one in part), RUNS[arguments.language])
    by_text = {row for row, one in enumerate(corpus.documents) if shares_run(one.text, known, RUNS[arguments.language])}
    removed = by_labels | by_text
    total = len(corpus.documents)
    counts = {"labels": by_labels, "text": by_text, "removed": removed}
    for name, rows in counts.items():
        print(f"{name}: {len(rows)} of {total} passages ({len(rows) / total:.1%})")
    if arguments.write:
        write_without(removed, arguments.passages, arguments.write)
    text = command(without=["--output", "--write"])
    write_records(arguments.output, records(corpus.name, arguments.language, counts, total, text))


def write_without(removed: Collection[int], source: Path, target: Path) -> None:
    """Copy a corpus without some rows; the others stay as they are, and the counts in meta.json are set anew."""
    lines = [line for row, (_, line) in enumerate(read_lines(find_splits(source)["train"])) if row not in removed]
    with atomic_write(target / TRAIN_FILE) as file:
        file.writelines(f"{line}\n" for line in lines)
    path = source / "meta.json"
    if path.is_file():
        labels = [entity["label"] for line in lines for entity in json.loads(line)["entities"]]
        counts = {"passages": len(lines), "mentions": len(labels), "distinct_labels": len(set(labels))}
        info = json.loads(path.read_text("utf-8"))
        with atomic_write(target / path.name) as file:
            json.dump(info | {name: count for name, count in counts.items() if name in info}, file, indent=1)
            file.write("\n")


def read_benchmarks(data: Path, language: str) -> Iterator[Corpus]:
    """All splits of the benchmarks of a language; the wide suite has names of plain types only."""
    wide = SUITES["wide"].get(language)
    for name in (*SUITES["benchmarks"][language].sets, *(wide.sets if wide else ())):
        folder = data / language / name
        for split in find_splits(folder):
            if not split.startswith("test_unlabelled"):
                yield load_corpus(folder, split, natural_names=True, language=language)


def label_sets(benchmarks: Iterable[Corpus]) -> list[frozenset[str]]:
    """The labels of each benchmark that has enough of them."""
    sets = {frozenset(plain(one.name) for one in part.types) for part in benchmarks}
    return [one for one in sets if len(one) >= FEWEST_LABELS]


def asks_like(document: Document, sets: Iterable[frozenset[str]]) -> bool:
    """Whether a passage asks for half or more of the labels of a benchmark."""
    asked = {plain(one) for one in document.annotated or {one.label for one in document.entities}}
    return any(2 * len(asked & one) >= len(one) for one in sets)


def plain(label: str) -> str:
    """A label in lower case and, if it is an English plural, in the singular."""
    return label.strip().casefold().removesuffix("s")


def runs_of(texts: Iterable[str], length: int) -> set[Run]:
    """All runs of words, and whole texts that are shorter."""
    return {run for text in texts for run in _runs(text, length)}


def shares_run(text: str, known: set[Run], length: int) -> bool:
    """Whether a text has one of these runs."""
    return not known.isdisjoint(_runs(text, length))


def _runs(text: str, length: int) -> Iterator[Run]:
    folded = text.casefold()
    words = tuple(word for a, b in segment(folded).tolist() if (word := folded[a:b]).isalnum())
    for start in range(max(1, len(words) - length + 1)):
        yield words[start : start + length]


def records(name: str, language: str, counts: dict[str, set[int]], total: int, text: str) -> Iterator[Record]:
    """The shares in percent."""
    for measure, rows in counts.items():
        data = f"{len(rows)} of {total} passages ({language}) that resemble a benchmark of this language"
        yield Record(
            f"passages/{measure}/{name}-{language}/none/percent", round(100 * len(rows) / total, 2), text, data
        )


if __name__ == "__main__":
    main_with_errors(main)
