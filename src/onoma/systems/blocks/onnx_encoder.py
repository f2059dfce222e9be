"""Pretrained encoders as ONNX graphs: BERT, RoBERTa and their kin, and MPNet; and what heads on top of them need."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from onnx import TensorProto
from torch import Tensor, nn

from onoma.errors import OnomaError
from onoma.systems.blocks.families import FAMILIES, layer_names
from onoma.systems.blocks.onnx_graph import Floats, Graph, Input, balance
from onoma.systems.blocks.onnx_runtime import MEMORY

IDS, MASK, SEEN, POSITIONS = "ids", "mask", "seen", "positions"
TOKENS = {IDS: Input(("texts", "tokens")), MASK: Input(("texts", "tokens"))}
"""What an encoder reads: the numbers of tokens, and 1 for tokens, 0 for padding."""

LOWEST_GELU = -0.17
"""No value of it is lower."""

_FAR_BELOW = 1e4  # subtracted from the attention to padding


class Remembering(NamedTuple):
    """An encoder in a graph that reads and leaves keys and values."""

    states: str  # (texts, tokens, hidden)
    mask: str  # what the first token sees of the tokens themselves, (texts, tokens)
    inputs: dict[str, Input]
    outputs: dict[str, str]


def encoder_states(graph: Graph, encoder: nn.Module) -> str:
    """The last states of an encoder for the inputs `ids` and `mask`: (texts, tokens, hidden)."""
    return _Writer(graph, encoder).states()


def remembering_encoder(graph: Graph, encoder: nn.Module, added: Floats) -> Remembering:
    """An encoder whose tokens also see those of a pass before, by the keys and values that these have left.

    `seen` says for each token, or for all at once, what of that it sees, and then which of the tokens themselves;
    `positions` are in the same order, in one row if they are the same in all texts. Vectors `added` behind the table
    of words are counted from its end: the last is -1.
    """
    return _Writer(graph, encoder, added).remembering()


class _Writer:
    def __init__(self, graph: Graph, encoder: Any, added: Floats | None = None) -> None:
        config = encoder.config
        names = layer_names(config)
        if names is None:
            raise OnomaError(
                f"an encoder of the kind {config.model_type!r} cannot be exported yet; those that can, with 'gelu' as "
                f"their activation: {', '.join(FAMILIES)}. The torch backend runs any."
            )
        self.graph, self.encoder, self.config, self.names = graph, encoder, config, names
        self.heads, self.hidden = config.num_attention_heads, config.hidden_size
        self.weights = {name: array(value) for name, value in encoder.state_dict().items()}
        self.greatest = self._greatest_inputs() if graph.int8 else {}
        self.split = graph.integers(0, 0, self.heads, self.hidden // self.heads)
        self.joined = graph.integers(0, 0, self.hidden)
        self.by_distance = config.model_type == "mpnet"  # attention depends on how far tokens are from each other
        self.added = added  # where there are such, keys and values are remembered, too
        self.memory: dict[str, str] = {}  # what is left by name

    def states(self) -> str:
        """Tokens at the positions of their places."""
        graph, zero = self.graph, self.graph.integers(0)
        place = graph.add("Slice", graph.weights(self._position_table()), zero, self._length(), zero)
        bias = graph.add("Unsqueeze", self._hiding(MASK), graph.integers(1, 2))  # (texts, 1, 1, keys)
        if self.by_distance:
            numbers = graph.constant(np.arange(self.config.max_position_embeddings)[None], np.int64)
            positions = graph.add("Slice", numbers, zero, self._length(), graph.integers(1))
            bias = graph.add("Add", bias, self._distance_bias(positions, positions))
        return self._layers(place, bias)

    def remembering(self) -> Remembering:
        """Tokens at given positions, behind what is remembered."""
        graph = self.graph
        bias = graph.add("Unsqueeze", self._hiding(SEEN), graph.integers(1))  # (texts, 1, queries or 1, keys)
        mask = self._own(graph.add("Gather", SEEN, graph.constant(0, np.int64), axis=1))
        positions = self._own(POSITIONS)
        place = graph.add("Gather", graph.weights(self._position_table()), positions)
        if self.by_distance:
            bias = graph.add("Add", bias, self._distance_bias(positions, POSITIONS))
        states = self._layers(place, bias)
        seen, places = Input(("texts", "queries", "all")), Input(("rows", "all"))
        memory = Input(("texts", "remembered", self.hidden), TensorProto.FLOAT)
        inputs = {IDS: TOKENS[IDS], SEEN: seen, POSITIONS: places, **{MEMORY + name: memory for name in self.memory}}
        return Remembering(states, mask, inputs, self.memory)

    def _own(self, x: str) -> str:
        """Of what is said of all that is seen, the part about the tokens themselves."""
        graph = self.graph
        start, end = graph.add("Neg", self._length()), graph.integers(np.iinfo(np.int64).max)
        return graph.add("Slice", x, start, end, graph.integers(1))

    def _layers(self, place: str, bias: str) -> str:
        """All of the encoder, for the vectors of positions and what is added to the attention."""
        words = self.weights["embeddings.word_embeddings.weight"]
        if self.added is not None:
            words = np.concatenate([words, self.added])
        x = self._norm(self.graph.add("Add", self.graph.rows(words, IDS), place), "embeddings.LayerNorm")
        for number in range(self.config.num_hidden_layers):
            x = self._layer(x, bias, number)
        return x

    def _position_table(self) -> Floats:
        """The vectors of positions, and of the only kind of segment."""
        positions = self.weights["embeddings.position_embeddings.weight"]
        if self.names.counts_padding:
            positions = positions[self.config.pad_token_id + 1 :]
        if "embeddings.token_type_embeddings.weight" in self.weights:
            positions = positions + self.weights["embeddings.token_type_embeddings.weight"][0]
        return positions

    def _length(self) -> str:
        """How many tokens the texts have with their padding."""
        return self.graph.add("Slice", self.graph.add("Shape", IDS), self.graph.integers(1), self.graph.integers(2))

    def _hiding(self, seen: str) -> str:
        """What is added to the attention: 0 to what is seen, and to all else far below zero."""
        graph = self.graph
        hidden = graph.add("Sub", graph.add("Cast", seen, to=TensorProto.FLOAT), graph.constant(1.0))
        return graph.add("Mul", hidden, graph.constant(_FAR_BELOW))

    def _distance_bias(self, queries: str, keys: str) -> str:
        """MPNet's bias for each head and each distance j - i, looked up: (1 or texts, heads, queries, keys)."""
        graph, most = self.graph, self.config.max_position_embeddings
        with torch.inference_mode():
            table = self.encoder.encoder.compute_position_bias(torch.zeros(1, most, 1, device=self.encoder.device))[
                0
            ]  # (heads, most, most)
        by_distance = torch.cat([table[:, 1:, 0].flip(1), table[:, 0]], dim=1).T  # (2 most - 1, heads)
        from_place = graph.add("Unsqueeze", queries, graph.integers(2))
        to_place = graph.add("Unsqueeze", keys, graph.integers(1))
        distance = graph.add("Add", graph.add("Sub", to_place, from_place), graph.integers(most - 1))
        found = graph.add("Gather", graph.constant(array(by_distance)), distance)
        return graph.add("Transpose", found, perm=[0, 3, 1, 2])

    @torch.inference_mode()
    def _greatest_inputs(self) -> dict[str, Floats]:
        """The greatest absolute values of what layers read, by their names, for a mixture of tokens.

        Inputs that stand out are a matter of the encoder, not of the text. They do so most at special tokens, which
        are among the first.
        """
        found: dict[str, Floats] = {}
        hooks = []
        layers = [f"encoder.layer.{number}" for number in range(self.config.num_hidden_layers)]
        for name in (f"{layer}.{reader}" for layer in layers for reader in (self.names.query, self.names.inner)):
            hooks.append(
                self.encoder.get_submodule(name).register_forward_pre_hook(partial(_keep_greatest, found, name))
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
        """How the inputs that several layers read together are evened out."""
        if reader not in self.greatest:
            return None
        return balance(self.greatest[reader], np.concatenate([self.weights[f"{name}.weight"] for name in names]).T)

    def _layer(self, x: str, bias: str, number: int) -> str:
        graph, names, layer = self.graph, self.names, f"encoder.layer.{number}"
        attended = self._linear(self._attention(x, bias, number), f"{layer}.{names.output}")
        x = self._norm(graph.add("Add", attended, x), f"{layer}.{names.norm}")
        name = f"{layer}.{names.inner}"
        inner = graph.gelu(self._linear(x, name, factors=self._factors(name, name)))
        outer = self._linear(inner, f"{layer}.{names.outer}", lowest=LOWEST_GELU)
        return self._norm(graph.add("Add", outer, x), f"{layer}.{names.outer_norm}")

    def _attention(self, x: str, bias: str, number: int) -> str:
        graph, names, layer = self.graph, self.names, f"encoder.layer.{number}"
        readers = [f"{layer}.{name}" for name in (names.query, names.key, names.value)]
        factors = self._factors(readers[0], *readers)
        scales = ((self.hidden // self.heads) ** -0.5, 1.0, 1.0)  # of the attention, put into the query
        query, key, value = (
            self._linear(x, name, scale=scale, factors=factors) for name, scale in zip(readers, scales, strict=True)
        )
        if self.added is not None:
            key, value = self._remember(f"keys_{number}", key), self._remember(f"values_{number}", value)
        query, key, value = (graph.add("Reshape", one, self.split) for one in (query, key, value))
        query, value = (graph.add("Transpose", one, perm=[0, 2, 1, 3]) for one in (query, value))
        key = graph.add("Transpose", key, perm=[0, 2, 3, 1])
        scores = graph.add("Add", graph.add("MatMul", query, key), bias)  # (texts, heads, queries, keys)
        mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), value)
        return graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.joined)

    def _remember(self, name: str, own: str) -> str:
        """What is remembered and what is new, one after the other; the new is given out."""
        self.memory[name] = own
        return self.graph.add("Concat", MEMORY + name, own, axis=1)

    def _linear(
        self, x: str, name: str, *, scale: float = 1.0, factors: Floats | None = None, lowest: float | None = None
    ) -> str:
        weight, bias = (self.weights[f"{name}.{part}"] * np.float32(scale) for part in ("weight", "bias"))
        return self.graph.linear(x, weight.T, bias, factors=factors, lowest=lowest)

    def _norm(self, x: str, name: str) -> str:
        weight, bias = (self.weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return self.graph.layer_norm(x, weight, bias, self.config.layer_norm_eps)


def _keep_greatest(found: dict[str, Floats], name: str, _: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    """Called before a layer runs."""
    found[name] = inputs[0].abs().flatten(0, 1).amax(0).cpu().numpy()


def first_state(graph: Graph, states: str) -> str:
    """The state of [CLS] in each text: (texts, hidden)."""
    return graph.add("Gather", states, graph.constant(0, np.int64), axis=1)


def mean_state(graph: Graph, states: str, mask: str = MASK) -> str:
    """The mean over the tokens of each text: (texts, hidden)."""
    exists = graph.add("Unsqueeze", graph.add("Cast", mask, to=TensorProto.FLOAT), graph.integers(1))
    total = graph.add("MatMul", exists, states)  # (texts, 1, hidden)
    mean = graph.add("Div", total, graph.add("ReduceSum", exists, graph.integers(2)))
    return graph.add("Squeeze", mean, graph.integers(1))


def head(graph: Graph, x: str, layer: Any) -> str:
    """A linear layer in float32 even where the encoder is in int8: they are small, and all scores hang on them."""
    product = graph.add("MatMul", x, graph.weights(array(layer.weight).T))
    return graph.plus(product, None if layer.bias is None else array(layer.bias))


def array(tensor: Tensor) -> Floats:
    """The numbers of a tensor."""
    numbers: Floats = tensor.detach().float().cpu().numpy()
    return numbers
