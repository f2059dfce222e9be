"""Where the time of a runtime goes: parts of its work, kernels, launches, and how often the CPU waits for the GPU.

Needs nothing but PyTorch.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")  # and those with "Ex" and the like at the end
WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cudaMemcpy")
COPIES = ("cudaMemcpyAsync",)


Read = Callable[[Any], Any]
"""Reads a batch."""


@dataclass(slots=True)
class Measured:
    """What is measured: a function that reads batches, and the times of reading all of them."""

    read: Read
    batches: Sequence[Any]
    rounds: int  # times that a repeat reads the corpus
    repeats: int
    seconds: list[float] = field(default_factory=list)

    def run(self, threads: int) -> float:
        """How long it takes to read all batches."""
        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(self.read, list(self.batches) * self.rounds))
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter() - start

    def batch_ms(self, seconds: float) -> float:
        """Milliseconds per batch, if reading all of them takes so long."""
        return 1e3 * seconds / (self.rounds * len(self.batches))

    def speeds(self, sentences: int) -> list[float]:
        """Sentences per second of each repeat."""
        return [self.rounds * sentences / one for one in self.seconds]


def bare_encoder(runtime: Any) -> Read:
    """The encoder of a fused SUNER alone, on the texts as that reads them."""

    def encode(ids: Tensor, mask: Tensor) -> tuple[Tensor]:
        return (runtime.prepared.transformer.encode(ids, mask)[:, 0, 0].float(),)

    @torch.inference_mode()
    def read(batch: Any) -> Any:
        prefixed = batch.with_prefix(runtime.prefix)
        arrays, shapes = (prefixed.ids, prefixed.mask), runtime.rounded_shapes(runtime.prepared, prefixed)[:2]
        fetched = runtime.run_captured("encoder", encode, arrays, shapes)
        if fetched is None:
            with runtime.launching:
                fetched = runtime.fetch(*encode(*runtime.copy(arrays)))
        return fetched()

    return read


@contextmanager
def without_graphs(runtimes: Iterable[Any]) -> Iterator[None]:
    """Use no CUDA graphs for inference."""
    graphs = [runtime.graphs for runtime in runtimes]
    enabled = [one.enabled for one in graphs]
    try:
        for one in graphs:
            one.enabled = False
        yield
    finally:
        for one, before in zip(graphs, enabled, strict=True):
            one.enabled = before


class Part(NamedTuple):
    """A function that belongs to a part of the work: an attribute of an object or module."""

    name: str
    owner: Any
    attribute: str


def profile_calls(read: Callable[[Any], Any], batches: Sequence[Any]) -> tuple[dict[str, float], str]:
    """What is counted per batch, and the profiler's table of operators and kernels; one batch after the other."""
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        start = time.perf_counter()
        for batch in batches:
            read(batch)
        _synchronize()
        seconds = time.perf_counter() - start
    events: Any = profiler.key_averages()
    number = len(batches)
    counts = {
        "wall_ms": 1e3 * seconds / number,  # with the profiler, which slows the CPU
        "gpu_ms": sum(one.self_device_time_total for one in events if one.device_type.name != "CPU") / number / 1e3,
        "operators": sum(one.count for one in events if one.key.startswith("aten::")) / number,
        "launches": _count(events, lambda key: key.startswith(LAUNCHES)) / number,
        "waits": _count(events, lambda key: key in WAITS) / number,
        "copies": _count(events, lambda key: key in COPIES) / number,
    }
    order = "self_device_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    return counts, str(events.table(sort_by=order, row_limit=40, max_name_column_width=90))


def _count(events: Any, wanted: Callable[[str], bool]) -> int:
    return sum(one.count for one in events if wanted(one.key))


def times_of_parts(read: Callable[[Any], Any], batches: Sequence[Any], parts: Sequence[Part]) -> dict[str, float]:
    """Milliseconds of each part per batch, each from an idle GPU to an idle GPU, and of all the rest.

    They add up to more than a batch takes otherwise, because nothing overlaps.
    """
    times: defaultdict[str, float] = defaultdict(float)
    with _timed(parts, times):
        _synchronize()
        start = time.perf_counter()
        for batch in batches:
            read(batch)
        _synchronize()
        times["rest"] = time.perf_counter() - start - sum(times.values())
    return {name: 1e3 * seconds / len(batches) for name, seconds in times.items()}


@contextmanager
def _timed(parts: Sequence[Part], times: dict[str, float]) -> Iterator[None]:
    before = [(part, getattr(part.owner, part.attribute)) for part in parts]
    try:
        for part, function in before:
            setattr(part.owner, part.attribute, partial(_timed_call, function, part.name, times))
        yield
    finally:
        for part, function in before:
            setattr(part.owner, part.attribute, function)


def _timed_call(function: Callable[..., Any], name: str, times: dict[str, float], *arguments: Any, **named: Any) -> Any:
    _synchronize()
    start = time.perf_counter()
    result = function(*arguments, **named)
    _synchronize()
    times[name] += time.perf_counter() - start
    return result


def attention_times(shapes: Sequence[tuple[int, int]], heads: int, size: int, repeats: int = 20) -> dict[str, Any]:
    """Milliseconds of attention with a bias, as layers call it, by shape (texts, tokens) and kernel; only on GPUs.

    The first call of a shape is listed by itself: some kernels are then built.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if not torch.cuda.is_available():
        return {}
    found: dict[str, Any] = {}
    for texts, tokens in shapes:
        together = torch.randn(texts, tokens, 3, heads, size, device="cuda", dtype=torch.bfloat16)
        query, key, value = together.transpose(1, 3).unbind(2)
        rows = -(-tokens // 16) * 16
        bias = torch.randn(texts, heads, tokens, rows, device="cuda", dtype=torch.bfloat16)[..., :tokens]
        attend = partial(torch.nn.functional.scaled_dot_product_attention, query, key, value, attn_mask=bias)
        times: dict[str, list[float] | str] = {}
        for backend in (SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            try:
                with sdpa_kernel(backend):
                    times[backend.name] = [event_ms(attend, 1), event_ms(attend, repeats)]
            except RuntimeError as error:
                times[backend.name] = str(error).splitlines()[0]
        times["default"] = [event_ms(attend, 1), event_ms(attend, repeats)]
        found[f"{texts}x{tokens}"] = times
    return found


def event_ms(call: Callable[[], Any], repeats: int) -> float:
    torch.cuda.synchronize()
    make_event: Any = torch.cuda.Event
    events = [make_event(enable_timing=True) for _ in range(2)]
    events[0].record()
    for _ in range(repeats):
        call()
    events[1].record()
    torch.cuda.synchronize()
    return float(events[0].elapsed_time(events[1])) / repeats


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
