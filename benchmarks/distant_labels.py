"""How good distant labels are by themselves, with nothing trained: the dictionary rows beside incomplete_labels.py.

    python benchmarks/distant_labels.py --data CORPORA

BC5CDR: AutoNER's dictionary on test, in any case (the default of `onoma weak-label`, and how the train labels were
made) and with the case of the dictionary. CoNLL-2003: the labels of train from a knowledge base against its gold
labels. Strict F1; results are written to benchmarks/results/distant_labels.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from incomplete_labels import DISTANT
from onoma.data import Dictionary, load_corpus
from onoma.entities import Corpus, Document
from onoma.evaluation import Comparison
from onoma.evaluation.strict import strict
from papers import published_figure
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

MEASURES = ("f1", "precision", "recall")


def main() -> None:
    """Compare, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--output", type=Path, default=RESULTS / "distant_labels.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    records = [*bc5cdr(arguments.data), *conll2003(arguments.data)]
    for record in records:
        print(f"{record.metric:50} {record.value:6.2f}")
    write_records(arguments.output, records)


def bc5cdr(data: Path) -> Iterator[Record]:
    """The dictionary on test."""
    folder = data / DISTANT["bc5cdr"]
    gold = load_corpus(folder, "test")
    for setting, match_case in (("distant", False), ("distant-match-case", True)):
        dictionary = Dictionary.load([folder / "dict_core.txt.xz"], match_case=match_case)
        note = "bc5cdr: dict_core on test" + (", case as in the dictionary" if match_case else "")
        yield from _records(f"dictionary/{setting}/bc5cdr", gold, list(dictionary.label(gold)), note)


def conll2003(data: Path) -> Iterator[Record]:
    """The distant labels of train."""
    folder = data / DISTANT["conll2003"]
    gold, labelled = load_corpus(folder, "train_gold"), load_corpus(folder, "train")
    note = "conll2003: distant labels of train against its gold labels"
    yield from _records("dictionary/distant/conll2003", gold, labelled.documents, note)


def _records(place: str, gold: Corpus, labelled: Sequence[Document], note: str) -> Iterator[Record]:
    scores = strict(Comparison.between(gold, [document.entities for document in labelled])).micro
    for measure in MEASURES:
        value = round(100 * getattr(scores, measure), 2)
        metric = f"{place}/none/{measure}"
        yield Record(metric, value, command(without=["--output"]), note, published_figure(metric))


if __name__ == "__main__":
    main_with_errors(main)
