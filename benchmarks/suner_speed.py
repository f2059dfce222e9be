"""Speed of SUNER on one GPU (table 4): sentences per second of its three forms and of the bare encoder, in one run.

    python benchmarks/suner_speed.py --two-stage RUN/model --fused RUN/model --one-stage RUN/model --data CORPORA

All read the same batches of sentences of similar length, tokenised before, and output proposals; the types are encoded
once. Batches are read by two threads, as in a service: while one waits for the GPU, the other one prepares.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from onoma.data import Inventory, load_corpus
from onoma.entities import Corpus
from onoma.extractor import load
from onoma.inputs.batches import Batch, bucket_by_length
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.labels.parsing import parse_labels
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

PAPER = {"suner": 159.65, "suner-one-stage": 374.21}  # GENIA, RoBERTa-base, a GeForce RTX 3090

Read = Callable[[Batch], Any]


def batches_of(corpus: Corpus, runtime: Any, size: int, tokens: int) -> list[Batch]:
    """The sentences of a corpus in batches of similar length."""
    config = runtime.config
    packed = PackedTexts.pack([one.text for one in corpus])
    windowed = WindowedTexts.cut(packed, runtime.tokenizer, config.max_tokens, config.overlap)
    return [windowed.batch(rows, runtime.tokenizer) for rows in bucket_by_length(windowed.lengths(), size, tokens)]


def bare_encoder(runtime: Any) -> Read:
    """The encoder alone, in the same precision."""

    @torch.inference_mode()
    def read(batch: Batch) -> Any:
        ids, mask = runtime.copy((batch.ids, batch.mask))
        with runtime.autocast():
            return runtime.model.encode_text(ids, mask)[:, 0, 0].cpu()

    return read


def system(runtime: Any, corpus: Corpus) -> Read:
    """A whole system, asked for the types of the corpus at its own threshold."""
    styled = runtime.with_style(corpus.name)
    query = styled.ask(parse_labels(corpus.types))
    return lambda batch: styled.propose(batch, query, styled.config.threshold)


def seconds(read: Read, batches: Sequence[Batch], threads: int) -> float:
    """How long it takes to read all batches."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, batches))
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    """Measure, print the table, write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--two-stage", required=True, type=Path)
    parser.add_argument("--fused", required=True, type=Path)
    parser.add_argument("--one-stage", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", default="en/genia")
    parser.add_argument("--encoder", default="mpnet-base", help="its name in the records")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch, with padding")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4, help="times that a repeat reads the corpus")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS / "suner_speed.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    folders = {"suner": arguments.two_stage, "suner-fused": arguments.fused, "suner-one-stage": arguments.one_stage}
    runtimes = {name: load(folder, "torch").runtime for name, folder in folders.items() if folder is not None}
    corpus = Inventory.load().unify(load_corpus(arguments.data / arguments.corpus, "test"))
    some = runtimes["suner-fused"]
    batches = batches_of(corpus, some, arguments.batch_size, arguments.tokens) * arguments.rounds
    readers = {"encoder": bare_encoder(some)} | {name: system(one, corpus) for name, one in runtimes.items()}
    times: dict[str, list[float]] = {name: [] for name in readers}
    for read in readers.values():
        seconds(read, batches, arguments.threads)  # warm-up
    for _ in range(arguments.repeats):
        for name, read in readers.items():
            times[name].append(seconds(read, batches, arguments.threads))
    sentences = len(corpus) * arguments.rounds
    bare = statistics.median(times["encoder"])
    text = command(without=["--output"])
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    where = f"test sentences of {corpus.name}, batches of at most {arguments.batch_size}, {arguments.threads} threads"
    records = []
    for name, taken in times.items():
        median = statistics.median(taken)
        speeds = [sentences / one for one in taken]
        print(f"{name:16} {sentences / median:10,.0f} sentences/s, {median / bare:5.2f} times the bare encoder's time")
        for measure, value, spread in (
            ("sentences_per_s", sentences / median, statistics.stdev(speeds)),
            ("times_encoder", median / bare, statistics.stdev([one / bare for one in taken])),
        ):
            metric = f"{name}/speed/{corpus.name}/{arguments.encoder}/{measure}"
            paper = PAPER.get(name) if measure == "sentences_per_s" else None
            records.append(Record(metric, round(value, 3), text, where, paper, arguments.encoder, (), round(spread, 3)))
    write_records(arguments.output, records, accelerator=device)


if __name__ == "__main__":
    main_with_errors(main)
