"""Our CRF beside pytorch-crf on the CPU: `python benchmarks/crf_speed.py`.

Both get the same random emissions, transition scores and gold tags of random BIO mentions, for 64 sentences of 128
words and 17 tags (8 types). Measured are the loss with its gradients for emissions and transitions, and Viterbi
decoding. They alternate in one process, with the same number of threads: one by default, because with tensors this
small more threads are slower. pytorch-crf knows no constraints, so transitions that BIO forbids have a score of -10,000
there. Before measuring, it is checked that both find the same loss, gradients and tags.

Records are

    crf/speed/random/none/times_pytorch_crf            how many times as fast the loss with its gradients is
    crf/speed/random/none/times_pytorch_crf_viterbi    how many times as fast decoding is
    crf/speed/random/none/loss_ms, viterbi_ms          milliseconds of ours
    pytorch-crf/speed/random/none/loss_ms, viterbi_ms  milliseconds of pytorch-crf

each the median over repeats.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torchcrf import CRF

from onoma.errors import OnomaError
from onoma.systems.blocks.crf import Crf
from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.blocks.viterbi import viterbi
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

FORBIDDEN = -10_000.0

Work = Callable[[], Any]


class Task(NamedTuple):
    """The same work for both: each returns what it computed, as arrays."""

    ours: Work
    theirs: Work


def main() -> None:
    """Check, measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--words", type=int, default=128, help="of each sentence")
    parser.add_argument("--types", type=int, default=8, help="each has two tags")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "crf_speed.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    torch.set_num_threads(arguments.threads)
    scheme = TagScheme(arguments.types, "bio")
    tasks = make_tasks(scheme, arguments.sentences, arguments.words, arguments.seed)
    figures = {}
    for name, task in tasks.items():
        check(name, task)
        figures |= summarise(name, *take_turns(task, arguments.repeats))
    data = (
        f"random scores, {arguments.sentences} × {arguments.words} × {scheme.tags} tags, {arguments.threads} threads, "
        f"float32, PyTorch {torch.__version__}, pytorch-crf {version('pytorch-crf')}, median of {arguments.repeats}"
    )
    records = [
        Record(metric, round(value, 3), command(without=["--output"]), data, None, "none", (), round(spread, 3))
        for metric, (value, spread) in figures.items()
    ]
    for record in records:
        print(f"{record.metric:50} {record.value:9.2f} ± {record.spread:.2f}")
    write_records(arguments.output, records)


def make_tasks(scheme: TagScheme, sentences: int, words: int, seed: int) -> dict[str, Task]:
    """The loss with its gradients, and decoding."""
    generator = np.random.default_rng(seed)
    emissions = torch.from_numpy(generator.normal(size=(sentences, words, scheme.tags), scale=2.0)).float()
    lengths = np.full(sentences, words)
    tags = torch.from_numpy(scheme.encode(random_mentions(lengths, scheme.types, generator), lengths, words))
    ours, theirs = crf_pair(scheme, generator)
    mask = torch.ones(sentences, words, dtype=torch.bool)

    def gradients(loss: Callable[[torch.Tensor], torch.Tensor], transitions: torch.Tensor) -> tuple[Any, ...]:
        variables = emissions.detach().requires_grad_(), transitions
        value = loss(variables[0])
        return value.detach(), *torch.autograd.grad(value, variables)

    return {
        "loss": Task(
            lambda: gradients(lambda x: ours.loss(x, tags, torch.from_numpy(lengths)).sum(), ours.transitions),
            lambda: gradients(lambda x: -theirs(x, tags, mask), theirs.transitions),
        ),
        "viterbi": Task(
            lambda: (viterbi(emissions.numpy(), lengths, ours.transition_scores()),),
            lambda: (np.array(theirs.decode(emissions, mask)),),
        ),
    }


def random_mentions(lengths: np.ndarray, types: int, generator: np.random.Generator) -> np.ndarray:
    """About one mention per ten words: rows (window, first word, last word, type)."""
    window = np.repeat(np.arange(len(lengths)), np.maximum(lengths // 10, 1))
    first = generator.integers(0, lengths[window])
    last = np.minimum(first + generator.integers(0, 4, len(window)), lengths[window] - 1)
    return np.stack([window, first, last, generator.integers(0, types, len(window))], axis=1)


def crf_pair(scheme: TagScheme, generator: np.random.Generator) -> tuple[Crf, Any]:
    """Our CRF and that of pytorch-crf with the same scores."""
    ours, theirs = Crf(scheme), CRF(scheme.tags, batch_first=True)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(torch.from_numpy(generator.normal(size=tuple(parameter.shape))))
        parameters = theirs.transitions, theirs.start_transitions, theirs.end_transitions
        for scores, parameter in zip(ours.transition_scores(), parameters, strict=True):
            parameter.copy_(torch.from_numpy(np.maximum(scores, FORBIDDEN)))
    return ours, theirs


def check(name: str, task: Task) -> None:
    """Raise an error unless both compute the same."""
    for one, other in zip(task.ours(), task.theirs(), strict=True):
        if not np.allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-2):
            raise OnomaError(f"{name}: our CRF and pytorch-crf differ. Fix: run tests/systems/blocks")


def take_turns(task: Task, repeats: int) -> tuple[list[float], list[float]]:
    """The seconds of both in each repeat; they alternate."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for work, taken in zip(task, seconds, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return seconds


def summarise(name: str, ours: list[float], theirs: list[float]) -> dict[str, tuple[float, float]]:
    """Medians over repeats and standard deviations, by metric."""
    suffix = "" if name == "loss" else f"_{name}"
    values = {
        f"crf/speed/random/none/times_pytorch_crf{suffix}": [b / a for a, b in zip(ours, theirs, strict=True)],
        f"crf/speed/random/none/{name}_ms": [1000 * one for one in ours],
        f"pytorch-crf/speed/random/none/{name}_ms": [1000 * one for one in theirs],
    }
    return {metric: (statistics.median(each), statistics.stdev(each)) for metric, each in values.items()}


if __name__ == "__main__":
    main_with_errors(main)
