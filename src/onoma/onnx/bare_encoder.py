"""The encoder alone out of an exported graph: what extraction could reach at most. Needs the package onnx."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import TensorProto, helper

from onoma.errors import DataError
from onoma.files import atomic_path
from onoma.onnx.runtime import STATES

_TOKENS = {"ids", "mask"}


def write_bare_encoder(graph: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Write the part of a graph from `ids` and `mask` to the last layer norm that depends on them alone, as `states`.

    The operators and weights are those of the graph, so it runs in the same precision.
    """
    try:
        model = onnx.load(graph)
    except (OSError, DecodeError) as error:
        raise DataError(f"the graph cannot be read ({error!s:.200})", path=Path(graph), fix="export it again") from None
    makers = {name: node for node in model.graph.node for name in node.output}
    inputs = {one.name for one in model.graph.input}
    for last in reversed([node for node in model.graph.node if node.op_type == "LayerNormalization"]):
        needed = _needed(last.output[0], makers)
        read = {name for node in needed for name in node.input}
        if read & inputs == _TOKENS:
            break
    else:
        raise DataError("no encoder was found in the graph", path=Path(graph), fix="export it by `onoma export`")
    bare = helper.make_graph(
        [*needed, helper.make_node("Identity", [last.output[0]], [STATES], STATES)],
        "encoder",
        [one for one in model.graph.input if one.name in read],
        [helper.make_tensor_value_info(STATES, TensorProto.FLOAT, None)],
        [one for one in model.graph.initializer if one.name in read],
    )
    with atomic_path(path) as temporary:
        onnx.save(
            helper.make_model(bare, opset_imports=model.opset_import, ir_version=model.ir_version),
            temporary,
        )


def _needed(value: str, makers: dict[str, onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The operators that a value depends on, in the order of the graph."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        name = waiting.pop()
        if name in makers and name not in found:
            found.update(makers[name].output)
            waiting += makers[name].input
    return list(_unique(node for name, node in makers.items() if name in found))


def _unique(nodes: Iterable[onnx.NodeProto]) -> Iterable[onnx.NodeProto]:
    """Operators with several outputs once."""
    return {node.output[0]: node for node in nodes}.values()
