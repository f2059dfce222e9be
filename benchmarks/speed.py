"""The speed of a model on the CPU: against its bare encoder, by labels, and on a document of a million words.

    python benchmarks/speed.py [--model FOLDER] [--texts FILE] [--turns 15]

The figures are those of `onoma bench speed`: all numbers of labels and the bare encoder take turns within one run.
Values are medians over the turns, with the number of turns, their range and standard deviation; `..._percent` and
`..._times` are ratios within a turn. `cpu` in a name is the time of the processor, in all threads, which other work on
the machine changes less.

Long documents are each read by a process of its own, whose memory is recorded, in turns as well; `linear_times` is the
time per word of the longest against that of the shortest. 100,000 equal emoji are a text whose windows are equal;
mixed ones are not, and `mixed_emoji_linear_times` compares 100,000 of these with 10,000.

A run replaces all records of the model that an earlier one has written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

import onoma
from onoma.data.texts import read_texts
from onoma.errors import OnomaError
from onoma.evaluation.speed import COLD_STARTS, SpeedSettings, measure_speed, sample_sentences
from onoma.evaluation.speed_tables import render_speed
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

RATES = {
    "sentences_per_second": "sentences_per_s",
    "words_per_second": "words_per_s",
    "cpu_ms_per_sentence": "cpu_ms_per_sentence",
}
LENGTH_RATES = {"words_per_second": "words_per_s", "cpu_us_per_word": "cpu_us_per_word"}
QUANTILES = ("p50", "p99", "max")
LONG_TEXTS = (125_000, 1_000_000)
EMOJI = 100_000
MIXED_EMOJI = (10_000, 100_000)
READ_LONG = """
import json, random, sys, time
import onoma
from onoma.evaluation.speed import sample_labels, sample_sentences, text_of_length
from onoma.processors import peak_memory
model, threads, kind, length = json.loads(sys.argv[1])
if kind == "words":
    text = text_of_length(sample_sentences(2000), length)
else:
    codes = range(0x1F600, 0x1F601 if kind == "emoji" else 0x1F640)
    text = "".join(map(chr, random.Random(0).choices(codes, k=length)))
ner = onoma.load(model, threads=threads)
ner.extract("Tom flew to Paris.", sample_labels(10))
wall, cpu = time.perf_counter(), time.process_time()
ner.extract(text, sample_labels(10))
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, peak_memory()]))
"""


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder; by default the embedded one")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--texts", help="file to read texts from; by default a sample")
    parser.add_argument("--limit", type=int, default=300, help="texts")
    parser.add_argument("--threads", type=int, help="by default one per usable core")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--label-counts", type=int, nargs="+", default=[1, 10, 100, 1_000, 5_000])
    parser.add_argument("--text-lengths", type=int, nargs="*", default=[10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--long-texts", type=int, nargs="*", default=list(LONG_TEXTS), help="words of long documents")
    parser.add_argument("--long-turns", type=int, default=3, help="of long documents and emoji")
    parser.add_argument("--note", help="what else there is to say about this run, for the records")
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
    encoder = str(found["encoder"]).rpartition("/")[2] or "none"
    source = Path(arguments.texts).name if arguments.texts else "sample sentences"
    data = f"{len(texts)} texts ({source}), {found['threads']} threads, onnxruntime {found['onnxruntime']}"
    data += f"; {arguments.note}" * bool(arguments.note)
    family = f"{arguments.name}/speed/none/{encoder}"
    pasted = command(without=["--output"])
    records = [
        *records_of(found, family, pasted, data, encoder),
        *(
            Record.of_turns(f"{family}/{name}", values, pasted, data, encoder)
            for name, values in long_texts(
                arguments.model, arguments.threads, arguments.long_texts, arguments.long_turns
            ).items()
        ),
    ]
    for record in records:
        print(f"{record.metric:75} {record.value:12,.3f}")
    write_records(arguments.output, records, family=f"{arguments.name}/speed/none/*")


def records_of(found: dict[str, Any], family: str, pasted: str, data: str, encoder: str) -> Iterator[Record]:
    """All figures of `measure_speed`."""
    for name, (value, calls) in single_figures(found).items():
        described = data if calls is None else f"{data}; {calls} calls"
        yield Record(f"{family}/{name}", round(value, 4), pasted, described, encoder=encoder)
    for name, summary in figures_of_turns(found).items():
        turns = COLD_STARTS if name == "cold_start_s" else found["turns"]
        ends = round(summary["low"], 4), round(summary["high"], 4)
        spread = None if summary["deviation"] is None else round(summary["deviation"], 4)
        metric, median = f"{family}/{name}", round(summary["median"], 4)
        yield Record(metric, median, pasted, data, encoder=encoder, spread=spread, turns=turns, range=ends)


def figures_of_turns(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Median, range and deviation of what was measured in turns."""
    figures: dict[str, dict[str, Any]] = {}
    rows = {f"{row['labels']}_labels": row for row in found["labels"]}
    rows |= {f"batch_size_{row['batch_size']}": row for row in found["batch_sizes"]}
    if found["bare_encoder"] is not None:
        rows = {"encoder": found["bare_encoder"]} | rows
    for name, row in rows.items():
        figures |= {f"{name}_{short}": row[key] for key, short in RATES.items()}
        if "times_of_fewest" in row:
            figures[f"{name}_times_of_fewest"] = row["times_of_fewest"]
            figures[f"{name}_times_of_fewest_cpu"] = row["times_of_fewest"]["cpu"]
        if "share_of_encoder" in row:
            figures[f"{name}_share_of_encoder_percent"] = percent(row["share_of_encoder"])
            figures[f"{name}_share_of_encoder_cpu_percent"] = percent(row["share_of_encoder"]["cpu"])
    return figures | {"cold_start_s": found["cold_start"]["seconds"]}


