"""ONNX graphs, written operator by operator.

Exporters trace a model and leave hundreds of small operators that no later pass puts together again; what a graph is
made of here, it keeps. It runs on any onnxruntime since 1.17.

In int8 a linear layer computes, for each row x of its input (each token),

    x ≈ m · a / 127,  W ≈ w · s,  x W ≈ (m / 127) · s · (a w)

with integers a and w, m = max |x| and one s a column of W. A scale for every row keeps the few tokens with huge
values from taking all precision of the others, and a text's result does not depend on the texts beside it. Where
single inputs stand out in all rows, they are divided by a factor that their weights are multiplied with. Other large
weights are stored in float16, and used in float32.
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

Array = NDArray[Any]
Floats = NDArray[np.float32]

_OPSET = 17
_IR_VERSION = 8  # of the same time, so that runtimes of that time read the file
_CONTRIB = "com.microsoft"  # operators of onnxruntime's own
_TINY = 1e-9  # a row of nothing but zeros has a scale, too

FULL_RANGE = 127
"""The greatest weight in int8."""
SAFE_RANGE = 96
"""The greatest weight where activations lie around 128: processors without VNNI add two products of them in 16 bits.

Two weights of 96 and two activations of 170 just fit; of real activations next to none are greater, and 127 would
cost them twice the error there.
"""


class Input(NamedTuple):
    """What a graph reads: its kind, and its shape with names for sizes that vary."""

    shape: Sequence[str | int]
    kind: int = TensorProto.INT64


class _Rounded(NamedTuple):
    """The rows of a value as integers."""

    integers: str
    scale: str  # of each row
    step: float  # from one integer to the next, before the scale
    zero: int  # the integer that stands for 0, or for the lowest value
    weights: int  # the greatest that may be multiplied with them


class Graph:
    """A graph being written. Its methods take and return the names of values."""

    def __init__(self, *, int8: bool = False) -> None:
        self.int8 = int8
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._widened: dict[str, str] = {}
        self._rounded: dict[str, _Rounded] = {}

    def constant(self, value: Array | float | Sequence[int], kind: type[np.generic] = np.float32) -> str:
        """A value that the graph holds, once however often it is needed."""
        array = np.ascontiguousarray(value, kind).reshape(np.shape(value))
        key = (array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).digest())
        if key not in self._known:
            self._known[key] = f"constant_{len(self._constants)}"
            self._constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def weights(self, value: Floats) -> str:
        """A large constant in float32. An int8 graph stores it in float16, and onnxruntime widens it on loading."""
        if not self.int8:
            return self.constant(value)
        half = self.constant(value, np.float16)
        if half not in self._widened:
            self._widened[half] = self.add("Cast", half, to=TensorProto.FLOAT)
        return self._widened[half]

    def integers(self, *values: int) -> str:
        """A constant row of integers, as shapes and axes are given."""
        return self.constant(values, np.int64)

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """The output of an operator."""
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

        Rounding is finer with `factors` for the inputs (as `balance` gives them; the same in all layers that read x),
        or where it is known that no value of x is below `lowest`.
        """
        if not self.int8:
            return self.plus(self.add("MatMul", x, self.constant(weight)), bias)
        rows = self._around_zero(x, factors) if lowest is None else self._from_lowest(x, lowest)
        rounded, scales = quantise(weight if factors is None else weight * factors[:, None], 0, rows.weights)
        if lowest is not None:  # it is x - lowest that is multiplied
            bias = (0 if bias is None else bias) + lowest * (rounded * scales).sum(0)
        product = self.add(
            "MatMulIntegerToFloat",
            rows.integers,
            self.constant(rounded, np.int8),
            self.constant(rows.step),
            self.constant(scales[0]),
            self.constant(rows.zero, np.uint8),
            domain=_CONTRIB,
        )
        return self.plus(self.add("Mul", product, rows.scale), bias)

    def _around_zero(self, x: str, factors: Floats | None) -> _Rounded:
        """Each row by its greatest absolute value; made once for all layers that read it."""
        if x not in self._rounded:
            even = x if factors is None else self.add("Mul", x, self.constant(1 / factors))
            self._rounded[x] = self._round(even, self.add("Abs", even), 1 / 127, 128, SAFE_RANGE)
        return self._rounded[x]

    def _from_lowest(self, x: str, lowest: float) -> _Rounded:
        """Each row by its greatest distance from the lowest value: twice as fine where most values are positive."""
        distance = self.add("Sub", x, self.constant(lowest))
        return self._round(distance, distance, 1 / 255, 0, FULL_RANGE)

    def _round(self, x: str, size: str, step: float, zero: int, weights: int) -> _Rounded:
        scale = self.add("Max", self.add("ReduceMax", size, axes=[-1], keepdims=1), self.constant(_TINY))
        ratio = self.add("Div", x, scale)
        integers = self.add("QuantizeLinear", ratio, self.constant(step), self.constant(zero, np.uint8))
        return _Rounded(integers, scale, step, zero, weights)

    def plus(self, x: str, bias: Floats | None) -> str:
        """x + b; x itself where there is no bias."""
        return x if bias is None else self.add("Add", x, self.constant(bias))

    def rows(self, table: Floats, numbers: str) -> str:
        """Rows of a table by number, kept in int8 if the graph is."""
        if not self.int8:
            return self.add("Gather", self.constant(table), numbers)
        rounded, scales = quantise(table, 1, FULL_RANGE)
        found = self.add("Cast", self.add("Gather", self.constant(rounded, np.int8), numbers), to=TensorProto.FLOAT)
        return self.add("Mul", found, self.add("Gather", self.constant(scales), numbers))

    def layer_norm(self, x: str, weight: Floats, bias: Floats, epsilon: float) -> str:
        """(x - mean) / deviation · weight + bias."""
        return self.add("LayerNormalization", x, self.constant(weight), self.constant(bias), epsilon=epsilon)

    def gelu(self, x: str) -> str:
        """The exact one, with the error function."""
        return self.add("Gelu", x, domain=_CONTRIB)

    def unit(self, x: str) -> str:
        """Vectors brought to length 1."""
        return self.add("LpNormalization", x, axis=-1, p=2)

    def save(self, path: str | os.PathLike[str], inputs: Mapping[str, Input], outputs: Mapping[str, str]) -> None:
        """Write the graph; `outputs` say which values are given out as what."""
        named = [helper.make_node("Identity", [value], [name], name) for name, value in outputs.items()]
        graph = helper.make_graph(
            [*self._nodes, *named],
            "onoma",
            [helper.make_tensor_value_info(name, one.kind, one.shape) for name, one in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self._constants,
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="onoma")
        onnx.save(model, path)


def quantise(weight: Floats, axis: int, limit: int) -> tuple[NDArray[np.int8], Floats]:
    """Weights as integers up to ±limit, and the scales that bring them back: one for all weights along the axis."""
    scales = np.maximum(np.abs(weight).max(axis, keepdims=True), 1e-12) / limit
    return np.rint(weight / scales).astype(np.int8), scales.astype(np.float32)


def balance(greatest: Floats, weight: Floats) -> Floats:
    """Factors after which the inputs of a layer stand out no more than their weights do; `weight` is (inputs, outputs).

    The same idea as in SmoothQuant (Xiao et al., 2023), with an even share for both sides.
    """
    factors: Floats = np.sqrt(np.maximum(greatest, 1e-5) / np.maximum(np.abs(weight).max(1), 1e-5))
    return factors
