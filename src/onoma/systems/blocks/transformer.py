"""The embeddings and layers of a pretrained encoder as functions.

An encoder's own `forward` numbers the tokens consecutively and lets every token attend to every other. Markers need
more: positions of their own, and an attention mask per pair of tokens. Here the same weights are run with these as
arguments; with consecutive positions the result is that of `forward`. `InferenceTransformer` runs trained weights.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from onoma.errors import OnomaError
from onoma.inputs.tokenizer import SHAPE_BITS, TOKEN_MASK
from onoma.systems.blocks.families import FAMILIES, LayerNames, layer_names

WORD_SHAPES = "word_shapes"
"""The name of the embeddings of word shapes, among those of an encoder."""
HIDDEN = -1e4
"""Added to attention scores of hidden tokens: finite, so that a row with nothing to attend to does not become NaN."""


class Transformer:
    """An encoder's embeddings and layers as functions. The weights are those of the encoder."""

    def __init__(self, encoder: Any) -> None:
        self.encoder, self.config = encoder, encoder.config
        names = layer_names(self.config)
        if names is None:
            raise OnomaError(
                f"markers need an encoder of a known family with 'gelu' as activation: {', '.join(FAMILIES)}; "
                f"this one is {self.config.model_type!r} with {getattr(self.config, 'hidden_act', 'another')!r}"
            )
        self.offset = self.config.pad_token_id + 1 if names.counts_padding else 0
        self.layers = [TransformerLayer(layer, names, self.config) for layer in encoder.encoder.layer]

    @property
    def max_positions(self) -> int:
        """The number of positions."""
        return int(self.config.max_position_embeddings) - self.offset

    def token_vectors(self, ids: Tensor) -> Tensor:
        """The encoder's embeddings of tokens: (texts, tokens, hidden)."""
        parts = self.encoder.embeddings
        words, shapes = parts.word_embeddings, getattr(parts, WORD_SHAPES, None)
        vectors: Tensor = words(ids) if shapes is None else words(ids & TOKEN_MASK) + shapes(ids >> SHAPE_BITS)
        return vectors

    def embed(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """The input of the first layer (texts, tokens, hidden), from vectors of tokens or of markers."""
        parts = self.encoder.embeddings
        x = vectors + parts.position_embeddings(positions + self.offset)
        if hasattr(parts, "token_type_embeddings"):
            x = x + parts.token_type_embeddings.weight[0]
        embedded: Tensor = parts.dropout(parts.LayerNorm(x))
        return embedded

    def attention_bias(self, queries: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
        """What is added to the attention scores of queries and keys: (texts, 1 or heads, queries, keys).

        Args:
            queries, keys: positions, (texts, tokens), or (1, tokens) if they are the same in all texts.
            visible: which keys a query attends to, (texts, queries or 1, keys).
        """
        bias = (1.0 - visible.to(torch.float32)[:, None]) * HIDDEN
        if self.config.model_type != "mpnet":
            return bias
        layers = self.encoder.encoder
        bucket = layers.relative_position_bucket(keys[:, None] - queries[..., None], num_buckets=32)
        distance: Tensor = layers.relative_attention_bias(bucket).permute(0, 3, 1, 2)  # (texts, heads, queries, keys)
        return bias + distance

    def distance_bias(self) -> Tensor | None:
        """The bias of all distances from -(positions - 1) to positions - 1 (heads, distances), if there is one."""
        if self.config.model_type != "mpnet":
            return None
        layers, most = self.encoder.encoder, self.max_positions - 1
        distance = torch.arange(-most, most + 1, device=layers.relative_attention_bias.weight.device)
        bias: Tensor = layers.relative_attention_bias(layers.relative_position_bucket(distance, num_buckets=32))
        return bias.T

    def run(self, x: Tensor, bias: Tensor) -> Tensor:
        """The states of tokens (texts, tokens, hidden), by all layers."""
        if torch.is_autocast_enabled(x.device.type):
            bias = bias.to(torch.get_autocast_dtype(x.device.type))  # once, not in every layer
        with _kernels_for(bias):
            for layer in self.layers:
                x = layer(x, bias)
        return x

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Run texts as the encoder's own `forward` does."""
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        bias = self.attention_bias(positions, positions, mask[:, None])
        return self.run(self.embed(self.token_vectors(ids), positions), bias)


def _kernels_for(bias: Tensor) -> AbstractContextManager[None]:
    """Attention kernels that compute the gradient of a trained bias; that of cuDNN does not."""
    if bias.requires_grad and bias.is_cuda:
        return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
    return nullcontext()


def _plain_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor, dropout_p: float) -> Tensor:
    """Attention in separate steps: on CPUs, its gradient takes a third to a tenth of the time of the fused kernels'."""
    scores = torch.matmul(query, key.transpose(-1, -2)) * query.shape[-1] ** -0.5 + attn_mask
    shares = F.dropout(scores.softmax(-1), dropout_p) if dropout_p else scores.softmax(-1)
    return torch.matmul(shares, value)


class TransformerLayer:
    """One layer: attention and feed-forward network, each followed by a layer norm."""

    def __init__(self, layer: nn.Module, names: LayerNames, config: Any) -> None:
        part: Callable[[str], Any] = layer.get_submodule
        self.query, self.key, self.value = part(names.query), part(names.key), part(names.value)
        self.output, self.norm = part(names.output), part(names.norm)
        self.inner, self.outer, self.outer_norm = part(names.inner), part(names.outer), part(names.outer_norm)
        self.heads = config.num_attention_heads
        dropouts = [one for one in layer.modules() if isinstance(one, nn.Dropout)]
        self.attention_dropout, self.dropout = dropouts[0], dropouts[-1]

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        query, key, value = (self._heads(part(x)) for part in (self.query, self.key, self.value))
        rate = self.attention_dropout.p if self.query.training else 0.0
        attend = _plain_attention if query.is_cpu and query.requires_grad else F.scaled_dot_product_attention
        mixed = attend(query, key, value, attn_mask=bias, dropout_p=rate)
        return self._feed_forward(x, mixed.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)

    def _feed_forward(self, x: Tensor, mixed: Tensor) -> Tensor:
        x = self.norm(self._drop(self.output(mixed)) + x)
        outer = self.outer(F.gelu(self.inner(x)))
        states: Tensor = self.outer_norm(self._drop(outer) + x)
        return states

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout.p, self.query.training) if self.dropout.p else x
