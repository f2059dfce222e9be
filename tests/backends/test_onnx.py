"""Graphs run by onnxruntime."""

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
from onoma.backends.onnx import OnnxGraph, Workers, physical_cores
from onoma.systems.blocks.onnx_graph import SAFE_RANGE, Graph, Input, balance, quantise

INPUTS = {"ids": Input(("texts", "tokens"))}
GENERATOR = np.random.default_rng(0)
TABLE = GENERATOR.normal(size=(50, 24)).astype(np.float32)
WEIGHT = GENERATOR.normal(size=(24, 16)).astype(np.float32)
BIAS = GENERATOR.normal(size=16).astype(np.float32)


def write_graph(path: Path, *, int8: bool = False, lowest: float | None = None) -> Path:
    """ids -> rows of the table -> a linear layer."""
    graph = Graph(int8=int8)
    table = TABLE if lowest is None else np.maximum(TABLE, lowest)
    rows = graph.rows(table, "ids")
    graph.save(path, INPUTS, {"rows": rows, "out": graph.linear(rows, WEIGHT, BIAS, lowest=lowest)})
    return path


@pytest.fixture(scope="module")
def ids() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 50, (3, 7))


def test_a_graph_in_float32_is_exact(tmp_path: Path, ids: np.ndarray) -> None:
    rows, out = OnnxGraph(write_graph(tmp_path / "a.onnx")).run(["rows", "out"], ids=ids)
    np.testing.assert_array_equal(rows, TABLE[ids])
    np.testing.assert_allclose(out, TABLE[ids] @ WEIGHT + BIAS, atol=1e-5)


@pytest.mark.parametrize("lowest", [None, -0.17])
def test_int8_is_close_and_each_row_stands_alone(tmp_path: Path, ids: np.ndarray, lowest: float | None) -> None:
    graph = OnnxGraph(write_graph(tmp_path / "a.onnx", int8=True, lowest=lowest))
    rows, out = graph.run(["rows", "out"], ids=ids)
    table = TABLE if lowest is None else np.maximum(TABLE, lowest)
    assert np.abs(rows - table[ids]).max() < 0.02
    exact = table[ids] @ WEIGHT + BIAS
    assert np.abs(out - exact).max() < 0.03 * np.abs(exact).max()
    assert np.abs(out - exact).max() > 1e-4  # it really is in int8
    np.testing.assert_array_equal(graph.run(["out"], ids=ids[1:2, 2:4])[0], out[1:2, 2:4])


def test_factors_make_rounding_finer_where_an_input_stands_out(tmp_path: Path, ids: np.ndarray) -> None:
    table = TABLE.copy()
    table[:, 5] *= 50
    exact, errors = table[ids] @ WEIGHT + BIAS, []
    for factors in (None, balance(np.abs(table).max(0), WEIGHT)):
        graph = Graph(int8=True)
        x = graph.add("Gather", graph.constant(table), "ids")
        graph.save(tmp_path / "a.onnx", INPUTS, {"out": graph.linear(x, WEIGHT, BIAS, factors=factors)})
        (out,) = OnnxGraph(tmp_path / "a.onnx").run(["out"], ids=ids)
        errors.append(np.abs(out - exact).mean())
    assert errors[1] < errors[0] / 2


def test_int8_bears_rows_of_zeros_and_rows_with_huge_values(tmp_path: Path) -> None:
    graph = Graph(int8=True)
    table = np.zeros((3, 24), np.float32)
    table[1, 3], table[2] = 1e6, 1e-3
    graph.save(tmp_path / "a.onnx", INPUTS, {"out": graph.linear(graph.rows(table, "ids"), WEIGHT)})
    (out,) = OnnxGraph(tmp_path / "a.onnx").run(["out"], ids=np.array([[0, 1, 2]]))
    np.testing.assert_array_equal(out[0, 0], 0)
    for row in (1, 2):
        exact = table[row] @ WEIGHT
        assert np.abs(out[0, row] - exact).max() < 0.03 * np.abs(exact).max()


def test_pairs_of_weights_fit_into_16_bits() -> None:
    rounded, scales = quantise(WEIGHT, 0, SAFE_RANGE)
    assert np.abs(rounded.astype(int)).max(0).tolist() == [SAFE_RANGE] * 16
    assert 2 * SAFE_RANGE * 170 < 2**15
    np.testing.assert_allclose(rounded * scales, WEIGHT, atol=scales.max() / 2 + 1e-6)


def test_only_operators_that_every_runtime_has(tmp_path: Path) -> None:
    session = OnnxGraph(write_graph(tmp_path / "a.onnx", int8=True)).session
    assert [one.shape for one in session.get_inputs()] == [["texts", "tokens"]]
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_several_threads_may_run_a_graph_at_once(tmp_path: Path) -> None:
    graph = OnnxGraph(write_graph(tmp_path / "a.onnx"))
    inputs = [np.random.default_rng(seed).integers(0, 50, (seed + 1, 5)) for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(lambda ids: graph.run(["out"], ids=ids)[0], inputs))
    for ids, out in zip(inputs, outputs, strict=True):
        np.testing.assert_allclose(out, TABLE[ids] @ WEIGHT + BIAS, atol=1e-5)


def test_workers_keep_the_order_and_use_their_threads() -> None:
    workers = Workers(3)
    barrier = Barrier(3, timeout=10)  # opens only when three parts are worked on at once
    assert list(workers.map(lambda number: (barrier.wait(), number * number)[1], [1, 2, 3])) == [1, 4, 9]
    assert list(workers.map(str, [])) == []
    assert Workers().threads == physical_cores()
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)
    with pytest.raises(OnomaError, match="threads must be at least 1"):
        Workers(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_workers_work_in_a_fork() -> None:
    workers = Workers(2)
    assert list(workers.map(abs, [-1, -2])) == [1, 2]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=lambda: answers.put(list(workers.map(abs, [-3, -4]))), daemon=True)
    child.start()
    assert answers.get(timeout=20) == [3, 4]
    child.join(20)


def test_physical_cores_are_counted_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for cpu in range(8):  # two threads a core: 0 and 4, 1 and 5, ...
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr("onoma.backends.onnx._PROCESSORS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 4, 5}, raising=False)
    assert physical_cores() == 3
    monkeypatch.setattr("onoma.backends.onnx._PROCESSORS", tmp_path / "none")
    assert physical_cores() == (os.cpu_count() or 1)


@pytest.mark.parametrize("content", [b"", b"no graph at all", None])
def test_a_damaged_file_is_refused_with_its_name(tmp_path: Path, content: bytes | None) -> None:
    path = write_graph(tmp_path / "a.onnx")
    path.write_bytes(path.read_bytes()[:-500] if content is None else content)
    with pytest.raises(OnomaError, match=r"a\.onnx cannot be loaded.*again"):
        OnnxGraph(path)


def test_the_runtime_is_the_one_that_was_tested_against() -> None:
    assert tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, 17)
