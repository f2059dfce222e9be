"""An encoder whose weights are prepared for inference.

Under autocast, every call converts all weights to bfloat16 again, computes queries, keys and values by three products,
and keeps layer norms and sums in float32. Here weights are converted once, queries, keys and values are one product,
and everything between the products has the precision of the weights. The states are those of `Transformer`, up to
rounding.

Tokens that are run against encoded texts, such as markers, are packed: no layer computes anything for padding.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onoma.inputs.tokenizer import SHAPE_BITS, TOKEN_MASK
from onoma.systems.blocks.packed_attention import PackedAttention, PackedTokens, padded_attention
from onoma.systems.blocks.transformer import HIDDEN, WORD_SHAPES, Transformer, TransformerLayer

logger = logging.getLogger(__name__)
_ALIGNMENT = 16  # of the rows of a bias; attention kernels copy a bias whose rows are not aligned, in every layer

Attention = Callable[[Tensor], Tensor]
"""From queries, keys and values (tokens, 3, heads, size) to mixed values (tokens, heads, size)."""


class EncodedTexts(NamedTuple):
    """The states of texts, and what tokens that are run against them need."""

    states: Tensor  # (texts, tokens, hidden)
    cache: list[Tensor]  # queries, keys and values of every layer, each (texts, tokens, 3, heads, size)
    mask: Tensor  # (texts, tokens)


def inference_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 on GPUs, float32 elsewhere."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


class InferenceTransformer:
    """The functions of `Transformer` on prepared weights; the encoder's own must not change any more."""

    @torch.no_grad()
    def __init__(self, transformer: Transformer, dtype: torch.dtype) -> None:
        config, embeddings = transformer.config, transformer.encoder.embeddings
        self.heads, self.dtype = int(config.num_attention_heads), dtype
        self.words = embeddings.word_embeddings.weight.detach().to(dtype)
        shapes = getattr(embeddings, WORD_SHAPES, None)
        self.shapes = None if shapes is None else shapes.weight.detach().to(dtype)
        places = embeddings.position_embeddings.weight[transformer.offset :]
        if hasattr(embeddings, "token_type_embeddings"):
            places = places + embeddings.token_type_embeddings.weight[0]
        self.places = places.detach().to(dtype)  # (positions, hidden)
        self.norm = _Norm(embeddings.LayerNorm, dtype)
        self.layers = [_Layer(layer, dtype) for layer in transformer.layers]
        distances = transformer.distance_bias()
        self.distances = None if distances is None else distances.to(dtype).contiguous()  # (heads, 2 · positions - 1)

    def token_vectors(self, ids: Tensor) -> Tensor:
        """The encoder's embeddings of tokens: (texts, tokens, hidden)."""
        if self.shapes is None:
            return F.embedding(ids, self.words)
        return F.embedding(ids & TOKEN_MASK, self.words) + F.embedding(ids >> SHAPE_BITS, self.shapes)

    def embed(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """The input of the first layer (..., hidden), from vectors of tokens or of markers."""
        return self.norm(vectors + F.embedding(positions, self.places))

    def attention_bias(self, queries: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
        """What is added to attention scores; see `Transformer.attention_bias`."""
        hidden = visible.logical_not()[:, None].to(self.dtype) * HIDDEN  # (texts, 1, queries or 1, keys)
        if self.distances is None:
            return _aligned(hidden.shape, hidden).copy_(hidden)
        place = keys[:, None] - queries[..., None] + len(self.places) - 1
        distance = self.distances[:, place].transpose(0, 1)  # (texts or 1, heads, queries, keys)
        shape = max(len(distance), len(hidden)), *distance.shape[1:]
        return torch.add(distance, hidden, out=_aligned(shape, hidden))

    def run(self, x: Tensor, bias: Tensor, cache: list[Tensor] | None = None) -> Tensor:
        """The states of tokens (texts, tokens, hidden); adds queries, keys and values of every layer to `cache`."""
        texts, length, _ = x.shape

        def attend(tokens: Tensor) -> Tensor:
            query, key, value = tokens.view(texts, length, *tokens.shape[1:]).transpose(1, 3).unbind(2)
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
            return mixed.transpose(1, 2).flatten(0, 1)

        states = x.flatten(0, 1)
        for layer in self.layers:
            states, own = layer(states, self.heads, attend)
            if cache is not None:
                cache.append(own.view(texts, length, *own.shape[1:]))
        return states.view_as(x)

    def encode(self, ids: Tensor, mask: Tensor, cache: list[Tensor] | None = None) -> Tensor:
        """Run texts as the encoder's own `forward` does."""
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        bias = self.attention_bias(positions, positions, mask[:, None])
        return self.run(self.embed(self.token_vectors(ids), positions), bias, cache)

    def encode_texts(self, ids: Tensor, mask: Tensor) -> EncodedTexts:
        """The same for texts against which tokens will be run."""
        cache: list[Tensor] = []
        return EncodedTexts(self.encode(ids, mask, cache), cache, mask)

    def run_packed(self, x: Tensor, tokens: PackedTokens, texts: EncodedTexts) -> Tensor:
        """The states of tokens (tokens, hidden) that attend to each other and to the text that they belong to."""
        attention = self._packed_attention(tokens, texts)
        for layer, cached in zip(self.layers, texts.cache, strict=True):
            x, _ = layer(x, self.heads, partial(attention, cached))
        return x

    def _packed_attention(self, tokens: PackedTokens, texts: EncodedTexts) -> PackedAttention:
        if kernel_works(texts.states.device, self.dtype, texts.cache[0].shape[-1]):
            from onoma.systems.blocks.packed_attention_kernel import kernel_attention

            return kernel_attention(tokens, texts.mask, self.distances)
        return padded_attention(tokens, texts.mask, self.attention_bias)


@cache
def kernel_works(device: torch.device, dtype: torch.dtype, size: int) -> bool:
    """Whether the kernel of `packed_attention_kernel`, which needs Triton and a C compiler, runs right on a device."""
    if device.type != "cuda" or size < 16 or size & (size - 1):
        return False
    try:
        from onoma.systems.blocks.packed_attention_kernel import try_kernel

        try_kernel(device, dtype, size)
    except Exception as error:  # Triton and the compilers that it calls raise almost anything
        logger.info("markers are padded, because their attention kernel does not work here: %s", error)
        return False
    return True


class _Layer:
    """One layer on tokens without padding."""

    def __init__(self, layer: TransformerLayer, dtype: torch.dtype) -> None:
        self.attended = _Linear((layer.query, layer.key, layer.value), dtype)
        self.output, self.norm = _Linear((layer.output,), dtype), _Norm(layer.norm, dtype)
        self.inner, self.outer = _Linear((layer.inner,), dtype), _Linear((layer.outer,), dtype)
        self.outer_norm = _Norm(layer.outer_norm, dtype)

    def __call__(self, x: Tensor, heads: int, attend: Attention) -> tuple[Tensor, Tensor]:
        """The states (tokens, hidden), and queries, keys and values (tokens, 3, heads, size)."""
        tokens = self.attended(x).view(len(x), 3, heads, -1)
        x = self.norm(self.output(attend(tokens).flatten(1)) + x)
        return self.outer_norm(self.outer(F.gelu(self.inner(x))) + x), tokens


class _Linear:
    """Linear layers of the same input as one."""

    def __init__(self, layers: tuple[Any, ...], dtype: torch.dtype) -> None:
        self.weight, self.bias = (_join([getattr(one, name) for one in layers], dtype) for name in ("weight", "bias"))

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class _Norm:
    """A layer norm."""

    def __init__(self, norm: nn.LayerNorm, dtype: torch.dtype) -> None:
        self.weight, self.bias, self.eps = norm.weight.detach().to(dtype), norm.bias.detach().to(dtype), norm.eps

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def _join(parts: list[Tensor], dtype: torch.dtype) -> Tensor:
    whole = parts[0] if len(parts) == 1 else torch.cat(parts)
    return whole.detach().to(dtype)


def _aligned(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """An empty tensor whose rows start at multiples of the alignment."""
    *outer, last = shape
    return like.new_empty((*outer, -(-last // _ALIGNMENT) * _ALIGNMENT))[..., :last]
