"""The embeddings and layers of a pretrained encoder as functions.

An encoder's own `forward` numbers the tokens consecutively and lets every token attend to every other. Markers need
more: positions of their own, an attention mask per pair of tokens, and the keys and values of the text. Here the same
weights are run with all of these as arguments; with consecutive positions the result is that of `forward`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from onoma.errors import OnomaError
from onoma.systems.blocks.families import FAMILIES, LayerNames, layer_names

HIDDEN = -1e4
"""Added to attention scores of hidden tokens: finite, so that a row with nothing to attend to does not become NaN."""

KeyValueCache = Sequence[tuple[Tensor, Tensor]]
"""Keys and values of every layer, each (texts, heads, tokens, size)."""


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
        self.layers = [_Layer(layer, names, self.config) for layer in encoder.encoder.layer]

    @property
    def max_positions(self) -> int:
        """The number of positions."""
        return int(self.config.max_position_embeddings) - self.offset

    def token_vectors(self, ids: Tensor) -> Tensor:
        """The encoder's embeddings of tokens: (texts, tokens, hidden)."""
        vectors: Tensor = self.encoder.embeddings.word_embeddings(ids)
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

    def run(
        self, x: Tensor, bias: Tensor, cache: KeyValueCache | None = None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Run all layers; returns the states, and the keys and values of each layer. Tokens also attend to `cache`."""
        if torch.is_autocast_enabled(x.device.type):
            bias = bias.to(torch.get_autocast_dtype(x.device.type))  # once, not in every layer
        own = []
        with _kernels_for(bias):
            for number, layer in enumerate(self.layers):
                x, pair = layer(x, bias, cache[number] if cache is not None else None)
                own.append(pair)
        return x, own

    def run_sparse(
        self,
        x: Tensor,
        bias: Tensor,
        cache: KeyValueCache,
        window: Tensor,
        place: Tensor,
        windows: Tensor | None = None,
    ) -> Tensor:
        """As `run`, for so few tokens per window that most of a padded batch would be padding.

        Only attention is padded. `x` is (tokens, hidden), and token t stands at `place[t]` of `window[t]` among the
        places of `bias` (windows, 1 or heads, places, cached + places). With `windows`, these are only some of the
        windows of the cache.
        """
        if torch.is_autocast_enabled(x.device.type):
            bias = bias.to(torch.get_autocast_dtype(x.device.type))
        for layer, (key, value) in zip(self.layers, cache, strict=True):
            pair = (key, value) if windows is None else (key[windows], value[windows])
            x = layer.run_sparse(x, bias, pair, window, place)
        return x

    def encode(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Run texts as the encoder's own `forward` does."""
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        bias = self.attention_bias(positions, positions, mask[:, None])
        return self.run(self.embed(self.token_vectors(ids), positions), bias)


def _kernels_for(bias: Tensor) -> AbstractContextManager[None]:
    """Attention kernels that compute the gradient of a trained bias; that of cuDNN does not."""
    if bias.requires_grad and bias.is_cuda:
        return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
    return nullcontext()


class _Layer:
    """One layer: attention and feed-forward network, each followed by a layer norm."""

    def __init__(self, layer: nn.Module, names: LayerNames, config: Any) -> None:
        part: Callable[[str], Any] = layer.get_submodule
        self.query, self.key, self.value = part(names.query), part(names.key), part(names.value)
        self.output, self.norm = part(names.output), part(names.norm)
        self.inner, self.outer, self.outer_norm = part(names.inner), part(names.outer), part(names.outer_norm)
        self.heads, self.dropout = config.num_attention_heads, config.hidden_dropout_prob
        self.attention_dropout = config.attention_probs_dropout_prob

    def __call__(
        self, x: Tensor, bias: Tensor, cache: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        query, key, value = (self._heads(part(x)) for part in (self.query, self.key, self.value))
        mixed = self._attend(query, key, value, bias, cache)
        return self._feed_forward(x, mixed.transpose(1, 2).flatten(2)), (key, value)

    def run_sparse(
        self, x: Tensor, bias: Tensor, cache: tuple[Tensor, Tensor], window: Tensor, place: Tensor
    ) -> Tensor:
        """See `Transformer.run_sparse`."""
        windows, _, places, _ = bias.shape
        parts = (self.query, self.key, self.value)  # in one product, because few tokens take less time than a launch
        together = F.linear(x, torch.cat([one.weight for one in parts]), torch.cat([one.bias for one in parts]))
        padded = together.new_zeros((windows, places, together.shape[-1]))
        padded[window, place] = together
        query, key, value = (self._heads(one) for one in padded.chunk(3, dim=-1))
        mixed = self._attend(query, key, value, bias, cache)
        return self._feed_forward(x, mixed.transpose(1, 2)[window, place].flatten(1))

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, cache: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        if cache is not None:
            key, value = torch.cat([cache[0], key], dim=2), torch.cat([cache[1], value], dim=2)
        rate = self.attention_dropout if self.query.training else 0.0
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=rate)

    def _feed_forward(self, x: Tensor, mixed: Tensor) -> Tensor:
        training = self.query.training
        x = self.norm(F.dropout(self.output(mixed), self.dropout, training) + x)
        outer = self.outer(F.gelu(self.inner(x)))
        states: Tensor = self.outer_norm(F.dropout(outer, self.dropout, training) + x)
        return states
