"""BINDER as ONNX graphs, for the runtime without PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import TensorProto
from torch import Tensor

from onoma.errors import OnomaError
from onoma.systems.binder.model import Binder
from onoma.systems.blocks.onnx_encoder import IDS, MASK, encoder_states
from onoma.systems.blocks.onnx_graph import Floats, Graph

TEXT_FILE, TYPES_FILE = "model.onnx", "types.onnx"


@torch.inference_mode()
def export_binder(model: Binder, folder: Path, *, int8: bool = False) -> None:
    """Write model.onnx and, where types have an encoder of their own, types.onnx.

    Outputs of model.onnx are `left` and `right` for every token (l and r; the reader picks those of words), with
    joint inference also `start` and `end` (u and v), and the constants `widths` (d of each width) and, with global
    thresholds, `thresholds` (3, types). `types` are e^B, e^Q and e in one row, scaled by 1/τ: of the given texts,
    in types.onnx if there is one, or of all types at once where they are atomic.
    """
    if model.options.types == "prototype":
        raise OnomaError(
            "a model whose types are prototypical instances cannot be exported; use the torch backend, or train a "
            "model with `types: description`"
        )
    graph = Graph(int8=int8)
    states = encoder_states(graph, model.text_encoder)
    outputs = _text_vectors(graph, states, model)
    outputs["widths"] = graph.constant(_array(model.width_vectors(model.options.max_width)))
    if model.options.thresholds == "global":
        outputs["thresholds"] = graph.constant(_array(model.global_thresholds))
    if model.options.types == "atomic":
        outputs["types"] = graph.constant(_array(torch.cat(model.type_vectors(model.atoms.weight), dim=-1)))
    elif model.own_type_encoder is None:
        outputs["types"] = _type_vectors(graph, states, model)
    else:
        types = Graph(int8=int8)
        rows = _type_vectors(types, encoder_states(types, model.own_type_encoder), model)
        types.save(folder / TYPES_FILE, (IDS, MASK), {"types": rows})
    graph.save(folder / TEXT_FILE, (IDS, MASK), outputs)


def _text_vectors(graph: Graph, states: str, model: Binder) -> dict[str, str]:
    """l and r, u and v of every token."""
    options = model.options
    outputs = {side: _head(graph, states, model.text_heads[side]) for side in ("left", "right")}
    if options.inference == "joint":
        for position, side in (("start", "left"), ("end", "right")):
            vectors = outputs[side] if options.shared_linear else _head(graph, states, model.text_heads[position])
            outputs[position] = graph.unit(vectors)
    return outputs


def _type_vectors(graph: Graph, states: str, model: Binder) -> str:
    """e^B, e^Q and e in one row."""
    pooled = _mean(graph, states) if model.options.pooling == "mean" else _first(graph, states)
    names = ("span",) * 3 if model.options.shared_linear else ("start", "end", "span")
    heads: Any = model.type_heads
    scales = [one.norm() for one in model.type_vectors(heads["span"].weight[:1])]  # of whatever vector: 1/τ
    vectors = [
        graph.add("Mul", graph.unit(_head(graph, pooled, heads[name])), graph.constant(_array(scale)))
        for name, scale in zip(names, scales, strict=True)
    ]
    return graph.add("Concat", *vectors, axis=-1)


def _mean(graph: Graph, states: str) -> str:
    """The mean over the tokens of each text: (texts, hidden)."""
    exists = graph.add("Unsqueeze", graph.add("Cast", MASK, to=TensorProto.FLOAT), graph.integers(1))
    total = graph.add("MatMul", exists, states)  # (texts, 1, hidden)
    mean = graph.add("Div", total, graph.add("ReduceSum", exists, graph.integers(2)))
    return graph.add("Squeeze", mean, graph.integers(1))


def _first(graph: Graph, states: str) -> str:
    return graph.add("Gather", states, graph.constant(0, np.int64), axis=1)


def _head(graph: Graph, x: str, layer: Any) -> str:
    """A linear layer in float32 even where the encoder is in int8: they are small, and all scores hang on them."""
    product = graph.add("MatMul", x, graph.constant(_array(layer.weight).T))
    return graph.plus(product, None if layer.bias is None else _array(layer.bias))


def _array(tensor: Tensor) -> Floats:
    array: Floats = tensor.detach().float().cpu().numpy()
    return array
