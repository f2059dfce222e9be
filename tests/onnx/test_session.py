"""Graphs run by onnxruntime, and the threads that run them."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import onnxruntime
import pytest

from onoma import OnomaError
from onoma.onnx.session import OnnxSession, WorkerThreads
from onoma.onnx.writer import GraphInput, GraphWriter

GENERATOR = np.random.default_rng(0)
TABLE = GENERATOR.normal(size=(50, 24)).astype(np.float32)
WEIGHT = GENERATOR.normal(size=(24, 16)).astype(np.float32)


def write_graph(path: Path, *, int8: bool = False) -> Path:
    """ids -> rows of the table -> a linear layer."""
    graph = GraphWriter(int8=int8)
    inputs = {"ids": GraphInput(("texts", "tokens"))}
    graph.save(path, inputs, {"out": graph.linear(graph.embedding(TABLE, "ids"), WEIGHT)})
    return path


def test_int8_graphs_run_on_the_cpu_with_variable_shapes(tmp_path: Path) -> None:
    session = OnnxSession(write_graph(tmp_path / "a.onnx", int8=True)).session
    assert [one.shape for one in session.get_inputs()] == [["texts", "tokens"]]
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_several_threads_may_run_a_graph_at_once(tmp_path: Path) -> None:
    graph = OnnxSession(write_graph(tmp_path / "a.onnx"))
    inputs = [np.random.default_rng(seed).integers(0, 50, (seed + 1, 5)) for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(lambda ids: graph.run(["out"], ids=ids)[0], inputs))
    for ids, out in zip(inputs, outputs, strict=True):
        np.testing.assert_allclose(out, TABLE[ids] @ WEIGHT, atol=1e-5)


def test_worker_threads_keep_the_order_and_run_side_by_side() -> None:
    workers = WorkerThreads(3)
    barrier = Barrier(3, timeout=10)  # opens only when three threads wait at once
    assert list(workers.map(lambda number: (barrier.wait(), number * number)[1], [1, 2, 3])) == [1, 4, 9]
    assert list(workers.map(str, [])) == []
    assert 1 <= WorkerThreads().threads <= (os.cpu_count() or 1)
    with pytest.raises(OnomaError, match="threads must be at least 1"):
        WorkerThreads(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_worker_threads_work_after_a_fork() -> None:
    workers = WorkerThreads(2)
    assert list(workers.map(abs, [-1, -2])) == [1, 2]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=lambda: answers.put(list(workers.map(abs, [-3, -4]))), daemon=True)
    child.start()
    assert answers.get(timeout=20) == [3, 4]
    child.join(20)


@pytest.mark.parametrize("content", [b"", b"no graph at all", None])
def test_a_damaged_file_is_refused_with_its_name(tmp_path: Path, content: bytes | None) -> None:
    path = write_graph(tmp_path / "a.onnx")
    path.write_bytes(path.read_bytes()[:-500] if content is None else content)
    with pytest.raises(OnomaError, match=r"a\.onnx: the graph cannot be loaded.*Fix: .*again"):
        OnnxSession(path)


def test_a_missing_file_is_reported_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"model\.onnx does not exist.*onoma export"):
        OnnxSession(tmp_path / "model.onnx")


def test_the_installed_onnxruntime_is_supported() -> None:
    assert tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, 17)
