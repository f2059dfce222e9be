"""Sentences a second on the CPU beside GLiNER's on the same encoder, in one run, each by the same number of threads.

    pip install gliner==0.2.29  # no dependency of Onoma; best into an environment of its own
    python benchmarks/gliner_speed.py --data CORPORA [--encoder FOLDER]

Both read the same sentences of CrossNER, sorted by length, and are asked for the same 10 and 100 types; Onoma also for 5 and 1,000. They
take turns, after one that only warms up. GLiNER, in float32 by PyTorch, has the sizes of its published small model
and heads that were never trained: at its threshold they find next to nothing, which spares it the work on what it
finds, and nothing else of its speed depends on what it has learned. It gets the batch size that suits it best.
"""

from __future__ import annotations

import argparse
import importlib
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import onoma
from onoma.data import Inventory, load_corpus
from onoma.entities import Corpus
from onoma.errors import OnomaError
from records import RESULTS, Record, write_records
from zero_shot import SETS

CROSSNER = tuple(name for name in SETS if name.startswith("crossner_"))
COUNTS = {"onoma": (5, 10, 100, 1000), "gliner": (10, 100)}
BATCH_SIZES = (1, 4, 8, 16, 32)
GLINER_THRESHOLD = 0.9
LONGEST_NAME = 2
SHORTEST_TURN = 2.0

Asked = tuple[str, int]
Read = Callable[[list[str]], list[list[Any]]]


