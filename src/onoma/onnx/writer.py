"""ONNX graphs, written operator by operator, for onnxruntime 1.17 and later.

Exporters that trace a model leave hundreds of small operators, which later passes do not put together again; a graph
written here has only the operators that it needs. `benchmarks/onnx_export.py` compares the two.

In int8 a linear layer computes for each row x of its input (each token)

    x ≈ m · a / 127,  W ≈ w · s,  x W ≈ (m / 127) · s · (a w)

with integers a and w, m = max |x|, and one scale s per column of W. Because each row has its own scale, tokens with
very large values do not reduce the precision of the others, and the result for a text does not depend on the texts in
the same batch. Inputs that are large in all rows are divided by factors that their weights are multiplied with (as in
SmoothQuant). Other large weights are stored in float16 and used in float32.

Processors without VNNI add products of two neighbouring weights and activations in 16 bits. The sum of any two
neighbouring weights is therefore limited such that it cannot overflow, so that int8 models give the same results on
all processors.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onoma.files import atomic_path

Array = NDArray[Any]
Floats = NDArray[np.float32]

OPSET = 17
_IR_VERSION = 8  # of the same time as the opset, so that runtimes of that time can read the file
_CONTRIB = "com.microsoft"  # operators of onnxruntime
_TINY = 1e-9  # keeps the scale of a row of zeros above 0

MAX_WEIGHT = 127
"""The largest absolute weight in int8."""
MAX_WEIGHT_PAIR = 128
"""The largest absolute sum of two neighbouring weights: 255 · 128 < 2^15."""


class GraphInput(NamedTuple):
    """An input of a graph: its shape, with names for variable sizes, and its element type."""

    shape: Sequence[str | int]
    kind: int = TensorProto.INT64


class _Quantised(NamedTuple):
    """The rows of a value as unsigned integers."""

    integers: str
    scale: str  # one per row
    step: float  # from one integer to the next, before the scale
    zero_point: int


class GraphWriter:
    """A graph that is being written. Its methods take and return the names of values."""

    def __init__(self, *, int8: bool = False) -> None:
        self.int8 = int8
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._widened: dict[str, str] = {}
        self._quantised: dict[str, _Quantised] = {}

    def constant(self, value: Array | float | Sequence[int], kind: type[np.generic] = np.float32) -> str:
        """A constant; equal constants are stored once."""
        array = np.ascontiguousarray(value, kind).reshape(np.shape(value))
        key = (array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).digest())
        if key not in self._known:
            self._known[key] = f"constant_{len(self._constants)}"
            self._constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def large_constant(self, value: Floats) -> str:
        """A large constant in float32. An int8 graph stores it in float16, and onnxruntime widens it on loading."""
        if not self.int8:
            return self.constant(value)
        half = self.constant(value, np.float16)
        if half not in self._widened:
            self._widened[half] = self.node("Cast", half, to=TensorProto.FLOAT)
        return self._widened[half]

    def integers(self, *values: int) -> str:
        """A constant list of integers, for shapes and axes."""
        return self.constant(values, np.int64)

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator; returns its output."""
        name = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], name, domain=domain, **attributes))
        return name

    def linear(
        self,
        x: str,
        weight: Floats,
        bias: Floats | None = None,
        *,
        factors: Floats | None = None,
        lowest: float | None = None,
    ) -> str:
        """x W + b, in int8 if the graph is; `weight` is (inputs, outputs).

        Quantisation is finer with `factors` for the inputs (from `balance`; the same in all layers that read x), or if
        no value of x is below `lowest`.
        """
        if not self.int8:
            return self.add_bias(self.node("MatMul", x, self.constant(weight)), bias)
        rows = self._quantise_symmetric(x, factors) if lowest is None else self._quantise_from(x, lowest)
        integers, scales = quantise_columns(weight if factors is None else weight * factors[:, None])
        if lowest is not None:  # it is x - lowest that is multiplied
            bias = (0 if bias is None else bias) + lowest * (integers * scales).sum(0)
        product = self.node(
            "MatMulIntegerToFloat",
            rows.integers,
            self.constant(integers, np.int8),
            self.constant(rows.step),
            self.constant(scales[0]),
            self.constant(rows.zero_point, np.uint8),
            domain=_CONTRIB,
        )
        return self.add_bias(self.node("Mul", product, rows.scale), bias)

    def _quantise_symmetric(self, x: str, factors: Floats | None) -> _Quantised:
        """Each row by its largest absolute value; done once for all layers that read x."""
        if x not in self._quantised:
            even = x if factors is None else self.node("Mul", x, self.constant(1 / factors))
            self._quantised[x] = self._quantise(even, self.node("Abs", even), 1 / 127, 128)
        return self._quantised[x]

    def _quantise_from(self, x: str, lowest: float) -> _Quantised:
        """Each row by its largest distance from the lowest value: twice as fine if most values are positive."""
        distance = self.node("Sub", x, self.constant(lowest))
        return self._quantise(distance, distance, 1 / 255, 0)

    def _quantise(self, x: str, size: str, step: float, zero_point: int) -> _Quantised:
        scale = self.node("Max", self.node("ReduceMax", size, axes=[-1], keepdims=1), self.constant(_TINY))
        ratio = self.node("Div", x, scale)
        integers = self.node("QuantizeLinear", ratio, self.constant(step), self.constant(zero_point, np.uint8))
        return _Quantised(integers, scale, step, zero_point)

    def add_bias(self, x: str, bias: Floats | None) -> str:
        """x + b; x itself without a bias."""
        return x if bias is None else self.node("Add", x, self.constant(bias))

    def embedding(self, table: Floats, ids: str) -> str:
        """Rows of a table by index, stored in int8 if the graph is."""
        if not self.int8:
            return self.node("Gather", self.constant(table), ids)
        scales = np.maximum(np.abs(table).max(1, keepdims=True), 1e-12) / MAX_WEIGHT
        integers = self.constant(np.rint(table / scales), np.int8)
        found = self.node("Cast", self.node("Gather", integers, ids), to=TensorProto.FLOAT)
        return self.node("Mul", found, self.node("Gather", self.constant(scales), ids))

    def layer_norm(self, x: str, weight: Floats, bias: Floats, epsilon: float) -> str:
        """(x - mean) / deviation · weight + bias."""
        return self.node("LayerNormalization", x, self.constant(weight), self.constant(bias), epsilon=epsilon)

    def gelu(self, x: str) -> str:
        """The exact GELU, with the error function."""
        return self.node("Gelu", x, domain=_CONTRIB)

    def l2_normalize(self, x: str) -> str:
        """Vectors scaled to length 1."""
        return self.node("LpNormalization", x, axis=-1, p=2)

    def include(self, model: onnx.ModelProto, prefix: str) -> dict[str, str]:
        """Add all operators of another graph, which shares its inputs with this one; returns its outputs."""
        inputs = {one.name for one in model.graph.input}
        for constant in model.graph.initializer:
            constant.name = prefix + constant.name
            self._constants.append(constant)
        for node in model.graph.node:
            node.name = prefix + node.name
            node.input[:] = [name if name in inputs or not name else prefix + name for name in node.input]
            node.output[:] = [prefix + name if name else name for name in node.output]
            self._nodes.append(node)
        return {one.name: prefix + one.name for one in model.graph.output}

    def save(self, path: str | os.PathLike[str], inputs: Mapping[str, GraphInput], outputs: Mapping[str, str]) -> None:
        """Write the graph; `outputs` maps names of outputs to values."""
        named = [helper.make_node("Identity", [value], [name], name) for name, value in outputs.items()]
        graph = helper.make_graph(
            [*self._nodes, *named],
            "onoma",
            [helper.make_tensor_value_info(name, one.kind, one.shape) for name, one in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self._constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="onoma")
        with atomic_path(path) as temporary:
            onnx.save(model, temporary)


def quantise_columns(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Weights (inputs, outputs) as integers, and the scale of each column that restores them.

    No integer exceeds `MAX_WEIGHT`, and no two neighbours in a column add up to more than `MAX_WEIGHT_PAIR`.
    """
    padded = np.pad(weight, ((0, len(weight) % 2), (0, 0)))
    pairs = np.abs(padded[::2] + padded[1::2]).max(0, keepdims=True)  # of opposite signs, the larger one decides
    limit = MAX_WEIGHT_PAIR - 1  # rounding may add a half to each of the two
    scales = np.maximum(np.maximum(np.abs(weight).max(0, keepdims=True) / MAX_WEIGHT, pairs / limit), 1e-12)
    return np.rint(weight / scales).astype(np.int8), scales.astype(np.float32)


def balance(largest: Floats, weight: Floats) -> Floats:
    """Factors after which the inputs of a layer vary no more than their weights; `weight` is (inputs, outputs).

    `largest` are the largest absolute values of the inputs. The idea is that of SmoothQuant (Xiao et al., 2023), with
    equal shares for both sides.
    """
    factors: Floats = np.sqrt(np.maximum(largest, 1e-5) / np.maximum(np.abs(weight).max(1), 1e-5))
    return factors
