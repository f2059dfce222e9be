"""The speed of a model on the CPU: against its bare encoder, by labels, and on a document of a million words.

    python benchmarks/speed.py [--model FOLDER] [--texts FILE] [--turns 7]

The figures are those of `onoma bench speed`: numbers of labels and the bare encoder take turns; `..._percent` and
`..._times` are medians over the ratios of each turn, and the ones that end in `_cpu` compare the time of the processor,
which other work on the machine changes less. Documents of 125,000 to 1,000,000 words are each read by a process of
its own, whose memory is recorded; `linear_times` is the time per word of the longest against that of the shortest. It
is measured with the processor's time as well. 100,000 equal emoji are a text whose windows are equal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

import onoma
from onoma.data.texts import read_texts
from onoma.errors import OnomaError
from onoma.evaluation.speed import SpeedSettings, measure_speed, sample_sentences
from onoma.evaluation.speed_tables import render_speed
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

LONG_TEXTS = (125_000, 1_000_000)
EMOJI = 100_000
READ_LONG = """
import json, sys, time
import onoma
from onoma.evaluation.speed import sample_labels, sample_sentences, text_of_length
from onoma.processors import peak_memory
model, threads, words = json.loads(sys.argv[1])
ner = onoma.load(model, threads=threads)
text = "\\U0001f600" * -words if words < 0 else text_of_length(sample_sentences(2000), words)
ner.extract("Tom flew to Paris.", sample_labels(10))
wall, cpu = time.perf_counter(), time.process_time()
found = ner.extract(text, sample_labels(10))
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, peak_memory(), len(found)]))
"""


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder; by default the embedded one")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--texts", help="file to read texts from; by default a sample")
    parser.add_argument("--limit", type=int, default=300, help="texts")
    parser.add_argument("--threads", type=int, help="by default one per usable core")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--label-counts", type=int, nargs="+", default=[1, 10, 100, 1_000, 5_000])
    parser.add_argument("--text-lengths", type=int, nargs="*", default=[10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--long-texts", type=int, nargs="*", default=list(LONG_TEXTS), help="words of long documents")
    parser.add_argument("--output", type=Path, default=RESULTS / "speed.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    texts = sample_sentences(arguments.limit)
    if arguments.texts:
        texts = [one.text for one in islice(read_texts(arguments.texts, by_line=True).documents, arguments.limit)]
    ner = onoma.load(arguments.model, threads=arguments.threads)
    settings = SpeedSettings(
        arguments.label_counts,
        arguments.text_lengths,
        turns=arguments.turns,
        on_progress=lambda doing: print(f"measuring: {doing}", file=sys.stderr, flush=True),
    )
    found = measure_speed(ner, texts, settings)
    Console().print(render_speed(found))
    figures = figures_of(found) | long_texts(arguments.model, arguments.threads, arguments.long_texts)
    encoder = str(found["encoder"]).rpartition("/")[2] or "none"
    source = Path(arguments.texts).name if arguments.texts else "sample sentences"
    data = f"{len(texts)} texts ({source}), {found['threads']} threads, onnxruntime {found['onnxruntime']}"
    records = [
        Record(
            f"{arguments.name}/speed/none/{encoder}/{name}",
            round(value, 4),
            command(without=["--output"]),
            data,
            encoder=encoder,
            spread=None if spread is None else round(spread, 4),
        )
        for name, (value, spread) in figures.items()
    ]
    for record in records:
        print(f"{record.metric:75} {record.value:12,.3f}")
    write_records(arguments.output, records)


def figures_of(found: dict[str, Any]) -> dict[str, tuple[float, float | None]]:
    """Figures with half of the distance between the lowest and the highest turn as spread."""
    figures: dict[str, tuple[float, float | None]] = {}
    if found["bare_encoder"] is not None:
        figures["encoder_sentences_per_s"] = middle(found["bare_encoder"]["sentences_per_second"])
    for row in found["labels"]:
        name = f"{row['labels']}_labels"
        figures[f"{name}_sentences_per_s"] = middle(row["sentences_per_second"])
        figures[f"{name}_words_per_s"] = middle(row["words_per_second"])
        figures |= {f"{name}_{one}_ms": (value, None) for one, value in row["latency_ms"].items()}
        figures[f"{name}_times_of_fewest"] = middle(row["times_of_fewest"])
        figures[f"{name}_times_of_fewest_cpu"] = row["times_of_fewest"]["cpu"], None
        if "share_of_encoder" in row:
            share = {key: 100 * value for key, value in row["share_of_encoder"].items()}
            figures[f"{name}_share_of_encoder_percent"] = middle(share)
            figures[f"{name}_share_of_encoder_cpu_percent"] = share["cpu"], None
    for row in found["text_lengths"]:
        figures[f"{row['words']}_words_words_per_s"] = row["words_per_second"], None
        figures[f"{row['words']}_words_p99_ms"] = row["latency_ms"]["p99"], None
    for row in found["batch_sizes"]:
        figures[f"batch_size_{row['batch_size']}_sentences_per_s"] = middle(row["sentences_per_second"])
    figures["cold_start_s"] = middle(found["cold_start"]["seconds"])
    figures["cold_start_memory_mb"] = found["cold_start"]["peak_memory_mb"], None
    return figures


def middle(rate: dict[str, float]) -> tuple[float, float]:
    """The median, and half of the distance between the lowest and the highest."""
    return rate["median"], (rate["high"] - rate["low"]) / 2


def long_texts(model: str | None, threads: int | None, lengths: list[int]) -> dict[str, tuple[float, None]]:
    """Seconds and memory of long documents, and of many emoji, each in a process of its own."""
    figures, per_word = {}, {}
    for words in sorted(lengths):
        wall, cpu, memory = read_long(model, threads, words)
        per_word[words] = wall / words, cpu / words
        figures |= {f"{words}_words_s": wall, f"{words}_words_memory_mb": memory}
    if len(per_word) > 1:
        shortest, longest = per_word[min(per_word)], per_word[max(per_word)]
        figures["linear_times"], figures["linear_times_cpu"] = (b / a for a, b in zip(shortest, longest, strict=True))
    if lengths:
        figures[f"{EMOJI}_emoji_s"], _, figures[f"{EMOJI}_emoji_memory_mb"] = read_long(model, threads, -EMOJI)
    return {name: (value, None) for name, value in figures.items()}


def read_long(model: str | None, threads: int | None, words: int) -> tuple[float, float, float]:
    """Seconds on the clock and of the processor, and peak megabytes; a negative number of words: so many emoji."""
    print(f"measuring: {'a document of' if words > 0 else 'emoji:'} {abs(words):,}", file=sys.stderr, flush=True)
    asked = json.dumps([model, threads, words])
    ended = subprocess.run([sys.executable, "-c", READ_LONG, asked], capture_output=True, text=True)
    if ended.returncode:
        raise OnomaError(f"a long document cannot be read: {ended.stderr.strip()[-500:]}")
    wall, cpu, memory, _ = json.loads(ended.stdout.splitlines()[-1])
    return wall, cpu, memory


if __name__ == "__main__":
    main_with_errors(main)
