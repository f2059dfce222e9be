"""Prototypical instances: a type shown by mentions of it (BINDER, table 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onoma.errors import OnomaError
from onoma.subwords import Subwords
from onoma.training.examples import Example

CONTEXT = 32  # tokens shown on each side of a mention
AT_TEST = 3  # instances of each type that a trained model keeps

Instance = tuple[list[int], int]
"""The tokens of an instance and the place of the marker in front of its mention."""


class Prototypes:
    """All mentions of the training data, by type, ready to be shown between markers."""

    def __init__(self, examples: Sequence[Example], types: int, subwords: Subwords) -> None:
        self.examples, self.subwords = examples, subwords
        self.markers = [subwords.tokenizer.token_to_id(name) for name in ("[unused1]", "[unused2]")]
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
            return [self.subwords.first, self.subwords.last], 0
        number, row = self.places[kind][int(generator.integers(len(self.places[kind])))]
        example = self.examples[number]
        ends = np.cumsum(example.pieces.counts)
        first, last, _ = example.gold[row]
        start, end = int(ends[first] - example.pieces.counts[first]), int(ends[last])
        ids: NDArray[np.int32] = example.pieces.ids
        before, after = ids[max(0, start - CONTEXT) : start].tolist(), ids[end : end + CONTEXT].tolist()
        opening, closing = self.markers
        tokens = [self.subwords.first, *before, opening, *ids[start:end].tolist(), closing, *after, self.subwords.last]
        return tokens, 1 + len(before)

    def for_use(self, seed: int) -> list[list[Instance]]:
        """The instances that a trained model keeps for each type."""
        generator = np.random.default_rng(seed)
        return [[self.draw(kind, generator) for _ in range(AT_TEST)] for kind in range(len(self.places))]
