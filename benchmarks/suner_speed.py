"""Speed, size and F1 of SUNER beside BINDER and PUnifiedNER on one GPU (table 4), and of the bare encoder, in one run.

    python benchmarks/suner_speed.py --two-stage RUN/model --fused RUN/model --one-stage RUN/model \\
        --binder RUN/model --punifiedner RUN/model --data CORPORA [--profile FOLDER]

All read batches of sentences of similar length, tokenised before, and output proposals; the types are encoded once.
Batches are read by several threads, as in a service: while one waits for the GPU, the others prepare. The bare encoder
is that of the fused form: the same prepared weights, kernels, prefix, padding, copies and CUDA graphs, but nothing
behind it. PUnifiedNER reads larger batches, of the size with which it is fastest.

With --profile, the folder gets profile.json, with launches of kernels and waits per batch, times by number of threads
and without CUDA graphs, the time of each part of a batch (without CUDA graphs), the same without the kernel for packed
attention, and the time of attention to texts by kernel; and a table of the profiler for each system.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import onoma.systems.suner.torch_runtime as suner_runtime
from onoma.data import Inventory, load_corpus
from onoma.decoding.proposals import Proposals
from onoma.entities import Corpus
from onoma.evaluation.candidates import EvaluationSet
from onoma.extractor import load
from onoma.files import atomic_write
from onoma.inputs.batches import Batch, bucket_by_length
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.labels.parsing import parse_labels
from onoma.systems.blocks.inference import kernel_works
from papers import published_figure
from profiling import (
    Measured,
    Part,
    Read,
    attention_times,
    bare_encoder,
    profile_calls,
    times_of_parts,
    without_graphs,
)
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

ENCODER, TWO_STAGE, FUSED, ONE_STAGE = "encoder", "suner", "suner-fused", "suner-one-stage"
BINDER, PUNIFIEDNER = "binder", "punifiedner"
SUNER = (TWO_STAGE, FUSED, ONE_STAGE)
GENERATOR_REPEATS = 3  # of PUnifiedNER, which is slow
GENERATOR_TOKENS = 1 << 17  # of a batch of PUnifiedNER, with padding
WARM_UPS = 2  # in which each batch occurs often enough for a CUDA graph of its shape


def batches_of(corpus: Corpus, runtime: Any, size: int, tokens: int) -> list[Batch]:
    """The sentences of a corpus in batches of similar length."""
    config = runtime.config
    packed = PackedTexts.pack([one.text for one in corpus])
    windowed = WindowedTexts.cut(packed, runtime.tokenizer, config.max_tokens, config.overlap)
    return [windowed.batch(rows, runtime.tokenizer) for rows in bucket_by_length(windowed.lengths(), size, tokens)]


def versions_of(folder: Path) -> list[Corpus]:
    """The test split of a corpus with the names of types that recipes use: those of the inventory, natural ones."""
    unified = Inventory.load().unify(load_corpus(folder, "test"), keep_unmapped=True)
    return [unified, load_corpus(folder, "test", natural_names=True)]


def with_known_names(versions: Sequence[Corpus], runtime: Any) -> Corpus:
    """The version of a corpus whose types a model was trained on."""
    return max(versions, key=lambda one: sum(name in runtime.config.types for name in one.labels))


def system(runtime: Any, corpus: Corpus) -> Read:
    """A whole system, asked for the types of the corpus at its own threshold."""
    query = runtime.ask(parse_labels(corpus.types))
    return lambda batch: runtime.propose(batch, query, runtime.config.threshold)


def fastest_generator(read: Read, corpus: Corpus, runtime: Any, arguments: argparse.Namespace) -> Measured:
    """PUnifiedNER with the batch size with which it reads the corpus fastest."""
    tried = []
    for size in arguments.generator_batch_sizes:
        batches = batches_of(corpus, runtime, size, GENERATOR_TOKENS)
        read(batches[-1])  # warm-up
        one = Measured(read, batches, 1, min(GENERATOR_REPEATS, arguments.repeats))
        one.seconds.append(one.run(arguments.threads))
        print(f"punifiedner in batches of {size}: {len(corpus) / one.seconds[0]:,.0f} sentences/s", flush=True)
        tried.append(one)
    return min(tried, key=lambda one: one.seconds)


def measure(systems: dict[str, Measured], threads: int) -> None:
    """Take the times; the systems alternate, so that slow moments of the machine affect all of them."""
    for one in systems.values():
        if not one.seconds:
            for _ in range(WARM_UPS):
                one.run(threads)
    while missing := [one for one in systems.values() if len(one.seconds) < one.repeats]:
        for one in missing:
            one.seconds.append(one.run(threads))


def facts(name: str, runtime: Any, corpus: Corpus, batch_size: int, batches: Sequence[Batch]) -> dict[str, float]:
    """Parameters, F1 in percent, and candidates per sentence of systems that have them."""
    found = {
        "parameters": float(sum(one.numel() for one in runtime.model.parameters())),
        "f1": EvaluationSet(corpus, runtime, batch_size=batch_size).evaluate(runtime)["f1"],
    }
    if name in (TWO_STAGE, FUSED):
        threshold = runtime.model.options.detection_threshold
        number = sum(len(runtime.detect(batch, threshold).logit) for batch in batches)
        found["candidates_per_sentence"] = number / len(corpus)
    return found


def ratios(name: str, medians: dict[str, float]) -> dict[str, float]:
    """The speed of a system relative to others; for the encoder, the time relative to its."""
    found = {"times_encoder": medians[ENCODER] / medians[name]}
    if name in SUNER and PUNIFIEDNER in medians:
        found["times_punifiedner"] = medians[name] / medians[PUNIFIEDNER]
    if name == FUSED and TWO_STAGE in medians:
        found["times_two_stage"] = medians[name] / medians[TWO_STAGE]
    return found


def parts_of(runtime: Any) -> list[Part]:
    """The parts of the work of a SUNER."""
    prepared, model = runtime.prepared, runtime.model
    return [
        Part("copy", runtime, "copy"),
        Part("encode", prepared, "encode"),
        Part("detect", prepared, "detect"),
        Part("choose", suner_runtime, "best_spans"),
        Part("choose", suner_runtime, "choose_candidates"),
        Part("markers", prepared, "mark"),
        Part("markers", prepared, "encode_marked"),
        Part("match", model, "match_markers" if model.options.form == "fused" else "match"),
        Part("copy back", runtime, "fetch"),
        Part("proposals", suner_runtime, "proposals"),
    ]


def profile_kernel(one: Measured, runtime: Any) -> dict[str, Any]:
    """Whether markers have a kernel of their own, how much it changes scores, and the time of parts without it."""
    transformer = runtime.prepared.transformer
    found = [_scores(one.read(batch)) for batch in one.batches]
    with patch("onoma.systems.blocks.inference.kernel_works", return_value=False):
        padded = [_scores(one.read(batch)) for batch in one.batches]
        times = times_of_parts(one.read, one.batches, parts_of(runtime))
    both = [(own[key], other[key]) for own, other in zip(found, padded, strict=True) for key in own.keys() & other]
    return {
        "works": kernel_works(runtime.device, transformer.dtype, head_size(transformer)) or why_not(runtime),
        "proposals": sum(map(len, found)),
        "proposals_of_both": len(both),
        "largest_score_difference": max((abs(own - other) for own, other in both), default=0.0),
        "parts_ms_without": times,
    }


def why_not(runtime: Any) -> str:
    """Why the kernel does not work."""
    try:
        from onoma.systems.blocks.packed_attention_kernel import try_kernel

        try_kernel(runtime.device, runtime.prepared.dtype, head_size(runtime.prepared.transformer))
    except Exception as error:
        return f"no: {error!r}"
    return "no: the size of heads"


def _scores(found: Proposals) -> dict[tuple[int, ...], float]:
    keys = zip(*(column.tolist() for column in found[:4]), strict=True)
    return dict(zip(keys, found.score.tolist(), strict=True))


def head_size(transformer: Any) -> int:
    """The size of an attention head."""
    return int(transformer.words.shape[1]) // int(transformer.heads)


def by_threads(systems: dict[str, Measured], runtimes: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Milliseconds per batch by number of threads, and without CUDA graphs, then also with cuDNN's attention."""
    chosen = {name: systems[name] for name in (ENCODER, FUSED, TWO_STAGE)}
    found = {
        f"{threads} threads": {name: one.batch_ms(one.run(threads)) for name, one in chosen.items()}
        for threads in (1, 2, 3, 4)
    }
    with without_graphs(runtimes.values()):
        found["3 threads without graphs"] = {name: one.batch_ms(one.run(3)) for name, one in chosen.items()}
        torch.backends.cuda.enable_cudnn_sdp(True)
        for _ in range(2):  # the first one is a warm-up
            found["3 threads with cuDNN"] = {name: one.batch_ms(one.run(3)) for name, one in chosen.items()}
        torch.backends.cuda.enable_cudnn_sdp(False)
    return found


