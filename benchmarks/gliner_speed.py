"""Sentences per second on the CPU, beside GLiNER on the same encoder, in one run, with the same number of threads.

    pip install gliner==0.2.29  # not a dependency of Onoma; best in an environment of its own
    python benchmarks/gliner_speed.py --data CORPORA [--encoder FOLDER]

Both read the same sentences of CrossNER and are asked for the same 10 and 100 types; Onoma also for 5 and 1,000. They
alternate after a warm-up; the best turn counts, because other work on the machine can only slow down. GLiNER runs in
float32 with PyTorch, with the sizes of its published small model and untrained heads: at its threshold they find
nothing, which saves it the decoding of entities, and nothing else of its speed depends on its training. It gets its
best batch size, and is measured twice: with the sentences in their order, and sorted by length, which saves padding
(Onoma sorts by itself). Onoma runs in int8 with onnxruntime.
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
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from suites import SUITES

CROSSNER = tuple(name for name in SUITES["benchmarks"]["en"].sets if name.startswith("crossner_"))
COUNTS = {"onoma": (5, 10, 100, 1000), "gliner": (10, 100), "gliner-sorted": (10, 100)}
OTHERS = ("gliner", "gliner-sorted")
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
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--encoder", default=None, help="folder of its encoder, for GLiNER; by default from the hub")
    parser.add_argument("--limit", type=int, default=24, help="sentences of each set")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--output", type=Path, default=RESULTS / "gliner_speed.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    corpora = [load_corpus(arguments.data / "en" / name, "test", natural_names=True) for name in CROSSNER]
    texts, labels = sentences(corpora, arguments.limit), label_names(corpora, max(COUNTS["onoma"]))
    model = onoma.load(arguments.model, "onnx", threads=arguments.threads)
    gliner = build_gliner(arguments.encoder or model.config.encoder, arguments.threads)
    readers = {("onoma", count): reader(model, labels[:count]) for count in COUNTS["onoma"]}
    batch_sizes = {}
    for system, count in asked_of_others():
        read = partial(gliner, labels[:count], sort=system == "gliner-sorted")
        batch_sizes[system, count] = best_batch_size(read, texts[::4])
        readers[system, count] = partial(read, batch_size=batch_sizes[system, count])
    found = {asked: sum(map(len, read(texts))) for asked, read in readers.items()}  # warms up
    speeds = take_turns(readers, texts, arguments.turns)
    Console().print(table(speeds))
    setting = (
        f"{len(texts)} test sentences of the five sets, {arguments.threads} threads, best of {arguments.turns} turns"
    )
    data = {"onoma": f"{setting}; int8, types encoded before; {told(found, 'onoma')}"}
    data |= {name: f"{setting}; {gliner_data(name, batch_sizes)}; {told(found, name)}" for name in OTHERS}
    encoder = model.config.encoder.rpartition("/")[2]
    write_records(arguments.output, records(speeds, data, arguments.name, encoder))


def sentences(corpora: Sequence[Corpus], limit: int) -> list[str]:
    """As many sentences of each set, drawn from all of it, in the order of the corpora."""
    chosen = [sorted(random.Random(0).sample(range(len(corpus)), min(limit, len(corpus)))) for corpus in corpora]
    return [corpus.documents[place].text for corpus, places in zip(corpora, chosen, strict=True) for place in places]


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


def asked_of_others() -> list[Asked]:
    """How many types GLiNER is asked for, in both orders of the sentences."""
    return [(system, count) for system in OTHERS for count in COUNTS[system]]


def reader(model: onoma.Extractor, labels: list[str]) -> Read:
    """Onoma, asked for some types at its own threshold."""
    return lambda texts: model.extract(texts, labels)


def build_gliner(encoder: str, threads: int) -> Callable[..., list[list[Any]]]:
    """GLiNER on an encoder, as a function of labels and texts."""
    package = import_gliner()
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    # What its configuration leaves out is as in its published small model: markerV0, 12 words, size 512, one LSTM.
    model = package.GLiNER.from_config(package.GLiNERConfig(model_name=encoder))

    def read(labels: list[str], texts: list[str], *, batch_size: int, sort: bool) -> list[list[Any]]:
        texts = sorted(texts, key=len) if sort else texts
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


def best_batch_size(read: Callable[..., list[list[Any]]], texts: list[str]) -> int:
    """The batch size that takes least time for some of the texts."""
    times = {size: min(seconds(partial(read, batch_size=size), texts) for _ in range(2)) for size in BATCH_SIZES}
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


def times(speeds: Mapping[Asked, list[float]], one: Asked, other: Asked) -> float:
    """How many times as fast one is as the other, each in its best turn."""
    return max(speeds[one]) / max(speeds[other])


def told(found: Mapping[Asked, int], system: str) -> str:
    """How many entities a system found, by the number of types."""
    counts = ", ".join(f"{found[system, count]:,} with {count:,} types" for count in COUNTS[system])
    return f"entities found: {counts}"


def gliner_data(system: str, batch_sizes: Mapping[Asked, int]) -> str:
    """What was measured of GLiNER."""
    package, torch = import_gliner(), importlib.import_module("torch")
    sizes = " and ".join(f"{batch_sizes[system, count]} for {count} types" for count in COUNTS[system])
    return (
        f"GLiNER {package.__version__}, PyTorch {torch.__version__}, float32, untrained heads, "
        f"threshold {GLINER_THRESHOLD}, best batch sizes: {sizes}"
    )


def table(speeds: Mapping[Asked, list[float]]) -> Table:
    """A line for each number of types: the best turns, in brackets the medians, and how many times as fast Onoma is."""
    shown = Table("types", "Onoma, sentences/s", *(word for name in OTHERS for word in (name, "times")))
    for count in COUNTS["onoma"]:
        ours = "onoma", count
        cells = [f"{count:,}", speed_cell(speeds[ours])]
        for asked in ((name, count) for name in OTHERS):
            cells += [speed_cell(speeds[asked]), f"{times(speeds, ours, asked):.1f}"] if asked in speeds else ["", ""]
        shown.add_row(*cells)
    return shown


def speed_cell(values: Sequence[float]) -> str:
    """The best, and in brackets the median."""
    return f"{max(values):,.1f} ({statistics.median(values):,.1f})"


def records(speeds: Mapping[Asked, list[float]], data: Mapping[str, str], name: str, encoder: str) -> list[Record]:
    """The best of all turns: speeds, how many times as fast as GLiNER, what many types cost against few."""
    figures: dict[tuple[str, str], tuple[float, float | None]] = {
        (system, f"{count}_types_sentences_per_s"): (max(values), statistics.stdev(values) if values[1:] else None)
        for (system, count), values in speeds.items()
    }
    for other, count in asked_of_others():
        figures["onoma", f"{count}_types_times_{other}"] = times(speeds, ("onoma", count), (other, count)), None
    fewest, most = min(COUNTS["onoma"]), max(COUNTS["onoma"])
    figures["onoma", f"{most}_types_against_{fewest}"] = times(speeds, ("onoma", fewest), ("onoma", most)), None
    return [
        Record(
            f"{name if system == 'onoma' else system}/speed-beside-gliner/crossner/{encoder}/{measure}",
            round(value, 3),
            command(without=["--output"]),
            data[system],
            encoder=encoder,
            spread=None if spread is None else round(spread, 3),
        )
        for (system, measure), (value, spread) in figures.items()
    ]


if __name__ == "__main__":
    main_with_errors(main)
