"""Prototypical instances: types represented by mentions in context (BINDER, table 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onoma.errors import OnomaError
from onoma.inputs.tokenizer import WordTokenizer
from onoma.training.examples import Example

CONTEXT = 32  # tokens on each side of a mention
INSTANCES = 3  # of each type that a trained model keeps

Instance = tuple[list[int], int]
"""The tokens of an instance and the place of the marker before its mention."""


class Prototypes:
    """All mentions of the training data by type, each between markers."""

    def __init__(self, examples: Sequence[Example], types: int, tokenizer: WordTokenizer) -> None:
        self.examples, self.tokenizer = examples, tokenizer
        self.markers = [tokenizer.tokenizer.token_to_id(name) for name in ("[unused1]", "[unused2]")]
        if None in self.markers:
            raise OnomaError("prototypical instances need the tokens [unused1] and [unused2], which this encoder lacks")
        places: list[list[tuple[int, int]]] = [[] for _ in range(types)]
        for number, example in enumerate(examples):
            for row, kind in enumerate(example.gold[:, 2].tolist()):
                places[kind].append((number, row))
        self.places = places

    def draw(self, kind: int, generator: np.random.Generator) -> Instance:
        """A random mention of a type in its sentence."""
        if not self.places[kind]:
            return [self.tokenizer.cls, self.tokenizer.sep], 0
        number, row = self.places[kind][int(generator.integers(len(self.places[kind])))]
        example = self.examples[number]
        ends = np.cumsum(example.tokens.counts)
        first, last, _ = example.gold[row]
        start, end = int(ends[first] - example.tokens.counts[first]), int(ends[last])
        ids: NDArray[np.int32] = example.tokens.ids
        before, after = ids[max(0, start - CONTEXT) : start].tolist(), ids[end : end + CONTEXT].tolist()
        opening, closing = self.markers
        tokens = [self.tokenizer.cls, *before, opening, *ids[start:end].tolist(), closing, *after, self.tokenizer.sep]
        return tokens, 1 + len(before)

    def sample(self, seed: int) -> list[list[Instance]]:
        """The instances that a trained model keeps for each type."""
        generator = np.random.default_rng(seed)
        return [[self.draw(kind, generator) for _ in range(INSTANCES)] for kind in range(len(self.places))]
