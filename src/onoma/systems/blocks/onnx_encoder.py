"""Pretrained encoders as ONNX graphs: BERT, RoBERTa and their kin, and MPNet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from onnx import TensorProto
from torch import nn

from onoma.errors import OnomaError
from onoma.systems.blocks.onnx_graph import Floats, Graph, Input, balance

IDS, MASK = "ids", "mask"
TOKENS = {IDS: Input(("texts", "tokens")), MASK: Input(("texts", "tokens"))}
"""What an encoder reads: the numbers of tokens, and 1 for tokens, 0 for padding."""

_FAR_BELOW = 1e4  # subtracted from the attention to padding
_LOWEST_GELU = -0.17  # no value of it is lower
_INNER = "intermediate.dense"


@dataclass(frozen=True, slots=True)
class _Names:
    """What a family of encoders calls the parts of a layer."""

    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    output: str = "attention.output.dense"
    norm: str = "attention.output.LayerNorm"
    counts_padding: bool = False  # positions begin after the number of the padding token


_ROBERTA = _Names(counts_padding=True)
_FAMILIES = {
    "bert": _Names(),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": _Names(
        "attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm", True
    ),
}


def encoder_states(graph: Graph, encoder: nn.Module) -> str:
    """The last states of an encoder for the inputs `ids` and `mask`: (texts, tokens, hidden)."""
    return _Writer(graph, encoder).states()


class _Writer:
    def __init__(self, graph: Graph, encoder: Any) -> None:
        config = encoder.config
        names = _FAMILIES.get(config.model_type)
        if names is None or config.hidden_act != "gelu":
            raise OnomaError(
                f"an encoder of the kind {config.model_type!r} cannot be exported yet; those that can, with 'gelu' as "
                f"their activation: {', '.join(_FAMILIES)}. The torch backend runs any."
            )
        self.graph, self.encoder, self.config, self.names = graph, encoder, config, names
        self.heads, self.hidden = config.num_attention_heads, config.hidden_size
        self.weights = {name: value.detach().float().cpu().numpy() for name, value in encoder.state_dict().items()}
        self.greatest = self._greatest_inputs() if graph.int8 else {}
        self.split = graph.integers(0, 0, self.heads, self.hidden // self.heads)
        self.joined = graph.integers(0, 0, self.hidden)

    def states(self) -> str:
        x = self._embeddings()
        bias = self._attention_bias()
        for number in range(self.config.num_hidden_layers):
            x = self._layer(x, bias, f"encoder.layer.{number}")
        return x

    def _embeddings(self) -> str:
        graph, weights = self.graph, self.weights
        positions = weights["embeddings.position_embeddings.weight"]
        if self.names.counts_padding:
            positions = positions[self.config.pad_token_id + 1 :]
        if "embeddings.token_type_embeddings.weight" in weights:
            positions = positions + weights["embeddings.token_type_embeddings.weight"][0]
        place = graph.add("Slice", graph.constant(positions), graph.integers(0), self._length(), graph.integers(0))
        words = graph.rows(weights["embeddings.word_embeddings.weight"], IDS)
        return self._norm(graph.add("Add", words, place), "embeddings.LayerNorm")

    def _length(self) -> str:
        """How many tokens the texts have with their padding."""
        return self.graph.add("Slice", self.graph.add("Shape", IDS), self.graph.integers(1), self.graph.integers(2))

    def _attention_bias(self) -> str:
        """What is added to the attention from i to j: far below zero for padding, and MPNet's bias by distance."""
        graph = self.graph
        absent = graph.add("Sub", graph.add("Cast", MASK, to=TensorProto.FLOAT), graph.constant(1.0))
        padding = graph.add("Mul", absent, graph.constant(_FAR_BELOW))
        bias = graph.add("Unsqueeze", padding, graph.integers(1, 2))  # (texts, 1, 1, tokens)
        return bias if self.config.model_type != "mpnet" else graph.add("Add", bias, self._distance_bias())

    def _distance_bias(self) -> str:
        """MPNet's bias for each head and each distance j - i, looked up: (heads, tokens, tokens)."""
        graph, most = self.graph, self.config.max_position_embeddings
        with torch.inference_mode():
            table = self.encoder.encoder.compute_position_bias(torch.zeros(1, most, 1, device=self.encoder.device))[
                0
            ]  # (heads, most, most)
        by_distance = torch.cat([table[:, 1:, 0].flip(1), table[:, 0]], dim=1).T  # (2 most - 1, heads)
        place = graph.add("Slice", graph.constant(np.arange(most), np.int64), graph.integers(0), self._length())
        from_place, to_place = (graph.add("Unsqueeze", place, graph.integers(axis)) for axis in (1, 0))
        distance = graph.add("Add", graph.add("Sub", to_place, from_place), graph.integers(most - 1))
        found = graph.add("Gather", graph.constant(by_distance.cpu().numpy()), distance)
        return graph.add("Transpose", found, perm=[2, 0, 1])

    @torch.inference_mode()
    def _greatest_inputs(self) -> dict[str, Floats]:
        """The greatest absolute values of what layers read, by their names, for a mixture of tokens.

        Inputs that stand out are a matter of the encoder, not of the text. They do so most at special tokens, which
        are among the first.
        """
        found: dict[str, Floats] = {}
        hooks = []
        layers = [f"encoder.layer.{number}" for number in range(self.config.num_hidden_layers)]
        for name in (f"{layer}.{reader}" for layer in layers for reader in (self.names.query, _INNER)):
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

    def _layer(self, x: str, bias: str, layer: str) -> str:
        graph, names = self.graph, self.names
        attended = self._linear(self._attention(x, bias, layer), f"{layer}.{names.output}")
        x = self._norm(graph.add("Add", attended, x), f"{layer}.{names.norm}")
        name = f"{layer}.{_INNER}"
        inner = graph.gelu(self._linear(x, name, factors=self._factors(name, name)))
        outer = self._linear(inner, f"{layer}.output.dense", lowest=_LOWEST_GELU)
        return self._norm(graph.add("Add", outer, x), f"{layer}.output.LayerNorm")

    def _attention(self, x: str, bias: str, layer: str) -> str:
        graph, names = self.graph, self.names
        readers = [f"{layer}.{name}" for name in (names.query, names.key, names.value)]
        factors = self._factors(readers[0], *readers)
        scales = ((self.hidden // self.heads) ** -0.5, 1.0, 1.0)  # of the attention, put into the query
        query, key, value = (
            self._linear(x, name, scale=scale, factors=factors) for name, scale in zip(readers, scales, strict=True)
        )
        query, key, value = (graph.add("Reshape", one, self.split) for one in (query, key, value))
        query, value = (graph.add("Transpose", one, perm=[0, 2, 1, 3]) for one in (query, value))
        key = graph.add("Transpose", key, perm=[0, 2, 3, 1])
        scores = graph.add("Add", graph.add("MatMul", query, key), bias)  # (texts, heads, tokens, tokens)
        mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), value)
        return graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.joined)

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
