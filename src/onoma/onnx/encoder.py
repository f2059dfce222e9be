"""Pretrained encoders as ONNX graphs (BERT, RoBERTa and relatives, MPNet), and what heads on top of them need."""

from __future__ import annotations

import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from onnx import TensorProto
from torch import Tensor, nn

from onoma.errors import OnomaError
from onoma.inputs.tokenizer import SHAPE_BITS
from onoma.onnx.runtime import PAST
from onoma.onnx.writer import OPSET, Floats, GraphInput, GraphWriter, balance
from onoma.systems.blocks.families import FAMILIES, layer_names
from onoma.systems.blocks.transformer import WORD_SHAPES

IDS, MASK, VISIBLE, POSITIONS = "ids", "mask", "visible", "positions"
TOKENS = {IDS: GraphInput(("texts", "tokens")), MASK: GraphInput(("texts", "tokens"))}
"""The inputs of an encoder: token ids, and 1 for tokens, 0 for padding."""

GELU_MINIMUM = -0.17
"""No value of GELU is lower."""

_HIDDEN = 1e4  # subtracted from attention scores of padding


class CachedEncoder(NamedTuple):
    """An encoder in a graph that reads keys and values of an earlier pass, and outputs its own."""

    states: str  # (texts, tokens, hidden)
    mask: str  # which of the tokens themselves the first token attends to, (texts, tokens)
    inputs: dict[str, GraphInput]
    outputs: dict[str, str]


def encoder_states(graph: GraphWriter, encoder: nn.Module) -> str:
    """The last states of an encoder for the inputs `ids` and `mask`: (texts, tokens, hidden).

    Encoders of a family that is not known here are traced by `torch.onnx`, in float32 also in an int8 graph.
    """
    config: Any = encoder.config
    return _traced_states(graph, encoder) if layer_names(config) is None else _EncoderWriter(graph, encoder).states()


def _traced_states(graph: GraphWriter, encoder: nn.Module) -> str:
    ids = torch.ones((2, 8), dtype=torch.int64)
    mask = torch.tensor([[1] * 8, [1] * 6 + [0] * 2])  # a mask without padding would be dropped in tracing
    sizes = {0: "texts", 1: "tokens"}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing warns about branches that depend on shapes
        path = Path(folder) / "encoder.onnx"
        torch.onnx.export(
            _LastStates(encoder.cpu()).eval(),
            (ids, mask),
            path,
            input_names=[IDS, MASK],
            output_names=["states"],
            dynamic_axes={IDS: sizes, MASK: sizes, "states": sizes},
            opset_version=OPSET,
            dynamo=False,
        )
        model = onnx.load(path)
    return graph.include(model, "traced_")["states"]


