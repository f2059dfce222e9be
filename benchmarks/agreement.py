"""Does a model give the same results without PyTorch?

    python benchmarks/agreement.py MODEL --corpus PATH [--limit 500]

A model saved by PyTorch is exported twice, in float32 and in int8, and all three forms read the same sentences. Scores
are compared for all spans that any form proposes at a low threshold, entities at the default threshold. Speed is that
of a whole extraction on the CPU: the best of several turns, in which the three forms alternate.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onoma.entities import Corpus, Entity
from onoma.evaluation import evaluate
from onoma.evaluation.candidates import EvaluationSet, usual_overlap
from onoma.evaluation.runs import open_corpus
from onoma.extractor import Extractor, load
from onoma.models.export import export
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

FLOOR = 0.05  # spans with a lower score are not compared
TURNS = 3
EXPORTED = {"onnx": False, "onnx-int8": True}
"""The forms without PyTorch, and whether they are in int8."""

Scores = dict[tuple[int, int, int], float]
"""First word, last word and type, with words counted over all sentences."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of the model, and what it found."""

    model: Extractor
    entities: list[list[Entity]]
    scores: Scores
    seconds: float


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a model saved by PyTorch")
    parser.add_argument("--corpus", required=True, help="corpus to read, such as data/conll2003 (its test split)")
    parser.add_argument("--limit", type=int, default=500, help="sentences")
    parser.add_argument("--name", help="the model's name in the records, by default that of its encoder")
    parser.add_argument("--output", type=Path, default=RESULTS / "agreement.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    corpus = open_corpus(arguments.corpus, limit=arguments.limit)
    with tempfile.TemporaryDirectory() as folder:
        models = {"torch": load(arguments.model, "torch", "cpu")}
        for name, int8 in EXPORTED.items():
            models[name] = load(export(arguments.model, Path(folder) / name, int8), "onnx")
        measured = list(measures(run(models, corpus), corpus))
    config = models["torch"].config
    encoder = arguments.name or Path(config.encoder).name
    records = [
        Record(
            f"{config.system}/agreement/{corpus.name}/{encoder}/{measure}",
            value,
            command(without=["--output"]),
            f"{corpus.name}, first {len(corpus)} documents",
            encoder=encoder,
        )
        for measure, value in measured
    ]
    for record in records:
        print(f"{record.metric:75} {record.value:12.6f}")
    write_records(arguments.output, records)


def run(models: dict[str, Extractor], corpus: Corpus) -> dict[str, Form]:
    """Let all forms read the corpus in turns."""
    overlap, texts = usual_overlap(corpus), [document.text for document in corpus]
    seconds = dict.fromkeys(models, float("inf"))
    entities: dict[str, list[list[Entity]]] = {}
    for _ in range(TURNS):
        for name, model in models.items():
            start = time.perf_counter()
            entities[name] = model.extract(texts, corpus.types, overlap=overlap)
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return {name: Form(model, entities[name], scores(model, corpus), seconds[name]) for name, model in models.items()}


def scores(model: Extractor, corpus: Corpus) -> Scores:
    """The scores of all spans that reach the floor."""
    found = EvaluationSet(corpus, model.runtime).candidates(model.runtime, FLOOR).proposals
    columns = found.first.tolist(), found.last.tolist(), found.type.tolist()
    return dict(zip(zip(*columns, strict=True), found.score.tolist(), strict=True))


def measures(forms: dict[str, Form], corpus: Corpus) -> Iterator[tuple[str, float]]:
    """The figures by name."""
    reference = forms["torch"]
    for name, form in forms.items():
        yield f"{name}_f1", 100 * evaluate(corpus, form.entities).strict.micro.f1
        yield f"{name}_sentences_per_s", len(corpus) / form.seconds
    for name in EXPORTED:
        form = forms[name]
        differences = [
            abs(form.scores.get(span, FLOOR) - reference.scores.get(span, FLOOR))
            for span in form.scores.keys() | reference.scores.keys()
        ]
        same = [spans(some) == spans(others) for some, others in zip(form.entities, reference.entities, strict=True)]
        yield f"{name}_largest_score_difference", max(differences, default=0.0)
        yield f"{name}_mean_score_difference", sum(differences) / max(1, len(differences))
        yield f"{name}_sentences_with_the_same_entities_percent", 100 * sum(same) / len(same)
        size = sum(path.stat().st_size for path in form.model.folder.glob("*.onnx"))
        yield f"{name}_megabytes", size / 1e6


def spans(entities: Sequence[Entity]) -> list[tuple[int, int, str]]:
    """Entities without their scores."""
    return [(one.start, one.end, one.label) for one in entities]


if __name__ == "__main__":
    main_with_errors(main)
