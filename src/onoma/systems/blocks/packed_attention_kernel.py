"""Attention of packed tokens to each other and to encoded texts, as one kernel for GPUs (Triton).

A text has few such tokens: with padding, attention would copy all keys and values of the texts in every layer and
mostly compute padding. The kernel reads keys and values where the layers have written them.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from onoma.systems.blocks.packed_attention import PackedAttention, PackedTokens

_QUERIES, _KEYS = 16, 64  # that are read at once
_WARPS = 4


@triton.jit
def _add_keys(query, places, key, value, key_places, exists, distances, scale, largest, total, mixed, BIASED):  # noqa: N803
    """Add keys and values (keys, size) to the softmax of queries: largest score, sum of weights, mixed values."""
    scores = tl.dot(query, tl.trans(key)) * scale  # (queries, keys)
    if BIASED:
        bias = tl.load(distances + key_places[None, :] - places[:, None], mask=exists[None, :], other=0.0)
        scores += bias.to(tl.float32)
    scores = tl.where(exists[None, :], scores, float("-inf"))
    now = tl.maximum(largest, tl.max(scores, 1))
    weights, shrink = tl.exp(scores - now[:, None]), tl.exp(largest - now)
    mixed = mixed * shrink[:, None] + tl.dot(weights.to(value.dtype), value)
    return now, total * shrink + tl.sum(weights, 1), mixed


@triton.jit
def _attend(
    tokens,  # queries, keys and values of packed tokens: (tokens, 3, heads, size)
    cached,  # those of texts: (texts, length, 3, heads, size)
    result,  # (tokens, heads, size)
    positions,
    texts,
    edges,
    lengths,  # tokens of each text
    distances,  # (heads, distance_stride): the bias of distances, with distance 0 at `center`
    text_stride,
    distance_stride,
    center,
    scale,
    HEADS: tl.constexpr,  # noqa: N803
    SIZE: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr,  # noqa: N803
    KEYS: tl.constexpr,  # noqa: N803
    BIASED: tl.constexpr,  # noqa: N803
):
    """One head of the tokens of one text."""
    number, head = tl.program_id(0), tl.program_id(1)
    text = tl.load(texts + number).to(tl.int64)
    begin, end = tl.load(edges + number).to(tl.int32), tl.load(edges + number + 1).to(tl.int32)
    length = tl.load(lengths + text)
    row = 3 * HEADS * SIZE
    own, other = tokens + head * SIZE, cached + text * text_stride + head * SIZE
    bias = distances + head * distance_stride + center
    column = tl.arange(0, SIZE)[None, :]
    for first in range(begin, end, QUERIES):
        queries = first + tl.arange(0, QUERIES)
        asked = queries < end
        query = tl.load(own + queries[:, None] * row + column, mask=asked[:, None], other=0.0)
        places = tl.load(positions + queries, mask=asked, other=0)
        largest = tl.full([QUERIES], float("-inf"), tl.float32)
        total = tl.zeros([QUERIES], tl.float32)
        mixed = tl.zeros([QUERIES, SIZE], tl.float32)
        for start in range(0, length, KEYS):
            keys = start + tl.arange(0, KEYS)
            exists = keys < length
            from_key = other + HEADS * SIZE + keys[:, None] * row + column
            key = tl.load(from_key, mask=exists[:, None], other=0.0)
            value = tl.load(from_key + HEADS * SIZE, mask=exists[:, None], other=0.0)
            largest, total, mixed = _add_keys(
                query, places, key, value, keys, exists, bias, scale, largest, total, mixed, BIASED
            )
        for start in range(begin, end, QUERIES):
            keys = start + tl.arange(0, QUERIES)
            exists = keys < end
            from_key = own + HEADS * SIZE + keys[:, None] * row + column
            key = tl.load(from_key, mask=exists[:, None], other=0.0)
            value = tl.load(from_key + HEADS * SIZE, mask=exists[:, None], other=0.0)
            key_places = tl.load(positions + keys, mask=exists, other=0)
            largest, total, mixed = _add_keys(
                query, places, key, value, key_places, exists, bias, scale, largest, total, mixed, BIASED
            )
        place = result + queries[:, None] * (HEADS * SIZE) + head * SIZE + column
        tl.store(place, (mixed / total[:, None]).to(result.dtype.element_ty), mask=asked[:, None])


def kernel_attention(tokens: PackedTokens, mask: Tensor, distances: Tensor | None) -> PackedAttention:
    """The same as `padded_attention`, for texts that are padded at their end; the values of ignored tokens are random.

    `distances` is the bias of distances from -(positions - 1) to positions - 1 (heads, distances), if there is one.
    """
    lengths = mask.sum(1, dtype=torch.int32)

    def attend(cached: Tensor, own: Tensor) -> Tensor:
        _, _, heads, size = own.shape
        mixed = own.new_empty((len(own), heads, size))
        table = own if distances is None else distances
        width = 0 if distances is None else distances.shape[1]
        with torch.cuda.device_of(own):
            _attend[len(tokens.texts), heads](
                own,
                cached,
                mixed,
                tokens.positions,
                tokens.texts,
                tokens.edges,
                lengths,
                table,
                cached.stride(0),
                width,
                width // 2,
                size**-0.5,
                HEADS=heads,
                SIZE=size,
                QUERIES=_QUERIES,
                KEYS=_KEYS,
                BIASED=distances is not None,
                num_warps=_WARPS,
                num_stages=2,
            )
        return mixed

    return attend


def try_kernel(device: torch.device, dtype: torch.dtype, size: int) -> None:
    """Run the kernel on random tokens; an error if it fails, or if the result is not that of plain attention."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(device, dtype)

    lengths, places = (70, 5), (3, 40, 0, 2, 4)  # of the texts; of two tokens of the first and three of the second
    cached, own, distances = random(2, lengths[0], 3, 2, size), random(5, 3, 2, size), random(2, 2 * lengths[0] - 1)
    mask = (torch.arange(lengths[0]) < torch.tensor(lengths)[:, None]).long().to(device)
    positions, texts, edges = (torch.tensor(one, device=device) for one in (places, (0, 1), (0, 2, 5)))
    tokens = PackedTokens(positions, texts, edges, most=3)
    found = kernel_attention(tokens, mask, distances)(cached, own).float()
    for text, (begin, end) in enumerate(((0, 2), (2, 5))):
        everything = torch.cat([cached[text, : lengths[text]], own[begin:end]]).float()  # (keys, 3, heads, size)
        keys = torch.cat([torch.arange(lengths[text], device=device), positions[begin:end]])
        bias = distances.float()[:, keys - positions[begin:end, None] + lengths[0] - 1]  # (heads, tokens, keys)
        scores = torch.einsum("qhd,khd->hqk", own[begin:end, 0].float(), everything[:, 1]) * size**-0.5 + bias
        wanted = torch.einsum("hqk,khd->qhd", scores.softmax(-1), everything[:, 2])
        torch.testing.assert_close(found[begin:end], wanted, atol=0.05, rtol=0.05)
