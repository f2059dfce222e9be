"""FLAT against its formulas, computed for each pair of nodes by itself."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from onoma.systems.nerco.flat import Flat, FlatLayer, Nodes
from onoma.systems.nerco.options import NerCoOptions

torch.set_num_threads(1)
HIDDEN = 12
WORDS = torch.tensor([5, 3])
NODES = Nodes(
    first=torch.tensor([[0, 1, 3], [1, 0, 0]]),
    last=torch.tensor([[1, 4, 4], [2, 0, 0]]),
    rows=torch.tensor([[[1, 0], [2, 3], [4, 0]], [[3, 0], [0, 0], [0, 0]]]),
    counts=torch.tensor([3, 1]),
)


def make_flat(**options: Any) -> Flat:
    torch.manual_seed(0)
    flat = Flat(HIDDEN, NerCoOptions(heads=2, head_size=4, inner_size=10, vector_rows=4, vector_size=6, **options))
    for layer in flat.layers:
        assert isinstance(layer, FlatLayer)
        for bias in (layer.content_bias, layer.distance_bias):  # zero at first, which would hide mistakes
            torch.nn.init.normal_(bias)
    return flat.eval()


def slow_sinusoid(distance: int, size: int) -> list[float]:
    half = size // 2
    rates = [math.exp(-math.log(10_000) * place / (half - 1)) for place in range(half)]
    return [math.sin(distance * rate) for rate in rates] + [math.cos(distance * rate) for rate in rates]


def slow_flat(flat: Flat, states: Tensor, words: int, nodes: list[tuple[int, int, list[int]]]) -> Tensor:
    """The states of one window, without padding; nodes are (first, last, rows)."""
    options = flat.options
    size = options.heads * options.head_size
    edges = [(place, place) for place in range(words)] + [(first, last) for first, last, _ in nodes]
    vectors = [flat.characters(state) for state in states[:words]]
    vectors += [flat.words(flat.word_vectors.weight[rows].mean(0)) for _, _, rows in nodes]
    x = torch.stack(vectors)
    for layer in flat.layers:
        assert isinstance(layer, FlatLayer)
        query, value = layer.query(x), layer.value(x)
        rows = []
        for i, (head_i, tail_i) in enumerate(edges):
            heads = []
            for head in range(options.heads):
                part = slice(head * options.head_size, (head + 1) * options.head_size)
                scores = []
                for j, (head_j, tail_j) in enumerate(edges):
                    distances = [head_i - head_j, head_i - tail_j, tail_i - head_j, tail_i - tail_j]
                    if options.layers == 1:
                        distances = [distances[0], distances[3]]
                    p = torch.tensor([number for d in distances for number in slow_sinusoid(d, size)])
                    r = layer.distance(torch.relu(flat.fusion(p)))
                    content = (query[i, part] + layer.content_bias[head]) @ x[j, part]
                    scores.append(content + (query[i, part] + layer.distance_bias[head]) @ r[part])
                heads.append(torch.softmax(torch.stack(scores), 0) @ value[:, part])
            rows.append(torch.cat(heads))
        x = layer.norm(x + layer.output(torch.stack(rows)))
        x = layer.outer_norm(x + layer.outer(torch.relu(layer.inner(x))))
    return x[:words]


@pytest.mark.parametrize("layers", [1, 2])
def test_states_are_those_of_the_formulas(layers: int) -> None:
    flat, states = make_flat(layers=layers), torch.randn(2, 5, HIDDEN, generator=torch.Generator().manual_seed(1))
    found = flat(states, WORDS, NODES)
    torch.testing.assert_close(found[0], slow_flat(flat, states[0], 5, [(0, 1, [1]), (1, 4, [2, 3]), (3, 4, [4])]))
    torch.testing.assert_close(found[1, :3], slow_flat(flat, states[1], 3, [(1, 2, [3])]))


def test_a_window_without_lexicon_words_is_read() -> None:
    flat, states = make_flat(), torch.randn(1, 4, HIDDEN)
    none = torch.zeros((1, 0), dtype=torch.int64)
    nodes = Nodes(none, none, torch.zeros((1, 0, 1), dtype=torch.int64), torch.tensor([0]))
    torch.testing.assert_close(flat(states, torch.tensor([4]), nodes)[0], slow_flat(flat, states[0], 4, []))


def test_the_lattice_gets_gradients_but_its_padding_row_does_not() -> None:
    flat = make_flat()
    flat(torch.randn(2, 5, HIDDEN), WORDS, NODES)[0].square().sum().backward()
    assert all(one.grad is not None for one in flat.parameters())
    gradient = flat.word_vectors.weight.grad
    assert gradient is not None
    assert not gradient[0].any()
    assert gradient[1].any()