def write_profile(folder: Path, systems: dict[str, Measured], runtimes: dict[str, Any]) -> None:
    """See the option --profile."""
    folder.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"batch_ms": by_threads(systems, runtimes)}
    for name, one in systems.items():
        if name == PUNIFIEDNER:
            continue
        report[name], table = profile_calls(one.read, one.batches)
        report[name]["batch_ms"] = one.batch_ms(statistics.median(one.seconds))  # as measured, without the profiler
        (folder / f"profile_{name}.txt").write_text(table, encoding="utf-8")
        if name in (TWO_STAGE, FUSED):
            report[name]["graphs"] = len(runtimes[name].graphs.graphs)
            with without_graphs([runtimes[name]]):
                report[name]["parts_ms"] = times_of_parts(one.read, one.batches, parts_of(runtimes[name]))
    fused = systems[FUSED]
    report["budgets"] = [[*shapes[0], *most, *most.with_room()] for shapes, most in runtimes[FUSED].budgets.items()]
    prefix, transformer = len(runtimes[FUSED].prefix), runtimes[FUSED].prepared.transformer
    shapes = [(len(batch.ids), batch.ids.shape[1] + prefix) for batch in fused.batches]
    report["batches"] = [list(shape) for shape in shapes]
    report["attention_ms"] = attention_times(shapes, transformer.heads, head_size(transformer))
    with without_graphs([runtimes[FUSED]]):
        report["kernel"] = profile_kernel(fused, runtimes[FUSED])
    with atomic_write(folder / "profile.json") as file:
        json.dump(report, file, indent=1)
    print(json.dumps(report, indent=1))


