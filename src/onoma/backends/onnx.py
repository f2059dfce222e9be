"""Graphs run by onnxruntime on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from onoma.errors import OnomaError

Floats = NDArray[np.float32]
T = TypeVar("T")
R = TypeVar("R")

_ERRORS_ONLY = 3
_PROCESSORS = Path("/sys/devices/system/cpu")


class OnnxGraph:
    """A loaded graph. It may be run from several threads at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.session = onnxruntime.InferenceSession(os.fspath(path), _options(), providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a kind of its own for each cause
            reason = str(error).strip().split("\n")[0]
            raise OnomaError(f"{path} cannot be loaded ({reason}); export or download the model again") from error

    def run(self, outputs: Sequence[str], **inputs: NDArray[Any]) -> list[Floats]:
        """The wanted outputs for the inputs of the graph."""
        values: list[Floats] = self.session.run(outputs, inputs)
        return values


def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    # One thread a run: small batches side by side need not wait for each other after every operator; see `Workers`.
    options.intra_op_num_threads = 1
    # Our graphs are written as they are to be run: to fuse sums with layer norms, for one, makes them slower.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # Every batch has a shape of its own: a plan of its memory would not serve a second time.
    options.enable_mem_pattern = False
    return options


class Workers:
    """Threads that run small batches side by side: as many as there are physical cores, unless told otherwise.

    Batches that fit into a core's cache, each run by one thread, take half the time of large ones run by all.
    """

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OnomaError(f"threads must be at least 1, got {threads}")
        self.threads = threads or physical_cores()
        self._pool, self._process = self._new_pool(), os.getpid()

    def _new_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="onoma")

    def map(self, function: Callable[[T], R], parts: Sequence[T]) -> Iterable[R]:
        """The results for all parts, in their order."""
        if len(parts) == 1 or self.threads == 1:
            return map(function, parts)
        if self._process != os.getpid():  # a fork: it has none of the threads
            self._pool, self._process = self._new_pool(), os.getpid()
        return self._pool.map(function, parts)


def physical_cores() -> int:
    """How many physical cores this process may use. Two threads on one core only take turns at its arithmetic."""
    try:
        allowed = os.sched_getaffinity(0)
        return len({(_PROCESSORS / f"cpu{cpu}/topology/thread_siblings_list").read_text() for cpu in allowed})
    except (AttributeError, OSError):  # not Linux, or a Linux that does not tell
        return os.cpu_count() or 1
