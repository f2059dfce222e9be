"""SUNER as ONNX graphs, for the runtime without PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import TensorProto

from onoma.errors import OnomaError
from onoma.systems.blocks.onnx_encoder import (
    LOWEST_GELU,
    TOKENS,
    array,
    encoder_states,
    first_state,
    head,
    mean_state,
    remembering_encoder,
)
from onoma.systems.blocks.onnx_graph import Graph, Input
from onoma.systems.suner.model import BiaffineVectors, SpanDetector, Suner
from onoma.systems.suner.onnx_runtime import DETECTOR_FILE, MODEL_FILE
from onoma.systems.suner.options import SunerOptions

_WORDS = {"first": Input(("texts", "words", 1)), "last": Input(("texts", "words", 1))}  # their tokens
_MARKERS = {"opening": Input(("candidates", 2)), "closing": Input(("candidates", 2))}  # number of the text, place


@torch.inference_mode()
def export_suner(model: Suner, folder: Path, *, int8: bool = False) -> None:
    """Write model.onnx and, where detection has an encoder of its own, detector.onnx.

    model.onnx runs tokens against keys and values of tokens before them. Texts and types see no such; the markers of
    candidates, numbered -2 and -1, see the text. It gives keys, values and the
    states of tokens; `encoded`, e_k of texts that are types; `logits` of all spans of the words at `first` and `last`
    (that of detector.onnx, if there is one); and of the candidates with markers at `opening` and `closing` r, scaled by
    1/τ (`vectors`), and the similarity that they must exceed (`nothing`). Where the text's own states are added to
    those of markers, `begin` and `end` are these.
    """
    _require_exact(model.options)
    graph = Graph(int8=int8)
    text = remembering_encoder(graph, model.text_encoder, array(model.markers))
    outputs = text.outputs | {"states": text.states, "encoded": _types(graph, text.states, text.mask, model)}
    vectors, nothing = _spans(graph, text.states, model)
    outputs |= {"vectors": vectors, "nothing": nothing}
    inputs = text.inputs | _MARKERS
    if model.options.spans == "both":
        inputs |= dict.fromkeys(("begin", "end"), Input(("candidates", _hidden(model)), TensorProto.FLOAT))
    if model.detection_encoder is None:
        outputs["logits"] = _detector(graph, text.states, model.detector)
        inputs |= _WORDS
    else:
        detector = Graph(int8=int8)
        logits = _detector(detector, encoder_states(detector, model.detection_encoder), model.detector)
        detector.save(folder / DETECTOR_FILE, TOKENS | _WORDS, {"logits": logits})
    graph.save(folder / MODEL_FILE, inputs, outputs)


def _require_exact(options: SunerOptions) -> None:
    """Text must be the same with and without markers, because it is read before they are."""
    if options.form == "one-stage":
        raise OnomaError("a one-stage SUNER cannot be exported; the torch backend runs it, or train the fused form")
    changed = [name for name in ("markers", "attention_mask", "tied_positions") if not getattr(options, name)]
    if changed:
        raise OnomaError(
            f"a SUNER with `{changed[0]}: false` cannot be exported; the torch backend runs it, or train without it"
        )


def _hidden(model: Suner) -> int:
    return int(model.transformer.config.hidden_size)


def _types(graph: Graph, states: str, mask: str, model: Suner) -> str:
    """Equations 9 and 10: e_k of length 1, (texts, size)."""
    pooled = mean_state(graph, states, mask) if model.options.pooling == "mean" else first_state(graph, states)
    inner, _, outer = model.type_head
    return graph.unit(head(graph, graph.gelu(head(graph, pooled, inner)), outer))


def _detector(graph: Graph, states: str, detector: SpanDetector) -> str:
    """Equations 2 and 3: the logits of all pairs of words, (texts, words, words)."""
    first, last = (graph.add("GatherND", states, place, batch_dims=1) for place in _WORDS)
    start, end = _feed_forward(graph, first, detector.start), _feed_forward(graph, last, detector.end)
    crossed = graph.add("MatMul", start, graph.constant(array(detector.bilinear)))
    logits = graph.add("MatMul", crossed, graph.add("Transpose", end, perm=[0, 2, 1]))
    logits = graph.add("Add", logits, head(graph, start, detector.start_linear))
    return graph.add("Add", logits, graph.add("Transpose", head(graph, end, detector.end_linear), perm=[0, 2, 1]))


def _spans(graph: Graph, states: str, model: Suner) -> tuple[str, str]:
    """Equation 12: r / τ of candidates (candidates, size), and what their similarities must exceed (candidates,)."""
    opening, closing = (graph.add("GatherND", states, place) for place in _MARKERS)
    if model.options.spans == "both":
        opening, closing = graph.add("Add", opening, "begin"), graph.add("Add", closing, "end")
    scale = float(model.log_scale.clamp(max=4.6052).exp())
    unit = graph.unit(_biaffine(graph, opening, closing, model.span_vectors))
    vectors = graph.add("Mul", unit, graph.constant(scale))
    if model.options.reject == "cosine":
        threshold = graph.constant(np.array([scale * model.options.match_threshold]))
        return vectors, graph.add("Expand", threshold, graph.add("Shape", "opening", start=0, end=1))
    nothing = torch.nn.functional.normalize(model.nothing, dim=0)
    similarity = graph.add("MatMul", vectors, graph.constant(array(nothing[:, None])))
    return vectors, graph.add("Squeeze", similarity, graph.integers(1))


def _biaffine(graph: Graph, opening: str, closing: str, layer: BiaffineVectors) -> str:
    """Equation 2 for pairs: (pairs, size)."""
    hidden, size, _ = layer.bilinear.shape
    start, end = _feed_forward(graph, opening, layer.start), _feed_forward(graph, closing, layer.end)
    crossed = graph.linear(start, array(layer.bilinear.flatten(1)), lowest=LOWEST_GELU)  # as large as a layer or two
    crossed = graph.add("Reshape", crossed, graph.integers(0, size, hidden))
    product = graph.add("MatMul", crossed, graph.add("Unsqueeze", end, graph.integers(2)))
    linear = graph.add("Add", head(graph, start, layer.start_linear), head(graph, end, layer.end_linear))
    return graph.add("Add", graph.add("Squeeze", product, graph.integers(2)), linear)


def _feed_forward(graph: Graph, x: str, layers: Any) -> str:
    return graph.gelu(head(graph, x, layers[0]))