def percent(summary: dict[str, Any]) -> dict[str, Any]:
    """Shares in percent."""
    keys = ("median", "low", "high", "deviation")
    return {key: None if summary[key] is None else 100 * summary[key] for key in keys}


def single_figures(found: dict[str, Any]) -> dict[str, tuple[float, int | None]]:
    """What was not measured in turns: latencies, with their number of calls, and memory."""
    figures: dict[str, tuple[float | None, int | None]] = {}
    rows = {f"{row['labels']}_labels": row for row in found["labels"]}
    rows |= {f"batch_size_{row['batch_size']}": row for row in found["batch_sizes"]}
    rows |= {f"{row['words']}_words": row for row in found["text_lengths"]}
    for name, row in rows.items():
        latency = row["latency_ms"]
        figures |= {f"{name}_{key}_ms": (latency[key], latency["calls"]) for key in QUANTILES if key in latency}
        figures[f"{name}_memory_mb"] = row.get("peak_memory_mb"), None
    for row in found["text_lengths"]:
        figures |= {f"{row['words']}_words_{key}": (row[name], None) for name, key in LENGTH_RATES.items()}
    figures["cold_start_memory_mb"] = found["cold_start"]["peak_memory_mb"], None
    return {name: (value, calls) for name, (value, calls) in figures.items() if value is not None}


def long_texts(model: str | None, threads: int | None, lengths: Sequence[int], turns: int) -> dict[str, list[float]]:
    """Seconds and memory of long documents and of many emoji in each turn, each in a process of its own."""
    if not lengths:
        return {}
    sizes = {"words": sorted(lengths), "emoji": [EMOJI], "mixed_emoji": list(MIXED_EMOJI)}
    figures: defaultdict[str, list[float]] = defaultdict(list)
    for turn in range(turns):
        for kind, counts in sizes.items():
            per_unit = []
            for count in counts:
                print(f"measuring: {count:,} {kind}, turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
                wall, cpu, memory = read_long(model, threads, kind, count)
                for name, value in (("s", wall), ("cpu_s", cpu), ("memory_mb", memory)):
                    figures[f"{count}_{kind}_{name}"].append(value)
                per_unit.append((wall / count, cpu / count))
            if len(counts) > 1:
                prefix = "" if kind == "words" else f"{kind}_"
                for name, shortest, longest in zip(("", "_cpu"), per_unit[0], per_unit[-1], strict=True):
                    figures[f"{prefix}linear_times{name}"].append(longest / shortest)
    return figures


def read_long(model: str | None, threads: int | None, kind: str, count: int) -> tuple[float, float, float]:
    """Seconds on the clock and of the processor, and peak megabytes, for a text of so many words or emoji."""
    settings = json.dumps([model, threads, kind, count])
    ended = subprocess.run([sys.executable, "-c", READ_LONG, settings], capture_output=True, text=True)
    if ended.returncode:
        raise OnomaError(f"a long document cannot be read: {ended.stderr.strip()[-500:]}")
    wall, cpu, memory = json.loads(ended.stdout.splitlines()[-1])
    return wall, cpu, memory


if __name__ == "__main__":
    main_with_errors(main)