def main() -> None:
    """Measure, print the table and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/crossner_ai and the others")
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--name", default="embedded", help="what to call it in the records")
    parser.add_argument("--encoder", default=None, help="folder of its encoder, for GLiNER; by default from the hub")
    parser.add_argument("--limit", type=int, default=40, help="sentences of each set")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "gliner_speed.json")
    arguments = parser.parse_args()
    corpora = [load_corpus(arguments.data / "en" / name, "test", natural_names=True) for name in CROSSNER]
    texts, labels = sentences(corpora, arguments.limit), label_names(corpora, max(COUNTS["onoma"]))
    model = onoma.load(arguments.model, "onnx", threads=arguments.threads)
    gliner = build_gliner(arguments.encoder or model.config.encoder, arguments.threads)
    batch_sizes = {count: best_batch_size(gliner, labels[:count], texts[::5]) for count in COUNTS["gliner"]}
    readers = {("onoma", count): reader(model, labels[:count]) for count in COUNTS["onoma"]}
    readers |= {("gliner", count): partial(gliner, labels[:count], size) for count, size in batch_sizes.items()}
    found = {asked: sum(map(len, read(texts))) for asked, read in readers.items()}  # warms up
    speeds = take_turns(readers, texts, arguments.turns)
    Console().print(table(speeds, found))
    setting = f"{len(texts)} test sentences of the five sets, {arguments.threads} threads, {arguments.turns} turns"
    data = {"onoma": f"{setting}; int8, types encoded before; {told(found, 'onoma')}"}
    data["gliner"] = f"{setting}; {gliner_data(batch_sizes)}; {told(found, 'gliner')}"
    encoder = model.config.encoder.rpartition("/")[2]
    write_records(arguments.output, records(speeds, data, arguments.name, encoder))


def sentences(corpora: Sequence[Corpus], limit: int) -> list[str]:
    """As many sentences of each set, drawn from all of it, the shortest first.

    Onoma sorts texts by itself; GLiNER does not, and in another order would spend time on padding.
    """
    chosen = [random.Random(0).sample(corpus.documents, min(limit, len(corpus))) for corpus in corpora]
    return sorted((document.text for documents in chosen for document in documents), key=len)


def label_names(corpora: Sequence[Corpus], count: int) -> list[str]:
    """Names of types: those of the corpora, the most common first, then other short ones out of Onoma's inventory.

    GLiNER reads the names along with every sentence, so that long ones would slow it down more.
    """
    asked = Counter(one.name for corpus in corpora for one in corpus.types)
    others = [name for name in Inventory.load().types if len(name.split()) <= LONGEST_NAME]
    random.Random(0).shuffle(others)
    names = list(dict.fromkeys([*(name for name, _ in asked.most_common()), *others]))
    if len(names) < count:
        raise OnomaError(f"{count} types are to be asked for, but there are only {len(names)} names")
    return names[:count]


def reader(model: onoma.Extractor, labels: list[str]) -> Read:
    """Onoma, asked for some types at its own threshold."""
    return lambda texts: model.extract(texts, labels)


def build_gliner(encoder: str, threads: int) -> Callable[[list[str], int, list[str]], list[list[Any]]]:
    """GLiNER on an encoder, as a function of labels, batch size and texts."""
    package = import_gliner()
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    # What its configuration leaves out is as in its published small model: markerV0, 12 words, size 512, one LSTM.
    model = package.GLiNER.from_config(package.GLiNERConfig(model_name=encoder))

    def read(labels: list[str], batch_size: int, texts: list[str]) -> list[list[Any]]:
        with torch.inference_mode():
            found: list[list[Any]] = model.inference(texts, labels, threshold=GLINER_THRESHOLD, batch_size=batch_size)
        return found

    return read


def import_gliner() -> Any:
    """The package, or what to do to get it."""
    try:
        return importlib.import_module("gliner")
    except ImportError as error:
        raise OnomaError("this benchmark needs GLiNER: pip install gliner==0.2.29") from error


def best_batch_size(gliner: Callable[..., Any], labels: list[str], texts: list[str]) -> int:
    """The batch size that takes least time for some of the texts."""
    times = {size: min(seconds(partial(gliner, labels, size), texts) for _ in range(2)) for size in BATCH_SIZES}
    return min(times, key=times.__getitem__)


def take_turns(readers: Mapping[Asked, Read], texts: list[str], turns: int) -> dict[Asked, list[float]]:
    """Sentences a second of each reader in each turn."""
    speeds: dict[Asked, list[float]] = {asked: [] for asked in readers}
    for _ in range(turns):
        for asked, read in readers.items():
            speeds[asked].append(len(texts) / seconds(read, texts, SHORTEST_TURN))
    return speeds


def seconds(read: Read, texts: list[str], at_least: float = 0.0) -> float:
    """How long it takes to read all texts; they are read again until so many seconds have passed."""
    begin, passes, passed = time.perf_counter(), 0, 0.0
    while not passes or passed < at_least:
        read(texts)
        passes, passed = passes + 1, time.perf_counter() - begin
    return passed / passes


def ratios(speeds: Mapping[Asked, list[float]], one: Asked, other: Asked) -> list[float]:
    """How many times as fast one was as the other, turn by turn."""
    return [mine / its for mine, its in zip(speeds[one], speeds[other], strict=True)]


def told(found: Mapping[Asked, int], system: str) -> str:
    """How many entities a system found, by the number of types."""
    counts = ", ".join(f"{found[system, count]:,} with {count:,} types" for count in COUNTS[system])
    return f"entities found: {counts}"


def gliner_data(batch_sizes: Mapping[int, int]) -> str:
    """What was measured of GLiNER."""
    package, torch = import_gliner(), importlib.import_module("torch")
    sizes = " and ".join(f"{size} for {count} types" for count, size in batch_sizes.items())
    return (
        f"GLiNER {package.__version__}, PyTorch {torch.__version__}, float32, untrained heads, "
        f"threshold {GLINER_THRESHOLD}, best batch sizes: {sizes}"
    )


def table(speeds: Mapping[Asked, list[float]], found: Mapping[Asked, int]) -> Table:
    """A line for each number of types: the medians, and how many times as fast Onoma is."""
    shown = Table("types", "Onoma, sentences/s", "GLiNER, sentences/s", "times", "found by Onoma", "by GLiNER")
    for count in COUNTS["onoma"]:
        ours, theirs = ("onoma", count), ("gliner", count)
        cells = [f"{count:,}", spread_cell(speeds[ours]), "", "", f"{found[ours]:,}", ""]
        if theirs in speeds:
            cells[2:4] = spread_cell(speeds[theirs]), spread_cell(ratios(speeds, ours, theirs))
            cells[5] = f"{found[theirs]:,}"
        shown.add_row(*cells)
    return shown


def spread_cell(values: Sequence[float]) -> str:
    """The median, the least and the most."""
    return f"{statistics.median(values):,.1f} ({min(values):,.1f} to {max(values):,.1f})"


def records(speeds: Mapping[Asked, list[float]], data: Mapping[str, str], name: str, encoder: str) -> list[Record]:
    """The medians of all turns: speeds, how many times as fast as GLiNER, what many types cost against few."""
    names = {"onoma": name, "gliner": "gliner"}
    figures = {(system, f"{count}_types_sentences_per_s"): values for (system, count), values in speeds.items()}
    for count in COUNTS["gliner"]:
        figures["onoma", f"{count}_types_times_gliner"] = ratios(speeds, ("onoma", count), ("gliner", count))
    fewest, most = min(COUNTS["onoma"]), max(COUNTS["onoma"])
    figures["onoma", f"{most}_types_against_{fewest}"] = ratios(speeds, ("onoma", fewest), ("onoma", most))
    return [
        Record(
            f"{names[system]}/speed-beside-gliner/crossner/{encoder}/{measure}",
            round(statistics.median(values), 3),
            "python benchmarks/gliner_speed.py --data CORPORA",
            data[system],
            encoder=encoder,
            spread=round(statistics.stdev(values), 3) if len(values) > 1 else None,
        )
        for (system, measure), values in figures.items()
    ]


if __name__ == "__main__":
    main()
