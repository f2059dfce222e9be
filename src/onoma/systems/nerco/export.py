"""NerCo as an ONNX graph, which outputs tag scores; the best tags are found in numpy."""

from __future__ import annotations

from pathlib import Path

import torch
from onnx import TensorProto
from torch import nn

from onoma.errors import OnomaError
from onoma.models.folder import ONNX_FILE
from onoma.onnx.encoder import TOKENS, array, encoder_states, head
from onoma.onnx.writer import Floats, GraphInput, GraphWriter
from onoma.systems.blocks.encoders import max_positions
from onoma.systems.nerco.flat import Flat, FlatLayer
from onoma.systems.nerco.inputs import LONGEST_NODE
from onoma.systems.nerco.model import NerCo

LATTICE_INPUTS = {
    "hidden": GraphInput(("texts", 1, 1, "keys"), TensorProto.FLOAT),
    "node_rows": GraphInput(("texts", "nodes", "rows")),
    "node_distances": GraphInput(("texts", "words", "nodes")),
    "word_distances": GraphInput(("distances",)),
    "word_pairs": GraphInput(("words", "words")),
}
MANY_POSITIONS = 2048
"""Words of a window at most, if the positions of the encoder are not numbered."""


@torch.inference_mode()
def export_nerco(model: NerCo, folder: Path, *, int8: bool = False) -> None:
    """Write model.onnx. Its outputs are `emissions` (texts, words, tags), and the scores of transitions.

    Input `first` has the place (text, token) of the first token of each word. The others are those of a lattice, see
    `onoma.systems.nerco.onnx_runtime`.
    """
    graph = GraphWriter(int8=int8)
    encoded = graph.node("GatherND", encoder_states(graph, model.text_encoder), "first")  # (texts, words, hidden)
    inputs = TOKENS | {"first": GraphInput(("texts", "words", 2))}
    states = encoded
    if model.lattice is not None:
        most_words = max_positions(model.text_encoder) or MANY_POSITIONS
        states = _LatticeWriter(graph, model.lattice, most_words).states(encoded)
        inputs |= LATTICE_INPUTS
    scores = head(graph, states, model.tag_scores)
    if model.encoder_scores is not None:
        scores = graph.node("Add", scores, head(graph, encoded, model.encoder_scores))
    transitions = model.crf.transition_scores()._asdict()
    outputs = {"emissions": scores} | {name: graph.constant(value) for name, value in transitions.items()}
    graph.save(folder / ONNX_FILE, inputs, outputs)


