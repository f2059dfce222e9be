"""Extraction on the CPU against the encoder alone.

    python benchmarks/runtime.py MODEL --corpus PATH [--limit 2000]

A model saved by PyTorch is exported in int8. Its encoder alone, without heads, reads the tokens of the corpus in small
batches of similar length, with as many threads as the runtime uses; then the whole model extracts 5 types and 1,000
types, or all types of a model that knows a closed set. They alternate, and the best of several turns counts. The
start-up time is that of `onoma extract "..." --labels person` in a new process, from start to end: the median of
several.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from onoma.evaluation.runs import open_corpus
from onoma.evaluation.speed import bare_encoder, sample_labels
from onoma.extractor import load
from onoma.models.export import export
from onoma.models.folder import open_single
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from start import start_up_seconds

TURNS = 7
TEXT = "Ines Duarte flew from Lisbon to Oslo."


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a model saved by PyTorch")
    parser.add_argument("--corpus", required=True, help="corpus to read, such as data/conll2003 (its test split)")
    parser.add_argument("--limit", type=int, default=2000, help="sentences")
    parser.add_argument("--threads", type=int, help="by default one per usable core")
    parser.add_argument("--name", help="the model's name in the records, by default that of its encoder")
    parser.add_argument("--output", type=Path, default=RESULTS / "runtime.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    corpus = open_corpus(arguments.corpus, limit=arguments.limit)
    texts = [document.text for document in corpus]
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(arguments.model, Path(folder), texts, arguments.threads)
    config = open_single(arguments.model, "measure").config
    encoder = arguments.name or Path(config.encoder).name
    setting, data = f"{config.system}/runtime-int8/{corpus.name}/{encoder}", f"{corpus.name}, {len(texts)} documents"
    records = [
        Record(f"{setting}/{name}", value, command(without=["--output"]), data, encoder=encoder)
        for name, value in figures.items()
    ]
    for record in records:
        print(f"{record.metric:75} {record.value:10.3f}")
    write_records(arguments.output, records)


def measure(source: Path, folder: Path, texts: list[str], threads: int | None) -> dict[str, float]:
    """All figures by name."""
    model = load(export(source, folder / "model", int8=True), "onnx", threads=threads)
    known = model.runtime.labels
    questions = (
        {"all_types": sorted(known)} if known else {"5_types": sample_labels(5), "1000_types": sample_labels(1000)}
    )
    work: dict[str, Callable[[], object]] = {
        "encoder": bare_encoder(model, texts, folder),
        **{name: partial(model.extract, texts, labels) for name, labels in questions.items()},
    }
    seconds = dict.fromkeys(work, float("inf"))
    for turn in range(TURNS + 1):
        for name, run in work.items():
            start = time.perf_counter()
            run()
            if turn:  # the first one is a warm-up
                seconds[name] = min(seconds[name], time.perf_counter() - start)
    speeds = {f"{name}_sentences_per_s": len(texts) / value for name, value in seconds.items()}
    first, *others = questions
    return speeds | {
        "share_of_encoder_percent": 100 * seconds["encoder"] / seconds[first],
        **{f"{name}_against_5": seconds[name] / seconds[first] for name in others},
        "start_s": start_up_seconds(TEXT, "--labels", min(known or ["person"]), model=folder / "model"),
    }


if __name__ == "__main__":
    main_with_errors(main)
