"""BINDER in PyTorch from exported ONNX graphs: the inverse of `export`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from onoma.errors import OnomaError
from onoma.models.folder import ONNX_FILE, ModelFolder
from onoma.onnx.reader import GraphReader, LinearLayer, read_encoder, read_word_shapes
from onoma.onnx.writer import Floats
from onoma.systems.binder.model import Binder
from onoma.systems.binder.onnx_runtime import TYPES_FILE
from onoma.systems.binder.options import BinderOptions


@torch.no_grad()
def restore_binder(folder: ModelFolder, options: BinderOptions) -> Binder:
    """The model of a folder with model.onnx and, if types have an encoder of their own, types.onnx.

    Its results are those of the graphs, except that activations are not rounded to 8 bits. Graphs without joint
    inference have no start and end heads of texts, so that the model is trained further by its spans alone.
    """
    if options.types == "atomic" or options.thresholds == "global":
        raise OnomaError(
            f"{folder.path} was exported with a closed set of types, which cannot be trained further. "
            "Fix: give the folder with model.safetensors"
        )
    if options.inference == "span" and not options.shared_linear:
        options = replace(options, position_losses=False)
    text = GraphReader(folder.path / ONNX_FILE)
    types = GraphReader(folder.path / TYPES_FILE) if folder.has(TYPES_FILE) else text
    type_encoder = None if types is text else read_encoder(types)
    model = Binder(read_encoder(text), type_encoder, options, folder.config.max_tokens)
    if options.word_shapes:
        encoder: Any = model.text_encoder
        encoder.embeddings.word_shapes.weight.copy_(_tensor(read_word_shapes(text)))
    _restore_text_heads(text, model)
    _restore_type_heads(types, model)
    _restore_widths(text.required("widths"), model)
    return model


def _restore_text_heads(graph: GraphReader, model: Binder) -> None:
    heads: Any = model.text_heads
    for name in ("left", "right"):
        _fill(heads[name], graph.head(graph.source(name, "Identity")))
    if not model.options.shared_linear and model.options.inference == "joint":
        for name in ("start", "end"):
            vectors = graph.source(f"{name}_products", "Identity", "MatMul", "LpNormalization")
            _fill(heads[name], graph.head(graph.inputs(vectors, "Concat")[0]))


def _restore_type_heads(graph: GraphReader, model: Binder) -> None:
    """Linear layers and the learned 1/τ; a breadth head that the graph does not have starts untrained."""
    heads: Any = model.type_heads
    names = ("span",) * 3 if model.options.shared_linear else ("start", "end", "span")
    parts = graph.inputs(graph.source("encoded", "Identity"), "Concat")
    for place, (name, part) in enumerate(zip(names, parts[:3], strict=True)):
        unit, scale = graph.inputs(part, "Mul")
        _fill(heads[name], graph.head(graph.source(unit, "LpNormalization")))
        model.log_scale[place] = float(np.log(graph.required(scale)))
    if model.options.breadth_head and len(parts) > 3:
        _fill(model.breadth_head, graph.head(parts[3]))


def _restore_widths(vectors: Floats, model: Binder) -> None:
    """D and its linear layer from their product d, by its singular values; larger widths are not in the graph."""
    left, values, right = np.linalg.svd(vectors, full_matrices=False)
    rank = min(len(values), model.options.width_size)
    roots = np.sqrt(values[:rank])
    model.width.weight.zero_()
    model.width_head.weight.zero_()
    model.width.weight[: len(vectors), :rank] = _tensor(left[:, :rank] * roots)
    model.width.weight[len(vectors) :, :rank] = model.width.weight[len(vectors) - 1, :rank]
    model.width_head.weight[:, :rank] = _tensor(right[:rank].T * roots)


def _fill(layer: nn.Linear, read: LinearLayer) -> None:
    layer.weight.copy_(_tensor(read.weight.T))
    if layer.bias is not None and read.bias is not None:
        layer.bias.copy_(_tensor(read.bias))


def _tensor(array: Floats) -> Tensor:
    return torch.from_numpy(np.array(array, np.float32))