class _LastStates(nn.Module):
    """An encoder as a module from token ids and mask to states."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return states


def cached_encoder(graph: GraphWriter, encoder: nn.Module, added: Floats) -> CachedEncoder:
    """An encoder whose tokens also attend to the keys and values of an earlier pass.

    `visible` says for each token, or for all at once, which tokens of the earlier pass and then which of this pass it
    attends to; `positions` are in the same order, in one row if they are the same in all texts. Vectors `added` to the
    word embeddings have negative ids: the last one is -1.
    """
    return _EncoderWriter(graph, encoder, added).with_cache()


class _EncoderWriter:
    def __init__(self, graph: GraphWriter, encoder: Any, added: Floats | None = None) -> None:
        config = encoder.config
        names = layer_names(config)
        if names is None:
            raise OnomaError(
                f"an encoder of the type {config.model_type!r} cannot be exported with a key-value cache. Fix: "
                f"use one of {', '.join(FAMILIES)} with 'gelu' as activation, or the torch backend"
            )
        self.graph, self.encoder, self.config, self.names = graph, encoder, config, names
        self.heads, self.hidden = config.num_attention_heads, config.hidden_size
        self.weights = {name: array(value) for name, value in encoder.state_dict().items()}
        self.largest = self._largest_inputs() if graph.int8 else {}
        self.split = graph.integers(0, 0, self.heads, self.hidden // self.heads)
        self.joined = graph.integers(0, 0, self.hidden)
        self.relative = config.model_type == "mpnet"  # attention has a bias by distance
        self.added = added  # with these, keys and values are cached, too
        self.cache: dict[str, str] = {}  # keys and values by name

    def states(self) -> str:
        """Tokens at consecutive positions."""
        graph, zero = self.graph, self.graph.integers(0)
        place = graph.node("Slice", graph.large_constant(self._position_table()), zero, self._length(), zero)
        bias = graph.node("Unsqueeze", self._attention_bias(MASK), graph.integers(1, 2))  # (texts, 1, 1, keys)
        if self.relative:
            numbers = graph.constant(np.arange(self.config.max_position_embeddings)[None], np.int64)
            positions = graph.node("Slice", numbers, zero, self._length(), graph.integers(1))
            bias = graph.node("Add", bias, self._distance_bias(positions, positions))
        return self._layers(place, bias)

    def with_cache(self) -> CachedEncoder:
        """Tokens at given positions, behind those of the cache."""
        graph = self.graph
        bias = graph.node(
            "Unsqueeze", self._attention_bias(VISIBLE), graph.integers(1)
        )  # (texts, 1, queries or 1, keys)
        mask = self._own(graph.node("Gather", VISIBLE, graph.constant(0, np.int64), axis=1))
        positions = self._own(POSITIONS)
        place = graph.node("Gather", graph.large_constant(self._position_table()), positions)
        if self.relative:
            bias = graph.node("Add", bias, self._distance_bias(positions, POSITIONS))
        states = self._layers(place, bias)
        visible, places = GraphInput(("texts", "queries", "all")), GraphInput(("rows", "all"))
        past = GraphInput(("texts", "cached", self.hidden), TensorProto.FLOAT)
        inputs = {IDS: TOKENS[IDS], VISIBLE: visible, POSITIONS: places, **{PAST + name: past for name in self.cache}}
        return CachedEncoder(states, mask, inputs, self.cache)

    def _own(self, x: str) -> str:
        """The last part of a value, which is about the tokens of this pass."""
        graph = self.graph
        start, end = graph.node("Neg", self._length()), graph.integers(np.iinfo(np.int64).max)
        return graph.node("Slice", x, start, end, graph.integers(1))

    def _layers(self, place: str, bias: str) -> str:
        """Embeddings and layers, given position vectors and the bias of attention."""
        words = self.weights["embeddings.word_embeddings.weight"]
        if self.added is not None:
            words = np.concatenate([words, self.added])
        x = self._norm(self.graph.node("Add", self._token_vectors(words), place), "embeddings.LayerNorm")
        for number in range(self.config.num_hidden_layers):
            x = self._layer(x, bias, number)
        return x

    def _token_vectors(self, words: Floats) -> str:
        """Embeddings of tokens, and of the shapes of their words if there are some."""
        graph, shapes = self.graph, self.weights.get(f"embeddings.{WORD_SHAPES}.weight")
        if shapes is None:
            return graph.embedding(words, IDS)
        limit = graph.constant(1 << SHAPE_BITS, np.int64)
        vectors = graph.embedding(words, graph.node("Mod", IDS, limit))
        return graph.node("Add", vectors, graph.node("Gather", graph.constant(shapes), graph.node("Div", IDS, limit)))

    def _position_table(self) -> Floats:
        """Position embeddings plus the embedding of segment 0."""
        positions = self.weights["embeddings.position_embeddings.weight"]
        if self.names.counts_padding:
            positions = positions[self.config.pad_token_id + 1 :]
        if "embeddings.token_type_embeddings.weight" in self.weights:
            positions = positions + self.weights["embeddings.token_type_embeddings.weight"][0]
        return positions

    def _length(self) -> str:
        """The number of tokens per text, padding included."""
        return self.graph.node("Slice", self.graph.node("Shape", IDS), self.graph.integers(1), self.graph.integers(2))

    def _attention_bias(self, visible: str) -> str:
        """What is added to attention scores: 0 for visible tokens, a large negative number for others."""
        graph = self.graph
        hidden = graph.node("Sub", graph.node("Cast", visible, to=TensorProto.FLOAT), graph.constant(1.0))
        return graph.node("Mul", hidden, graph.constant(_HIDDEN))

    def _distance_bias(self, queries: str, keys: str) -> str:
        """MPNet's bias for each head and distance j - i, from a table: (1 or texts, heads, queries, keys)."""
        graph, most = self.graph, self.config.max_position_embeddings
        with torch.inference_mode():
            table = self.encoder.encoder.compute_position_bias(torch.zeros(1, most, 1, device=self.encoder.device))[
                0
            ]  # (heads, most, most)
        by_distance = torch.cat([table[:, 1:, 0].flip(1), table[:, 0]], dim=1).T  # (2 most - 1, heads)
        from_place = graph.node("Unsqueeze", queries, graph.integers(2))
        to_place = graph.node("Unsqueeze", keys, graph.integers(1))
        distance = graph.node("Add", graph.node("Sub", to_place, from_place), graph.integers(most - 1))
        found = graph.node("Gather", graph.constant(array(by_distance)), distance)
        return graph.node("Transpose", found, perm=[0, 3, 1, 2])

    @torch.inference_mode()
    def _largest_inputs(self) -> dict[str, Floats]:
        """The largest absolute inputs of layers, by layer name, for a random mixture of tokens.

        Which inputs are unusually large depends on the encoder, not on the text; they are largest at special tokens,
        which are among the first ids.
        """
        found: dict[str, Floats] = {}
        hooks = []
        layers = [f"encoder.layer.{number}" for number in range(self.config.num_hidden_layers)]
        for name in (f"{layer}.{reader}" for layer in layers for reader in (self.names.query, self.names.inner)):
            hooks.append(
                self.encoder.get_submodule(name).register_forward_pre_hook(partial(_keep_largest, found, name))
            )
        size, length = self.config.vocab_size, min(32, self.config.max_position_embeddings // 2)
        tokens = np.r_[: min(size, 512), np.linspace(0, size - 1, 1536, dtype=np.int64)]
        tokens = np.random.default_rng(0).permutation(tokens)[: len(tokens) // length * length]
        ids = torch.as_tensor(tokens.reshape(-1, length), device=self.encoder.device)
        self.encoder(input_ids=ids, attention_mask=torch.ones_like(ids))
        for hook in hooks:
            hook.remove()
        return found

    def _factors(self, reader: str, *names: str) -> Floats | None:
        """Factors for the inputs that several layers share."""
        if reader not in self.largest:
            return None
        return balance(self.largest[reader], np.concatenate([self.weights[f"{name}.weight"] for name in names]).T)

    def _layer(self, x: str, bias: str, number: int) -> str:
        graph, names, layer = self.graph, self.names, f"encoder.layer.{number}"
        attended = self._linear(self._attention(x, bias, number), f"{layer}.{names.output}")
        x = self._norm(graph.node("Add", attended, x), f"{layer}.{names.norm}")
        name = f"{layer}.{names.inner}"
        inner = graph.gelu(self._linear(x, name, factors=self._factors(name, name)))
        outer = self._linear(inner, f"{layer}.{names.outer}", lowest=GELU_MINIMUM)
        return self._norm(graph.node("Add", outer, x), f"{layer}.{names.outer_norm}")

    def _attention(self, x: str, bias: str, number: int) -> str:
        graph, names, layer = self.graph, self.names, f"encoder.layer.{number}"
        readers = [f"{layer}.{name}" for name in (names.query, names.key, names.value)]
        factors = self._factors(readers[0], *readers)
        scales = ((self.hidden // self.heads) ** -0.5, 1.0, 1.0)  # the scale of attention is part of the query
        query, key, value = (
            self._linear(x, name, scale=scale, factors=factors) for name, scale in zip(readers, scales, strict=True)
        )
        if self.added is not None:
            key, value = self._append(f"keys_{number}", key), self._append(f"values_{number}", value)
        query, key, value = (graph.node("Reshape", one, self.split) for one in (query, key, value))
        query, value = (graph.node("Transpose", one, perm=[0, 2, 1, 3]) for one in (query, value))
        key = graph.node("Transpose", key, perm=[0, 2, 3, 1])
        scores = graph.node("Add", graph.node("MatMul", query, key), bias)  # (texts, heads, queries, keys)
        mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
        return graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), self.joined)

    def _append(self, name: str, own: str) -> str:
        """Cached keys or values followed by those of this pass, which become an output."""
        self.cache[name] = own
        return self.graph.node("Concat", PAST + name, own, axis=1)

    def _linear(
        self, x: str, name: str, *, scale: float = 1.0, factors: Floats | None = None, lowest: float | None = None
    ) -> str:
        weight, bias = (self.weights[f"{name}.{part}"] * np.float32(scale) for part in ("weight", "bias"))
        return self.graph.linear(x, weight.T, bias, factors=factors, lowest=lowest)

    def _norm(self, x: str, name: str) -> str:
        weight, bias = (self.weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return self.graph.layer_norm(x, weight, bias, self.config.layer_norm_eps)


def _keep_largest(found: dict[str, Floats], name: str, _: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    """A hook that runs before a layer."""
    found[name] = inputs[0].abs().flatten(0, 1).amax(0).cpu().numpy()


def first_state(graph: GraphWriter, states: str) -> str:
    """The state of [CLS] in each text: (texts, hidden)."""
    return graph.node("Gather", states, graph.constant(0, np.int64), axis=1)


def mean_state(graph: GraphWriter, states: str, mask: str = MASK) -> str:
    """The mean over the tokens of each text: (texts, hidden)."""
    exists = graph.node("Unsqueeze", graph.node("Cast", mask, to=TensorProto.FLOAT), graph.integers(1))
    total = graph.node("MatMul", exists, states)  # (texts, 1, hidden)
    mean = graph.node("Div", total, graph.node("ReduceSum", exists, graph.integers(2)))
    return graph.node("Squeeze", mean, graph.integers(1))


def head(graph: GraphWriter, x: str, layer: Any) -> str:
    """A linear layer in float32 even if the encoder is in int8: heads are small, and all scores depend on them."""
    product = graph.node("MatMul", x, graph.large_constant(array(layer.weight).T))
    return graph.add_bias(product, None if layer.bias is None else array(layer.bias))


def array(tensor: Tensor) -> Floats:
    """A tensor as an array in float32."""
    numbers: Floats = tensor.detach().float().cpu().numpy()
    return numbers
