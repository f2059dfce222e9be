"""SUNER as ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import TensorProto

from onoma.errors import OnomaError
from onoma.models.folder import ONNX_FILE
from onoma.onnx.encoder import (
    GELU_MINIMUM,
    TOKENS,
    array,
    cached_encoder,
    encoder_states,
    first_state,
    head,
    mean_state,
)
from onoma.onnx.writer import GraphInput, GraphWriter
from onoma.systems.suner.model import BiaffineVectors, SpanDetector, Suner
from onoma.systems.suner.onnx_runtime import DETECTOR_FILE
from onoma.systems.suner.options import SunerOptions

_WORDS = {"first": GraphInput(("texts", "words", 1)), "last": GraphInput(("texts", "words", 1))}  # their tokens
_MARKERS = {"opening": GraphInput(("candidates", 2)), "closing": GraphInput(("candidates", 2))}  # text, place


@torch.inference_mode()
def export_suner(model: Suner, folder: Path, *, int8: bool = False) -> None:
    """Write model.onnx and, if detection has an encoder of its own, detector.onnx.

    model.onnx runs tokens against cached keys and values of other tokens. Texts and types have an empty cache; markers
    of candidates use the cache of the text, and have negative ids: those of [e_1], [/e_1], [e_2], ... end with -1.
    Outputs are keys, values and states of tokens; `encoded`, e_k of texts that are types; `logits` of all spans of the
    words at `first` and `last` (an output of detector.onnx if there is one); and for candidates with markers at
    `opening` and `closing` the vector r scaled by 1/τ (`vectors`) and the similarity that must be exceeded (`nothing`).
    If the text's states are added to those of markers, these are the inputs `begin` and `end`.
    """
    _require_exact(model.options)
    graph = GraphWriter(int8=int8)
    text = cached_encoder(graph, model.text_encoder, array(model.marker_vectors()))
    outputs = text.outputs | {"states": text.states, "encoded": _types(graph, text.states, text.mask, model)}
    vectors, nothing = _spans(graph, text.states, model)
    outputs |= {"vectors": vectors, "nothing": nothing}
    inputs = text.inputs | _MARKERS
    if model.options.spans == "both":
        inputs |= dict.fromkeys(("begin", "end"), GraphInput(("candidates", _hidden(model)), TensorProto.FLOAT))
    if model.detection_encoder is None:
        outputs["logits"] = _detector(graph, text.states, model.detector)
        inputs |= _WORDS
    else:
        detector = GraphWriter(int8=int8)
        logits = _detector(detector, encoder_states(detector, model.detection_encoder), model.detector)
        detector.save(folder / DETECTOR_FILE, TOKENS | _WORDS, {"logits": logits})
    graph.save(folder / ONNX_FILE, inputs, outputs)


def _require_exact(options: SunerOptions) -> None:
    """The states of text must not depend on markers, because the text is read first."""
    if options.form == "one-stage":
        raise OnomaError("a one-stage SUNER cannot be exported. Fix: use the torch backend, or train the fused form")
    changed = [name for name in ("markers", "attention_mask", "tied_positions") if not getattr(options, name)]
    if changed:
        raise OnomaError(
            f"a SUNER with `{changed[0]}: false` cannot be exported. Fix: use the torch backend, or train without it"
        )


def _hidden(model: Suner) -> int:
    return int(model.transformer.config.hidden_size)


def _types(graph: GraphWriter, states: str, mask: str, model: Suner) -> str:
    """Equations 9 and 10: e_k of length 1, (texts, size)."""
    pooled = mean_state(graph, states, mask) if model.options.pooling == "mean" else first_state(graph, states)
    inner, _, outer = model.type_head
    return graph.l2_normalize(head(graph, graph.gelu(head(graph, pooled, inner)), outer))


def _detector(graph: GraphWriter, states: str, detector: SpanDetector) -> str:
    """Equations 2 and 3: the logits of all pairs of words, (texts, words, words)."""
    first, last = (graph.node("GatherND", states, place, batch_dims=1) for place in _WORDS)
    start, end = _feed_forward(graph, first, detector.start), _feed_forward(graph, last, detector.end)
    crossed = graph.node("MatMul", start, graph.constant(array(detector.bilinear)))
    logits = graph.node("MatMul", crossed, graph.node("Transpose", end, perm=[0, 2, 1]))
    logits = graph.node("Add", logits, head(graph, start, detector.start_linear))
    return graph.node("Add", logits, graph.node("Transpose", head(graph, end, detector.end_linear), perm=[0, 2, 1]))


def _spans(graph: GraphWriter, states: str, model: Suner) -> tuple[str, str]:
    """Equation 12: r / τ of candidates (candidates, size), and the threshold of similarities (candidates,)."""
    opening, closing = (graph.node("GatherND", states, place) for place in _MARKERS)
    if model.options.spans == "both":
        opening, closing = graph.node("Add", opening, "begin"), graph.node("Add", closing, "end")
    scale = float(model.log_scale.clamp(max=4.6052).exp())
    unit = graph.l2_normalize(_biaffine(graph, opening, closing, model.span_vectors))
    vectors = graph.node("Mul", unit, graph.constant(scale))
    if model.options.rejection == "cosine":
        threshold = graph.constant(np.array([scale * model.options.match_threshold]))
        return vectors, graph.node("Expand", threshold, graph.node("Shape", "opening", start=0, end=1))
    nothing = torch.nn.functional.normalize(model.nothing, dim=0)
    similarity = graph.node("MatMul", vectors, graph.constant(array(nothing[:, None])))
    return vectors, graph.node("Squeeze", similarity, graph.integers(1))


def _biaffine(graph: GraphWriter, opening: str, closing: str, layer: BiaffineVectors) -> str:
    """Equation 2 for pairs: (pairs, size)."""
    hidden, size, _ = layer.bilinear.shape
    start, end = _feed_forward(graph, opening, layer.start), _feed_forward(graph, closing, layer.end)
    crossed = graph.linear(
        start, array(layer.bilinear.flatten(1)), lowest=GELU_MINIMUM
    )  # as large as one or two layers
    crossed = graph.node("Reshape", crossed, graph.integers(0, size, hidden))
    product = graph.node("MatMul", crossed, graph.node("Unsqueeze", end, graph.integers(2)))
    linear = graph.node("Add", head(graph, start, layer.start_linear), head(graph, end, layer.end_linear))
    return graph.node("Add", graph.node("Squeeze", product, graph.integers(2)), linear)


def _feed_forward(graph: GraphWriter, x: str, layers: Any) -> str:
    return graph.gelu(head(graph, x, layers[0]))
