"""Extraction on the CPU against the encoder alone: `python benchmarks/runtime.py MODEL --corpus PATH [--limit 2000]`.

A model saved by PyTorch is exported in int8. Its encoder alone, without heads, reads the tokens of the corpus in small
batches of similar length, by as many threads as the runtime uses; then the whole model extracts from the texts, asked
for 5 types and for 1,000. They take turns; the best of several turns counts. The start is that of the command
`onoma extract "..." --labels person` in a new process, from its call to its end: the median of several.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

from onoma.backends.onnx import OnnxGraph, Workers
from onoma.backends.torch import load as load_torch
from onoma.batches import Batch, bucket, collate
from onoma.evaluation.runs import open_corpus
from onoma.export import export
from onoma.extractor import load
from onoma.subwords import Subwords
from onoma.systems.blocks.onnx_encoder import TOKENS, encoder_states
from onoma.systems.blocks.onnx_graph import Graph
from onoma.text import segment
from records import RESULTS, Record, write_records
from start import start

TURNS = 7
TOKENS_TOGETHER = 256
KINDS = (
    *("person", "city", "company", "river", "drug", "disease", "gene", "film", "song", "book", "ship", "award", "law"),
    *("plant", "animal", "dish", "tool", "vehicle", "machine", "school", "team", "sport", "event", "building", "road"),
)
WORDS = (
    *("", "old", "new", "rare", "common", "public", "private", "local", "foreign", "famous", "small", "large", "fast"),
    *("military", "medical", "legal", "royal", "rural", "urban", "coastal", "northern", "southern", "modern", "early"),
    *(
        "late",
        "national",
        "regional",
        "digital",
        "electric",
        "wooden",
        "religious",
        "scientific",
        "musical",
        "tropical",
    ),
    *("industrial", "political", "financial", "historic", "fictional", "award-winning"),
)
LABELS = [f"{word} {kind}".strip() for word, kind in product(WORDS, KINDS)]
TEXT = "Ines Duarte flew from Lisbon to Oslo."


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a model saved by PyTorch")
    parser.add_argument("--corpus", required=True, help="corpus to read, such as data/conll2003 (its test split)")
    parser.add_argument("--limit", type=int, default=2000, help="sentences")
    parser.add_argument("--threads", type=int, help="by default one a physical core")
    parser.add_argument("--name", help="the model's name in the records, by default that of its encoder")
    parser.add_argument("--output", type=Path, default=RESULTS / "runtime.json")
    arguments = parser.parse_args()
    corpus = open_corpus(arguments.corpus, limit=arguments.limit)
    texts = [document.text for document in corpus]
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(arguments.model, Path(folder), texts, arguments.threads)
    encoder = arguments.name or Path(load_torch(arguments.model, "cpu").config.encoder).name
    command = f"python benchmarks/runtime.py MODEL --corpus {corpus.name} --limit {arguments.limit}"
    records = [
        Record(f"binder/runtime-int8/{corpus.name}/{encoder}/{name}", value, command, corpus.name, encoder=encoder)
        for name, value in figures.items()
    ]
    for record in records:
        print(f"{record.metric:75} {record.value:10.3f}")
    write_records(arguments.output, records)


def measure(source: Path, folder: Path, texts: list[str], threads: int | None) -> dict[str, float]:
    """All figures by name."""
    model = load(export(source, folder / "model", int8=True), "onnx", threads=threads)
    encoder, workers = bare_encoder(source, folder / "encoder.onnx"), Workers(threads)
    batches = tokens(texts, model.backend.subwords)
    work: dict[str, Callable[[], object]] = {
        "encoder": lambda: list(workers.map(partial(read, encoder), batches)),
        "5_types": lambda: model.extract(texts, LABELS[:5]),
        "1000_types": lambda: model.extract(texts, LABELS),
    }
    seconds = dict.fromkeys(work, float("inf"))
    for turn in range(TURNS + 1):
        for name, run in work.items():
            begin = time.perf_counter()
            run()
            if turn:  # the first one only warms up
                seconds[name] = min(seconds[name], time.perf_counter() - begin)
    speeds = {f"{name}_sentences_per_s": len(texts) / value for name, value in seconds.items()}
    return speeds | {
        "share_of_encoder_percent": 100 * seconds["encoder"] / seconds["5_types"],
        "1000_types_against_5": seconds["1000_types"] / seconds["5_types"],
        "start_s": start(TEXT, "--labels", "person", model=folder / "model"),
    }


def bare_encoder(source: Path, path: Path) -> OnnxGraph:
    """The text encoder alone, in int8."""
    graph = Graph(int8=True)
    states = encoder_states(graph, load_torch(source, "cpu").model.text_encoder)
    graph.save(path, TOKENS, {"states": states})
    return OnnxGraph(path)


def tokens(texts: list[str], subwords: Subwords) -> list[Batch]:
    """All texts as small batches of similar length."""
    pieces = subwords.split((text, segment(text)) for text in texts)
    parts = bucket([len(one.ids) + 2 for one in pieces], len(pieces), TOKENS_TOGETHER)
    return [collate([pieces[index] for index in part], subwords) for part in parts]


def read(encoder: OnnxGraph, batch: Batch) -> object:
    """Let the encoder read a batch."""
    return encoder.run(["states"], ids=batch.ids, mask=batch.mask)


if __name__ == "__main__":
    main()