def options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--two-stage", required=True, type=Path)
    parser.add_argument("--fused", required=True, type=Path)
    parser.add_argument("--one-stage", type=Path)
    parser.add_argument("--binder", type=Path)
    parser.add_argument("--punifiedner", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", default="en/genia")
    parser.add_argument("--encoder", default="mpnet-base", help="its name in the records")
    parser.add_argument("--t5", default="flan-t5-base", help="the name of PUnifiedNER's T5 in the records")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch, with padding")
    parser.add_argument("--generator-batch-sizes", type=int, nargs="+", default=[512, 1024], help="of PUnifiedNER")
    parser.add_argument("--repeats", type=int, default=5, help="at least 2, for a spread")
    parser.add_argument("--rounds", type=int, default=4, help="times that a repeat reads the corpus")
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--profile", type=Path, help="a folder for profiles")
    parser.add_argument("--output", type=Path, default=RESULTS / "suner_speed.json")
    return parser.parse_args()


def main() -> None:
    """Measure, print the table, write the records."""
    arguments = options()
    commit_for(arguments.output)
    folders = {
        TWO_STAGE: arguments.two_stage,
        FUSED: arguments.fused,
        ONE_STAGE: arguments.one_stage,
        BINDER: arguments.binder,
        PUNIFIEDNER: arguments.punifiedner,
    }
    versions = versions_of(arguments.data / arguments.corpus)
    loaded = {name: load(folder, "torch").runtime for name, folder in folders.items() if folder is not None}
    runtimes: dict[str, Any] = {name: runtime.with_style(versions[0].name) for name, runtime in loaded.items()}
    systems: dict[str, Measured] = {}
    for name, runtime in runtimes.items():
        corpus = with_known_names(versions, runtime)
        read = system(runtime, corpus)
        if name == PUNIFIEDNER:
            systems[name] = fastest_generator(read, corpus, runtime, arguments)
            continue
        batches = batches_of(corpus, runtime, arguments.batch_size, arguments.tokens)
        systems[name] = Measured(read, batches, arguments.rounds, arguments.repeats)
        if name == FUSED:
            systems[ENCODER] = Measured(bare_encoder(runtime), batches, arguments.rounds, arguments.repeats)
    measure(systems, arguments.threads)
    report(systems, runtimes, versions, arguments)
    if arguments.profile is not None:
        write_profile(arguments.profile, systems, runtimes)


def report(
    systems: dict[str, Measured], runtimes: dict[str, Any], versions: Sequence[Corpus], arguments: argparse.Namespace
) -> None:
    """Print the table and write the records."""
    text = command(without=["--output", "--profile"])
    corpus_name, sentences = versions[0].name, len(versions[0])
    speeds = {name: one.speeds(sentences) for name, one in systems.items()}
    medians = {name: statistics.median(own) for name, own in speeds.items()}
    records = []
    for name, one in systems.items():
        values = {"sentences_per_s": medians[name], **ratios(name, medians)}
        size = max(len(batch.ids) for batch in one.batches)
        if name in runtimes:
            corpus = with_known_names(versions, runtimes[name])
            values |= facts(name, runtimes[name], corpus, size, one.batches)
        print(f"{name:16}", ", ".join(f"{measure} {value:,.2f}" for measure, value in values.items()), flush=True)
        encoder = arguments.t5 if name == PUNIFIEDNER else arguments.encoder
        where = f"test sentences of {corpus_name}, batches of at most {size}, {arguments.threads} threads"
        spread = {"sentences_per_s": statistics.stdev(speeds[name])}
        spread["times_encoder"] = statistics.stdev([medians[ENCODER] / speed for speed in speeds[name]])
        for measure, value in values.items():
            metric = f"{name}/speed/{corpus_name}/{encoder}/{measure}"
            paper = published_figure(metric)
            deviation = round(spread[measure], 3) if measure in spread else None
            records.append(Record(metric, round(value, 3), text, where, paper, encoder, (), deviation))
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    write_records(arguments.output, records, accelerator=device)


if __name__ == "__main__":
    main_with_errors(main)
