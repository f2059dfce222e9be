"""SCL-RAI as an ONNX graph."""

from __future__ import annotations

from pathlib import Path

import torch
from onnx import TensorProto

from onoma.models.folder import ONNX_FILE
from onoma.onnx.encoder import TOKENS, encoder_states, head
from onoma.onnx.writer import GraphInput, GraphWriter
from onoma.systems.scl_rai.model import SclRai


@torch.inference_mode()
def export_scl_rai(model: SclRai, folder: Path, *, int8: bool = False) -> None:
    """Write model.onnx, which reads texts, the tokens of their words, and spans of these words.

    Inputs `first` and `last` are the tokens of words (index of the text, token); `start` and `end` are the first and
    last word of spans, counted over all texts; `centres` are the centres of labels. Outputs are `logits` V r of spans
    and the cosine `similarity` of r to each centre.
    """
    graph = GraphWriter(int8=int8)
    states = encoder_states(graph, model.text_encoder)
    begin, end = (graph.node("GatherND", states, place) for place in ("first", "last"))  # (words, hidden)
    parts = [
        graph.node("Gather", head(graph, begin, model.left), "start", axis=0),
        graph.node("Gather", head(graph, end, model.right), "end", axis=0),
        head(
            graph,
            graph.node("Mul", graph.node("Gather", begin, "start", axis=0), graph.node("Gather", end, "end", axis=0)),
            model.product,
        ),
    ]
    vectors = graph.node("Tanh", graph.node("Sum", *parts))
    words = {name: GraphInput(("words", 2)) for name in ("first", "last")}
    centres = {"centres": GraphInput(("labels", model.options.vector_size), TensorProto.FLOAT)}
    spans = {name: GraphInput(("spans",)) for name in ("start", "end")}
    unit = graph.node("LpNormalization", vectors, axis=-1, p=2)
    similarity = graph.node("MatMul", unit, graph.node("Transpose", "centres", perm=[1, 0]))
    outputs = {"logits": head(graph, vectors, model.label_scores), "similarity": similarity}
    graph.save(folder / ONNX_FILE, TOKENS | words | spans | centres, outputs)
