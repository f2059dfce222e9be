"""Attention of packed tokens to each other and to encoded texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

Bias = Callable[[Tensor, Tensor, Tensor], Tensor]
"""See `Transformer.attention_bias`."""
PackedAttention = Callable[[Tensor, Tensor], Tensor]
"""From queries, keys and values of all texts (texts, length, 3, heads, size) and of packed tokens (tokens, 3, heads,
size), in one layer, to the mixed values of the packed tokens (tokens, heads, size)."""


class PackedTokens(NamedTuple):
    """Tokens of some texts, one text after the other; those behind the last edge are ignored."""

    positions: Tensor  # (tokens,)
    texts: Tensor  # (texts with tokens,): which of the encoded texts
    edges: Tensor  # (texts with tokens + 1,): the first token of each, and the end of the last one's
    most: int  # tokens of a text at most; one more if some are ignored


def padded_attention(tokens: PackedTokens, mask: Tensor, bias_of: Bias) -> PackedAttention:
    """Attention of tokens that are padded for it, and only for it."""
    counts, number = tokens.edges.diff(), len(tokens.positions)
    order = torch.arange(number, device=counts.device)
    text = (torch.searchsorted(tokens.edges, order, right=True) - 1).clamp(max=len(counts) - 1)
    place = (order - tokens.edges[text]).clamp(max=tokens.most - 1)  # ignored tokens are put where none is
    positions = mask.new_zeros((len(counts), tokens.most))
    positions[text, place] = tokens.positions
    exists = torch.arange(tokens.most, device=text.device) < counts[:, None]
    keys = torch.cat([torch.arange(mask.shape[1], device=text.device).expand(len(counts), -1), positions], dim=1)
    visible = torch.cat([mask[tokens.texts].bool(), exists], dim=1)
    bias = bias_of(positions, keys, visible[:, None])

    def attend(cached: Tensor, own: Tensor) -> Tensor:
        padded = own.new_zeros((len(counts), tokens.most, *own.shape[1:]))
        padded[text, place] = own
        everything = torch.cat([cached[tokens.texts, :, 1:], padded[:, :, 1:]], dim=1)
        key, value = everything.transpose(1, 3).unbind(2)
        mixed = F.scaled_dot_product_attention(padded[:, :, 0].transpose(1, 2), key, value, attn_mask=bias)
        return mixed.transpose(1, 2)[text, place]

    return attend
