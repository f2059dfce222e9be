"""ONNX graphs run by onnxruntime on the CPU, and the threads that run them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import get_ident
from typing import Any, TypeVar

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from onoma.errors import DataError, OnomaError
from onoma.locks import renew_after_fork
from onoma.processors import usable_cores

Floats = NDArray[np.float32]
T = TypeVar("T")
R = TypeVar("R")

_ERRORS_ONLY = 3
_ABANDONED: list[Any] = []  # sessions that are never used again, nor deleted, because deleting would need their locks


class OnnxSession:
    """A loaded graph. It may be run from several threads at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not os.path.isfile(path):
            raise OnomaError(f"{path} does not exist, which the onnx backend needs. Fix: make it with `onoma export`")
        self.path = os.fspath(path)
        self._running: set[int] = set()  # threads
        self._load()
        self.outputs = frozenset(one.name for one in self.session.get_outputs())
        renew_after_fork(self)

    def _load(self) -> None:
        with self._errors("be loaded"):
            self.session = onnxruntime.InferenceSession(self.path, _options(), providers=["CPUExecutionProvider"])

    def renew(self) -> None:
        """Load the graph again before it is run, if it was running when the process forked: it may have held locks."""
        if self._running:
            _ABANDONED.append(self.session)
            self._running, self.session = set(), None

    def run(self, outputs: Sequence[str], **inputs: NDArray[Any]) -> list[Floats]:
        """Some outputs of the graph for its inputs."""
        if self.session is None:
            self._load()
        thread = get_ident()
        self._running.add(thread)
        try:
            with self._errors("be run with this tokenizer.json and config.json"):
                values: list[Floats] = self.session.run(outputs, inputs)
                return values
        finally:
            self._running.discard(thread)

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # onnxruntime has an exception type of its own for each cause
            reason = str(error).strip().split("\n")[0]
            fix = "export or download the model again"
            raise DataError(f"the graph cannot {action} ({reason:.300})", path=self.path, fix=fix) from error


def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    # One thread per run: small batches that run side by side need no synchronisation between operators.
    options.intra_op_num_threads = 1
    # Our graphs are written as they should run; further fusions (of sums and layer norms) make them slower.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # Every batch has another shape, so a memory plan would not be reused.
    options.enable_mem_pattern = False
    return options


class WorkerThreads:
    """Threads that run small batches side by side, by default one per usable core.

    Small batches that stay in a core's cache, each run by one thread, take half the time of large ones run by all.
    """

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OnomaError(f"threads must be at least 1, got {threads}")
        self.threads = threads or usable_cores()
        self._pool, self._process = self._new_pool(), os.getpid()

    def _new_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="onoma")

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        """The results for all items, in their order."""
        if len(items) == 1 or self.threads == 1:
            return map(function, items)
        if self._process != os.getpid():  # after a fork the threads do not exist
            self._pool, self._process = self._new_pool(), os.getpid()
        return self._pool.map(function, items)
