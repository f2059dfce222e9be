"""Weights from ONNX graphs that `onoma.onnx.writer` wrote, in float32 or in int8: the way back to PyTorch.

Integers are multiplied by their scales, and what the writer moved into weights or biases is taken out of them again:
factors of inputs, the lowest value of GELU, and the scale of attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper
from torch import Tensor, nn
from transformers import AutoModel, BertConfig, MPNetConfig

from onoma.errors import OnomaError
from onoma.onnx.encoder import IDS
from onoma.onnx.writer import Array, Floats
from onoma.systems.blocks.families import layer_names

_LAYER_LINEARS = 6  # query, key, value, output, inner, outer
_LAYER_NORMS = 2


class LinearLayer(NamedTuple):
    """A linear layer of a graph."""

    weight: Floats  # (inputs, outputs)
    bias: Floats | None
    output: str  # the name of its result


class GraphReader:
    """A graph that is being read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            graph = onnx.load(path).graph
        except (OSError, DecodeError) as error:
            raise OnomaError(f"{path} cannot be read ({error}). Fix: get the model again") from error
        self.constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        self.nodes = list(graph.node)
        self.producers = {name: node for node in self.nodes for name in node.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def source(self, name: str, *operators: str) -> str:
        """The first input of the operator that made a value, of the one that made that input, and so on."""
        for operator in operators:
            node = self.producers.get(name)
            if node is None or node.op_type != operator:
                raise self.unknown()
            name = node.input[0]
        return name

    def inputs(self, name: str, operator: str) -> list[str]:
        """All inputs of the operator that made a value."""
        self.source(name, operator)
        return list(self.producers[name].input)

    def constant(self, name: str) -> Array | None:
        """A constant, also one that is stored in float16; None if the value is computed."""
        node = self.producers.get(name)
        if node is not None and node.op_type in ("Cast", "Identity"):
            name = node.input[0]
        found = self.constants.get(name)
        return found.astype(np.float32) if found is not None and found.dtype == np.float16 else found

    def required(self, name: str) -> Array:
        """A constant that must be there."""
        found = self.constant(name)
        if found is None:
            raise self.unknown()
        return found

    def operators(self, *names: str) -> Iterator[onnx.NodeProto]:
        """The operators of some kinds, in the order in which they were written."""
        return (node for node in self.nodes if node.op_type in names)

    def unknown(self) -> OnomaError:
        """The error for graphs of another form."""
        return OnomaError(
            f"{self.path} was not written by this version of `onoma export`, or its encoder is of a family that only "
            "`torch.onnx` knows: its weights cannot be read back. Fix: give the folder with model.safetensors"
        )

    @cached_property
    def linear_layers(self) -> list[LinearLayer]:
        """All products with constant matrices, in the order in which they were written."""
        found = []
        for node in self.operators("MatMul", "MatMulIntegerToFloat"):
            if node.op_type == "MatMulIntegerToFloat":
                found.append(self._quantised_linear(node))
            else:
                weight = self.constant(node.input[1])
                if weight is not None and weight.ndim == 2:
                    found.append(LinearLayer(weight, *self._bias(node.output[0])))
        return found

    @cached_property
    def by_output(self) -> dict[str, LinearLayer]:
        """The linear layers by the names of their results."""
        return {one.output: one for one in self.linear_layers}

    def head(self, name: str) -> LinearLayer:
        """The linear layer that made a value."""
        if name not in self.by_output:
            raise self.unknown()
        return self.by_output[name]

    def _quantised_linear(self, node: onnx.NodeProto) -> LinearLayer:
        weight = self.required(node.input[1]).astype(np.float32) * self.required(node.input[3])
        (scaled,) = self.readers[node.output[0]]
        bias, output = self._bias(scaled.output[0])
        before = self.producers.get(self.source(node.input[0], "QuantizeLinear", "Div"))
        shift = None if before is None or len(before.input) < 2 else self.constant(before.input[1])
        if before is None or shift is None:
            return LinearLayer(weight, bias, output)
        if before.op_type == "Sub":  # x minus the lowest value of GELU was multiplied
            moved = np.asarray(shift * weight.sum(0), np.float32)
            return LinearLayer(weight, None if bias is None else bias - moved, output)
        if before.op_type == "Mul" and shift.ndim == 1:  # 1 / factors
            weight = weight * shift[:, None]
        return LinearLayer(weight, bias, output)

    def _bias(self, product: str) -> tuple[Floats | None, str]:
        """The bias that is added to a product, and the name of the result."""
        readers = self.readers.get(product, [])
        if len(readers) == 1 and readers[0].op_type == "Add" and readers[0].input[0] == product:
            bias = self.constant(readers[0].input[1])
            if bias is not None and bias.ndim == 1:
                return bias, readers[0].output[0]
        return None, product


def read_encoder(graph: GraphReader) -> nn.Module:
    """The encoder of a graph.

    Encoders of the RoBERTa family become BERT encoders, because the graph has no positions before the first one; the
    results are the same.
    """
    norms = list(graph.operators("LayerNormalization"))
    layers, rest = divmod(len(norms) - 1, _LAYER_NORMS)
    linear = graph.linear_layers[: layers * _LAYER_LINEARS]
    if layers < 1 or rest or len(linear) < layers * _LAYER_LINEARS:
        raise graph.unknown()
    words, positions = _embeddings(graph, norms[0])
    biases = _distance_biases(graph)
    size: dict[str, Any] = {
        "vocab_size": len(words),
        "hidden_size": words.shape[1],
        "num_hidden_layers": layers,
        "num_attention_heads": _heads(graph),
        "intermediate_size": linear[4].weight.shape[1],
        "layer_norm_eps": next(one.f for one in norms[0].attribute if one.name == "epsilon"),
    }
    config: Any
    if biases is None:
        config = BertConfig(**size, max_position_embeddings=len(positions), type_vocab_size=1, pad_token_id=0)
    else:
        config = MPNetConfig(**size, max_position_embeddings=len(positions) + 2, pad_token_id=1)
        positions = np.pad(positions, ((2, 0), (0, 0)))
    encoder: Any = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    encoder.pooler = None
    state: dict[str, Tensor] = {
        "embeddings.word_embeddings.weight": _tensor(words),
        "embeddings.position_embeddings.weight": _tensor(positions),
    }
    if biases is None:
        state["embeddings.token_type_embeddings.weight"] = torch.zeros(1, words.shape[1])  # part of the positions
    else:
        state["encoder.relative_attention_bias.weight"] = _bucket_biases(encoder, biases)
    state |= _layer_weights(graph, config, linear, norms)
    encoder.load_state_dict(state)
    module: nn.Module = encoder
    return module


def _layer_weights(
    graph: GraphReader, config: Any, linear: list[LinearLayer], norms: list[onnx.NodeProto]
) -> dict[str, Tensor]:
    """The weights of linear layers and layer norms, by their names in the encoder."""
    names = layer_names(config)
    assert names is not None
    parts = (names.query, names.key, names.value, names.output, names.inner, names.outer)
    scale = (config.hidden_size // config.num_attention_heads) ** 0.5  # the scale of attention is part of the query
    state = _norm_weights(graph, norms[0], "embeddings.LayerNorm")
    for number in range(config.num_hidden_layers):
        layer = f"encoder.layer.{number}"
        for place, part in enumerate(parts):
            one = linear[number * _LAYER_LINEARS + place]
            factor = scale if part == names.query else 1.0
            assert one.bias is not None
            state[f"{layer}.{part}.weight"] = _tensor(one.weight.T * factor)
            state[f"{layer}.{part}.bias"] = _tensor(one.bias * factor)
        first = 1 + number * _LAYER_NORMS
        state |= _norm_weights(graph, norms[first], f"{layer}.{names.norm}")
        state |= _norm_weights(graph, norms[first + 1], f"{layer}.{names.outer_norm}")
    return state


def _norm_weights(graph: GraphReader, node: onnx.NodeProto, name: str) -> dict[str, Tensor]:
    weight, bias = (graph.required(one) for one in node.input[1:3])
    return {f"{name}.weight": _tensor(weight), f"{name}.bias": _tensor(bias)}


def _embeddings(graph: GraphReader, norm: onnx.NodeProto) -> tuple[Floats, Floats]:
    """The embeddings of words, and of positions plus segment 0."""
    places = graph.producers[graph.inputs(norm.input[0], "Add")[1]]
    if places.op_type not in ("Slice", "Gather"):
        raise graph.unknown()
    ids = (IDS, *(node.output[0] for node in graph.operators("Mod")))  # without the shapes of words
    tables = [graph.required(node.input[0]) for node in graph.operators("Gather") if node.input[1] in ids]
    words = tables[0].astype(np.float32)
    if len(tables) > 1:  # integers and the scale of each row
        words = words * tables[1]
    return words, graph.required(places.input[0])


def read_word_shapes(graph: GraphReader) -> Floats:
    """The embeddings of word shapes."""
    shapes = [node.output[0] for node in graph.operators("Div") if node.input[0] == IDS]
    tables = [graph.required(node.input[0]) for node in graph.operators("Gather") if node.input[1] in shapes]
    if not tables:
        raise graph.unknown()
    return tables[0]


def _heads(graph: GraphReader) -> int:
    """The number of attention heads, from the shape (0, 0, heads, size) into which queries are split."""
    for node in graph.operators("Reshape"):
        shape = graph.constant(node.input[1])
        if shape is not None and len(shape) == 4:
            return int(shape[2])
    raise graph.unknown()


def _distance_biases(graph: GraphReader) -> Floats | None:
    """MPNet's bias of attention for each distance j - i and head, (2 positions - 1, heads)."""
    for node in graph.operators("Gather"):
        table = graph.constant(node.input[0])
        distance = graph.producers.get(node.input[1])
        if table is not None and table.ndim == 2 and distance is not None and distance.op_type == "Add":
            return table
    return None


def _bucket_biases(encoder: Any, biases: Floats) -> Tensor:
    """The bias of each bucket of distances."""
    furthest = len(biases) // 2
    buckets = encoder.encoder.relative_position_bucket(torch.arange(-furthest, furthest + 1)[None])[0]
    table: Tensor = encoder.encoder.relative_attention_bias.weight.detach().clone()
    table[buckets] = _tensor(biases)
    return table


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.array(array, np.float32))
