"""FLAT, the lattice encoder of NerCo (Li et al., 2020): attention over characters and words by relative positions.

A node has a head (its first character) and a tail (its last one). For nodes i and j, with sinusoid vectors p of
distances,

    R_ij = ReLU(W_r (p[head_i - head_j] ⊕ p[head_i - tail_j] ⊕ p[tail_i - head_j] ⊕ p[tail_i - tail_j]))
    A_ij = (W_q x_i + u) · x_j + (W_q x_i + v) · W_(k,R) R_ij

and attention is the softmax of A, which is not scaled; there is no projection of keys. As in the public code, a single
layer uses only head_i - head_j and tail_i - tail_j.

R_ij depends only on head_i - head_j and the two lengths. So R is computed once for each of these combinations, instead
of for each pair of nodes, and then looked up: exactly the same result in a fraction of the memory. The last layer
computes the states of characters only, because those of words are not used; for two characters, even the product with
R is computed once for each distance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onoma.systems.nerco.inputs import LONGEST_NODE
from onoma.systems.nerco.options import NerCoOptions


class Nodes(NamedTuple):
    """The lexicon words of windows; see `LatticeInputs.arrays`."""

    first: Tensor  # (windows, nodes)
    last: Tensor  # (windows, nodes)
    rows: Tensor  # of the vector table (windows, nodes, rows); 0 is padding
    counts: Tensor  # (windows,)


class Flat(nn.Module):
    """Characters and words as one sequence of nodes, and layers of attention over them."""

    def __init__(self, hidden: int, options: NerCoOptions) -> None:
        super().__init__()
        self.options = options
        size = options.heads * options.head_size
        self.characters = nn.Linear(hidden, size)
        self.word_vectors = nn.Embedding(options.vector_rows + 1, options.vector_size, padding_idx=0)
        self.words = nn.Linear(options.vector_size, size)
        distances = 2 if options.layers == 1 else 4
        self.fusion = nn.Linear(distances * size, size)  # W_r
        self.layers = nn.ModuleList(FlatLayer(size, options) for _ in range(options.layers))
        self.dropout = nn.Dropout(options.embedding_dropout)

    def forward(self, states: Tensor, words: Tensor, nodes: Nodes) -> Tensor:
        """New states of the words of windows: (windows, words, hidden) -> (windows, words, size).

        Args:
            states: the encoder's states of the words (characters) of windows.
            words: number of words of each window (windows,).
        """
        with torch.autocast(states.device.type, enabled=False):
            length, count = states.shape[1], nodes.first.shape[1]
            x = torch.cat([self.characters(self.dropout(states.float())), self.word_states(nodes.rows)], dim=1)
            place = torch.arange(length, device=states.device)
            characters = place.expand(len(states), -1)
            first, last = (torch.cat([characters, one], dim=1) for one in (nodes.first, nodes.last))
            exists = torch.cat(
                [place < words[:, None], torch.arange(count, device=states.device) < nodes.counts[:, None]], dim=1
            )  # (windows, nodes)
            for number, layer in enumerate(self.layers):
                is_last = number == len(self.layers) - 1
                queries = length if is_last else length + count
                table = self.distance_table(length, longest=0 if is_last else LONGEST_NODE - 1)
                index = _table_index(first, last, queries, length, longest=0 if is_last else LONGEST_NODE - 1)
                x = layer(x, exists, table, index, characters_only=is_last)
        return x[:, :length]

    def word_states(self, rows: Tensor) -> Tensor:
        """The projected vectors of lexicon words, each the mean of its rows: (windows, nodes, size)."""
        count = (rows > 0).sum(-1, keepdim=True).clamp(min=1)
        mean = self.word_vectors(rows).sum(-2) / count
        states: Tensor = self.words(self.dropout(mean))
        return states

    def distance_table(self, length: int, longest: int) -> Tensor:
        """R for all distances of heads and lengths of query and key, flat: (combinations, size).

        `longest` is the largest length of a query, less 1; keys may be as long as `LONGEST_NODE`.
        """
        device = self.fusion.weight.device
        distance = torch.arange(-length + 1, length, device=device)[:, None, None]  # head_i - head_j
        query = torch.arange(longest + 1, device=device)[None, :, None]  # tail_i - head_i
        key = torch.arange(LONGEST_NODE, device=device)[None, None, :]  # tail_j - head_j
        between = [distance + 0 * (query + key), distance + query - key]
        if self.options.layers > 1:
            between[1:1] = [distance - key + 0 * query, distance + query + 0 * key]
        size = self.options.heads * self.options.head_size
        vectors = torch.cat([sinusoids(one, size) for one in between], dim=-1)
        return F.relu(self.fusion(vectors)).flatten(0, 2)


def _table_index(first: Tensor, last: Tensor, queries: int, length: int, longest: int) -> Tensor:
    """The row of `Flat.distance_table` for each pair of nodes: (windows, queries, nodes)."""
    distance = first[:, :queries, None] - first[:, None, :] + length - 1
    extent = last - first
    return (distance * (longest + 1) + extent[:, :queries, None]) * LONGEST_NODE + extent[:, None, :]


def sinusoids(places: Tensor, size: int) -> Tensor:
    """Vectors of positions or distances, of any sign: (...,) -> (..., size)."""
    half = size // 2
    rates = torch.exp(torch.arange(half, device=places.device) * (-math.log(10_000) / max(half - 1, 1)))
    angles = places.unsqueeze(-1).float() * rates
    return F.pad(torch.cat([angles.sin(), angles.cos()], dim=-1), (0, size - 2 * half))


class FlatLayer(nn.Module):
    """Attention by content and relative position, then a feed-forward network."""

    def __init__(self, size: int, options: NerCoOptions) -> None:
        super().__init__()
        self.heads = options.heads
        self.query, self.value, self.output = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)
        self.distance = nn.Linear(size, size, bias=False)  # W_(k,R)
        self.content_bias = nn.Parameter(torch.zeros(options.heads, options.head_size))  # u
        self.distance_bias = nn.Parameter(torch.zeros(options.heads, options.head_size))  # v
        self.inner, self.outer = nn.Linear(size, options.inner_size), nn.Linear(options.inner_size, size)
        self.norm, self.outer_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.dropout, self.inner_dropout = nn.Dropout(options.output_dropout), nn.Dropout(options.inner_dropout)

    def forward(self, x: Tensor, exists: Tensor, table: Tensor, index: Tensor, *, characters_only: bool) -> Tensor:
        """The states of the queries, which are the first nodes: the characters, or all nodes.

        Args:
            x: states (windows, nodes, size).
            exists: which nodes are no padding (windows, nodes).
            table: R by combination of distances (combinations, size).
            index: combination of each pair of nodes (windows, queries, nodes).
        """
        queries = index.shape[1]
        query = self._split(self.query(x[:, :queries]))  # (windows, queries, heads, head size)
        key, value = self._split(x), self._split(self.value(x))
        scores = torch.einsum("bihd,bjhd->bhij", query + self.content_bias, key)
        by_distance = self._distances_to_characters if characters_only else self._distances
        scores = scores + by_distance(query + self.distance_bias, self._split(self.distance(table)), index)
        weights = torch.softmax(scores.masked_fill(~exists[:, None, None], -torch.inf), dim=-1)
        mixed = torch.einsum("bhij,bjhd->bihd", weights, value).flatten(2)
        x = self.norm(x[:, :queries] + self.dropout(self.output(mixed)))
        inner = self.inner_dropout(F.relu(self.inner(x)))
        result: Tensor = self.outer_norm(x + self.dropout(self.outer(inner)))
        return result

    @staticmethod
    def _distances(query: Tensor, table: Tensor, index: Tensor) -> Tensor:
        """Scores by relative position: (windows, heads, queries, nodes)."""
        return torch.einsum("bihd,bijhd->bhij", query, table[index])

    def _distances_to_characters(self, query: Tensor, table: Tensor, index: Tensor) -> Tensor:
        """The same if queries are characters: those between characters are computed once for each distance."""
        length = query.shape[1]
        by_distance = torch.einsum(
            "bihd,ehd->bhie", query, table[::LONGEST_NODE]
        )  # (windows, heads, queries, distances)
        place = torch.arange(length, device=query.device)
        shift = (place[:, None] - place + length - 1).expand(*by_distance.shape[:2], -1, -1)
        return torch.cat([by_distance.gather(3, shift), self._distances(query, table, index[:, :, length:])], dim=3)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1)
