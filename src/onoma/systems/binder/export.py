"""BINDER as ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from onnx import TensorProto

from onoma.errors import OnomaError
from onoma.models.folder import ONNX_FILE
from onoma.onnx.encoder import TOKENS, array, encoder_states, first_state, head, mean_state
from onoma.onnx.writer import GraphInput, GraphWriter
from onoma.systems.binder.model import Binder
from onoma.systems.binder.onnx_runtime import ENDS, SPANS, STARTS, TYPES_FILE, type_inputs


@torch.inference_mode()
def export_binder(model: Binder, folder: Path, *, int8: bool = False) -> None:
    """Write model.onnx and, if types have an encoder of their own, types.onnx.

    model.onnx reads texts, the tokens of their words, and types as columns of e, with joint inference also of e^B and
    e^Q. Its outputs are l, r and their products with widths, as in `matching.Parts`, and `products`, those of these
    vectors with each type, one below the other: l, r, zeros behind the last word, d of each width, and the unit
    vectors of [CLS]. With joint inference there are those of starts and of ends, each followed by its [CLS]. Constant
    outputs are `widths` (d of each width) and global `thresholds` (3, types). `encoded` are rows of types, e^B, e^Q
    and e scaled by 1/τ, and b if there is a breadth head: of the texts that are read (an output of types.onnx if there
    is one), or of all types if these are atomic.
    """
    if model.options.types == "prototype":
        raise OnomaError(
            "a model whose types are prototypical instances cannot be exported. Fix: use the torch backend, or train "
            "a model with `types: description`"
        )
    graph = GraphWriter(int8=int8)
    states = encoder_states(graph, model.text_encoder)
    outputs = _text_side(graph, states, model)
    if model.options.thresholds == "global":
        outputs["thresholds"] = graph.constant(array(model.global_thresholds))
    if model.options.types == "atomic":
        outputs["encoded"] = graph.constant(array(model.type_rows(model.atoms.weight)))
    elif model.own_type_encoder is None:
        outputs["encoded"] = _type_side(graph, states, model)
    else:
        types = GraphWriter(int8=int8)
        rows = _type_side(types, encoder_states(types, model.own_type_encoder), model)
        types.save(folder / TYPES_FILE, TOKENS, {"encoded": rows})
    words = {"first": GraphInput(("words", 2)), "last": GraphInput(("words", 2))}  # index of the text, token
    columns = GraphInput((model.options.vector_size, "types"), TensorProto.FLOAT)
    asked = dict.fromkeys(type_inputs(model.options), columns)
    graph.save(folder / ONNX_FILE, TOKENS | words | asked, outputs)


class _Side(NamedTuple):
    """One of l, r, u and v."""

    words: str  # (words, d)
    whole: str  # of [CLS] (texts, d)


def _text_side(graph: GraphWriter, states: str, model: Binder) -> dict[str, str]:
    """l and r of words, and all products with types and widths."""
    options = model.options
    width = array(model.width_vectors(options.max_width))  # (widths, d)
    by_width = graph.constant(width.T)
    left, right = _side(graph, states, model, "left"), _side(graph, states, model, "right")
    whole = graph.l2_normalize(graph.add_bias(graph.node("Add", left.whole, right.whole), width[0]))
    # one product for all, because each has to copy the types into the order of its kernel
    zeros = graph.constant(np.zeros((len(width) - 1, width.shape[1])))  # word i + w always exists
    vectors = _below(graph, left.words, right.words, zeros, graph.constant(width), whole)
    outputs = {
        "left": left.words,
        "right": right.words,
        "products": graph.node("MatMul", vectors, SPANS),
        "left_widths": graph.node("MatMul", left.words, by_width),
        "right_widths": graph.node("MatMul", right.words, by_width),
        "widths": graph.constant(width),
    }
    if options.inference == "joint":
        for name, types in (("start", STARTS), ("end", ENDS)):
            side = _side(graph, states, model, name)
            unit = graph.l2_normalize(_below(graph, side.words, side.whole))
            outputs[f"{name}_products"] = graph.node("MatMul", unit, types)
    return outputs


def _side(graph: GraphWriter, states: str, model: Binder, name: str) -> _Side:
    """Vectors of words, and of [CLS]."""
    if model.options.shared_linear:
        name = {"start": "left", "end": "right"}.get(name, name)
    place = "first" if name in ("left", "start") else "last"
    heads: Any = model.text_heads
    words, whole = graph.node("GatherND", states, place), first_state(graph, states)
    return _Side(head(graph, words, heads[name]), head(graph, whole, heads[name]))


def _below(graph: GraphWriter, *rows: str) -> str:
    """Matrices one below the other."""
    return graph.node("Concat", *rows, axis=0)


def _type_side(graph: GraphWriter, states: str, model: Binder) -> str:
    """e^B, e^Q and e in one row, and b behind them if there is a breadth head."""
    pooled = mean_state(graph, states) if model.options.pooling == "mean" else first_state(graph, states)
    names = ("span",) * 3 if model.options.shared_linear else ("start", "end", "span")
    heads: Any = model.type_heads
    scales = [one.norm() for one in model.type_vectors(heads["span"].weight[:1])]  # 1/τ, whatever the vector is
    vectors = [
        graph.node("Mul", graph.l2_normalize(head(graph, pooled, heads[name])), graph.constant(array(scale)))
        for name, scale in zip(names, scales, strict=True)
    ]
    if model.options.breadth_head:
        size = graph.constant(np.sqrt(model.breadth_head.in_features))
        vectors.append(head(graph, graph.node("Mul", graph.l2_normalize(pooled), size), model.breadth_head))
    return graph.node("Concat", *vectors, axis=-1)