class _LatticeWriter:
    """FLAT with one layer, whose queries are the words (characters) of a text."""

    def __init__(self, graph: GraphWriter, lattice: Flat, most_words: int) -> None:
        if len(lattice.layers) > 1:
            raise OnomaError(
                "a lattice of several layers cannot be exported. Fix: use the torch backend, or train with "
                "options.layers=1"
            )
        layer = lattice.layers[0]
        assert isinstance(layer, FlatLayer)
        self.graph, self.lattice, self.layer, self.most_words = graph, lattice, layer, most_words
        self.heads, self.head_size = lattice.options.heads, lattice.options.head_size

    def states(self, encoded: str) -> str:
        """The states of words: (texts, words, size)."""
        graph, layer = self.graph, self.layer
        characters = head(graph, encoded, self.lattice.characters)  # (texts, words, size)
        words = self._word_states()  # (texts, nodes, size)
        every = graph.node("Concat", characters, words, axis=1)
        query = head(graph, characters, layer.query)
        keys = self._split(every, [0, 2, 3, 1])  # (texts, heads, head size, words + nodes)
        content = graph.node("MatMul", self._split(self._biased(query, layer.content_bias), [0, 2, 1, 3]), keys)
        relative = self._biased(query, layer.distance_bias)
        distance = graph.node("Concat", self._between_words(relative), self._to_nodes(relative), axis=3)
        scores = graph.node("Sum", content, distance, "hidden")  # (texts, heads, words, words + nodes)
        values = self._split(head(graph, every, layer.value), [0, 2, 1, 3])
        mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), values)
        mixed = graph.node("Transpose", mixed, perm=[0, 2, 1, 3])
        joined = graph.node("Reshape", mixed, graph.integers(0, 0, self.heads * self.head_size))
        x = self._norm(graph.node("Add", characters, head(graph, joined, layer.output)), layer.norm)
        inner = graph.node("Relu", head(graph, x, layer.inner))
        return self._norm(graph.node("Add", x, head(graph, inner, layer.outer)), layer.outer_norm)

    def _word_states(self) -> str:
        """The mean of the vectors of each node, projected."""
        graph = self.graph
        vectors = graph.embedding(array(self.lattice.word_vectors.weight), "node_rows")
        total = graph.node("ReduceSum", vectors, graph.integers(2), keepdims=0)
        exists = graph.node("Greater", "node_rows", graph.integers(0))
        count = graph.node("ReduceSum", graph.node("Cast", exists, to=TensorProto.FLOAT), graph.integers(2))
        mean = graph.node("Div", total, graph.node("Max", count, graph.constant(1.0)))
        return head(graph, mean, self.lattice.words)

    def _biased(self, query: str, bias: torch.Tensor) -> str:
        return self.graph.add_bias(query, array(bias).reshape(-1))

    def _split(self, x: str, order: list[int]) -> str:
        """Vectors cut into heads, (texts, places, heads, head size), in another order of axes."""
        cut = self.graph.node("Reshape", x, self.graph.integers(0, 0, self.heads, self.head_size))
        return self.graph.node("Transpose", cut, perm=order)

    def _norm(self, x: str, norm: nn.LayerNorm) -> str:
        return self.graph.layer_norm(x, array(norm.weight), array(norm.bias), norm.eps)

    def _between_words(self, query: str) -> str:
        """Scores by the distances of two words: (texts, heads, words, words).

        The scores of each word are computed for all distances that occur, then each pair takes one of them.
        """
        graph = self.graph
        table = graph.large_constant(self._distances()[:, 0])  # (distances, size)
        rows = graph.node("Add", "word_distances", graph.integers(self.most_words - 1))
        near = graph.node("Reshape", graph.node("Gather", table, rows), graph.integers(0, self.heads, self.head_size))
        near = graph.node("Transpose", near, perm=[1, 2, 0])  # (heads, head size, distances)
        scores = graph.node("MatMul", self._split(query, [0, 2, 1, 3]), near)  # (texts, heads, words, distances)
        flat = graph.node("Reshape", scores, graph.integers(0, 0, -1))
        return graph.node("Gather", flat, "word_pairs", axis=2)

    def _to_nodes(self, query: str) -> str:
        """Scores by the distances of a word and a lexicon word: (texts, heads, words, nodes)."""
        graph, size = self.graph, self.heads * self.head_size
        table = graph.large_constant(self._distances().reshape(-1, size))
        rows = graph.node("Add", "node_distances", graph.integers((self.most_words - 1) * LONGEST_NODE))
        distance = graph.node("Gather", table, rows)  # (texts, words, nodes, size)
        product = graph.node("Mul", distance, graph.node("Unsqueeze", query, graph.integers(2)))
        shape = graph.integers(0, 0, -1, self.heads, self.head_size)
        scores = graph.node("ReduceSum", graph.node("Reshape", product, shape), graph.integers(4), keepdims=0)
        return graph.node("Transpose", scores, perm=[0, 3, 1, 2])

    def _distances(self) -> Floats:
        """W_(k,R) R for all distances of heads and lengths of keys: (distances, lengths, size)."""
        table = self.layer.distance(self.lattice.distance_table(self.most_words, longest=0))
        return array(table).reshape(2 * self.most_words - 1, LONGEST_NODE, -1)
