"""Graphs written operator by operator: exact in float32, close in int8, and safe on every processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from onoma.onnx.session import OnnxSession
from onoma.onnx.writer import MAX_WEIGHT, MAX_WEIGHT_PAIR, GraphInput, GraphWriter, balance, quantise_columns

INPUTS = {"ids": GraphInput(("texts", "tokens"))}
GENERATOR = np.random.default_rng(0)
TABLE = GENERATOR.normal(size=(50, 24)).astype(np.float32)
WEIGHT = GENERATOR.normal(size=(24, 16)).astype(np.float32)
BIAS = GENERATOR.normal(size=16).astype(np.float32)


def write_graph(path: Path, *, int8: bool = False, lowest: float | None = None) -> Path:
    """ids -> rows of the table -> a linear layer."""
    graph = GraphWriter(int8=int8)
    table = TABLE if lowest is None else np.maximum(TABLE, lowest)
    rows = graph.embedding(table, "ids")
    graph.save(path, INPUTS, {"rows": rows, "out": graph.linear(rows, WEIGHT, BIAS, lowest=lowest)})
    return path


@pytest.fixture(scope="module")
def ids() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 50, (3, 7))


def test_a_graph_in_float32_is_exact(tmp_path: Path, ids: np.ndarray) -> None:
    rows, out = OnnxSession(write_graph(tmp_path / "a.onnx")).run(["rows", "out"], ids=ids)
    np.testing.assert_array_equal(rows, TABLE[ids])
    np.testing.assert_allclose(out, TABLE[ids] @ WEIGHT + BIAS, atol=1e-5)


@pytest.mark.parametrize("lowest", [None, -0.17])
def test_int8_is_close_and_rows_are_independent(tmp_path: Path, ids: np.ndarray, lowest: float | None) -> None:
    graph = OnnxSession(write_graph(tmp_path / "a.onnx", int8=True, lowest=lowest))
    rows, out = graph.run(["rows", "out"], ids=ids)
    table = TABLE if lowest is None else np.maximum(TABLE, lowest)
    assert np.abs(rows - table[ids]).max() < 0.02
    exact = table[ids] @ WEIGHT + BIAS
    assert np.abs(out - exact).max() < 0.03 * np.abs(exact).max()
    assert np.abs(out - exact).max() > 1e-4  # it really is in int8
    np.testing.assert_array_equal(graph.run(["out"], ids=ids[1:2, 2:4])[0], out[1:2, 2:4])


def test_factors_reduce_the_error_of_inputs_with_outliers(tmp_path: Path, ids: np.ndarray) -> None:
    table = TABLE.copy()
    table[:, 5] *= 50
    exact, errors = table[ids] @ WEIGHT + BIAS, []
    for factors in (None, balance(np.abs(table).max(0), WEIGHT)):
        graph = GraphWriter(int8=True)
        x = graph.node("Gather", graph.constant(table), "ids")
        graph.save(tmp_path / "a.onnx", INPUTS, {"out": graph.linear(x, WEIGHT, BIAS, factors=factors)})
        (out,) = OnnxSession(tmp_path / "a.onnx").run(["out"], ids=ids)
        errors.append(np.abs(out - exact).mean())
    assert errors[1] < errors[0] / 2


def test_int8_accepts_rows_of_zeros_and_rows_with_huge_values(tmp_path: Path) -> None:
    graph = GraphWriter(int8=True)
    table = np.zeros((3, 24), np.float32)
    table[1, 3], table[2] = 1e6, 1e-3
    graph.save(tmp_path / "a.onnx", INPUTS, {"out": graph.linear(graph.embedding(table, "ids"), WEIGHT)})
    (out,) = OnnxSession(tmp_path / "a.onnx").run(["out"], ids=np.array([[0, 1, 2]]))
    np.testing.assert_array_equal(out[0, 0], 0)
    for row in (1, 2):
        exact = table[row] @ WEIGHT
        assert np.abs(out[0, row] - exact).max() < 0.03 * np.abs(exact).max()


def test_equal_constants_are_stored_once(tmp_path: Path) -> None:
    graph = GraphWriter()
    assert graph.constant(WEIGHT) == graph.constant(WEIGHT.copy()) != graph.constant(WEIGHT.T)


# --- integers


@st.composite
def weights(draw: st.DrawFn) -> np.ndarray:
    """Weights of any size and sign, some columns all equal, some with one large value."""
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    generator = np.random.default_rng(draw(st.integers(0, 9999)))
    weight = generator.normal(size=(rows, columns)) * draw(st.sampled_from([1e-6, 1.0, 1e4]))
    if draw(st.booleans()):
        weight[:, 0] = weight[0, 0]
    if draw(st.booleans()):
        weight[draw(st.integers(0, rows - 1)), 0] *= 100
    return weight.astype(np.float32)


@given(weights())
def test_pairs_of_weights_cannot_overflow_16_bits(weight: np.ndarray) -> None:
    integers, scales = quantise_columns(weight)
    wide = integers.astype(np.int64)
    assert np.abs(wide).max() <= MAX_WEIGHT
    padded = np.pad(wide, ((0, len(wide) % 2), (0, 0)))
    first, second = padded[::2], padded[1::2]
    for one in (0, 255):
        for other in (0, 255):  # a processor without VNNI adds two products of activations and weights in 16 bits
            assert np.abs(one * first + other * second).max() < 2**15
    np.testing.assert_allclose(integers * scales, weight, atol=scales.max() / 2 * 1.001)


def test_the_range_of_integers_is_used() -> None:
    alone, scales = quantise_columns(np.array([[1.0, 2.0], [-1.0, 0.0]], np.float32))
    assert np.abs(alone.astype(int)).max(0).tolist() == [MAX_WEIGHT, MAX_WEIGHT]
    pairs, _ = quantise_columns(np.ones((4, 1), np.float32))
    assert pairs.astype(int).sum() == 2 * MAX_WEIGHT_PAIR
    assert scales.shape == (1, 2)


def worst_weights(inputs: int) -> np.ndarray:
    """Columns at the limit: equal weights, one large weight per pair, opposite signs, and a random one."""
    columns = [
        np.ones(inputs),
        -np.ones(inputs),
        np.tile([127.0, 1.0], inputs // 2),
        np.tile([127.0, -127.0], inputs // 2),
    ]
    random = np.random.default_rng(0).normal(size=inputs)
    return np.stack([*columns, random, np.abs(random)], axis=1).astype(np.float32)


@pytest.mark.parametrize("inputs", [2, 32, 384, 1536])
@pytest.mark.parametrize("lowest", [None, 0.0], ids=["symmetric", "from the lowest value"])
def test_int8_products_are_exact_integer_arithmetic(tmp_path: Path, inputs: int, lowest: float | None) -> None:
    weight = worst_weights(inputs)
    integers, scales = quantise_columns(weight)
    graph = GraphWriter(int8=True)
    given = {"x": GraphInput(("rows", inputs), TensorProto.FLOAT)}
    graph.save(tmp_path / "a.onnx", given, {"out": graph.linear("x", weight, lowest=lowest)})
    generator = np.random.default_rng(1)
    largest = np.ones((1, inputs))
    rows = np.concatenate([largest, generator.integers(0, 2, (6, inputs)), generator.random((6, inputs))])
    rows[:, 0] = 1.0  # the largest value of each row, so that its scale is 1
    if lowest is None:
        rows = np.concatenate([rows, -largest, generator.choice([-1.0, 1.0], (6, inputs))])
    step = 1 / 127 if lowest is None else 1 / 255
    activations = np.rint(rows.astype(np.float32) / np.float32(step)).astype(np.int64)
    assert np.abs(activations).max() == round(1 / step)
    expected = (activations @ integers.astype(np.int64)) * (step * scales.astype(np.float64))
    (out,) = OnnxSession(tmp_path / "a.onnx").run(["out"], x=rows.astype(np.float32))
    one_unit = step * scales.min()
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=one_unit / 4)
