"""Texts that several models read, each some parts of them, and what they found, put together in the whole texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.entities import Entity
from onoma.inputs.packing import PackedTexts

Integers = NDArray[np.int64]


class Part(NamedTuple):
    """A part of a text that one model reads."""

    route: int
    start: int
    end: int
    is_run: bool = False  # letters of the route's scripts inside of a part that another model reads


Block = Sequence[Part]
"""The parts of a text, or of a section of a long text: they cover it, and runs lie inside of other parts."""


def block_end(block: Block) -> int:
    """The character behind a block."""
    return max(part.end for part in block)


class PackedBlocks:
    """Blocks of texts. Proposals are counted in characters of all of these texts, one after the other."""

    def __init__(self, blocks: Sequence[tuple[str, Block]]) -> None:
        self.texts = [text for text, _ in blocks]
        self.edges = np.cumsum([0, *map(len, self.texts)], dtype=np.int64)
        self.parts = [(number, part) for number, (_, block) in enumerate(blocks) for part in block]
        rows = [self._place(number, part) for number, part in self.parts if part.is_run]
        self.runs = np.array(sorted(rows), np.int64).reshape(-1, 2)
        self.routes = sorted({part.route for _, part in self.parts})

    def _place(self, number: int, part: Part) -> tuple[int, int]:
        before = int(self.edges[number])
        return before + part.start, before + part.end

    def read_by(self, route: int) -> list[str]:
        """The parts that one model reads."""
        return [self.texts[number][part.start : part.end] for number, part in self.parts if part.route == route]

    def main_route(self) -> int:
        """The model that reads most characters."""
        lengths = {route: sum(map(len, self.read_by(route))) for route in self.routes}
        return max(lengths, key=lengths.__getitem__)

    def blocks_of(self, route: int) -> Integers:
        """The block that each of these parts belongs to."""
        return np.array([number for number, part in self.parts if part.route == route], np.int64)

    def place(self, route: int, packed: PackedTexts, found: Proposals) -> Proposals:
        """What one model found in its parts, in characters, without mentions inside of runs for another model."""
        own = [(self._place(number, part)[0], part.is_run) for number, part in self.parts if part.route == route]
        origin, is_run = np.array(own, np.int64).reshape(-1, 2).T
        part = packed.text_of(found.first)
        start = packed.words[found.first, 0] + origin[part]
        end = packed.words[found.last, 1] + origin[part]
        kept = is_run[part].astype(np.bool_) | ~self._inside_run(start, end)
        return found._replace(first=start, last=end - 1).take(kept)

    def _inside_run(self, start: Integers, end: Integers) -> NDArray[np.bool_]:
        if not len(self.runs):
            return np.zeros(len(start), np.bool_)
        run = np.searchsorted(self.runs[:, 0], start, side="right") - 1
        return np.asarray((run >= 0) & (end <= self.runs[run, 1]))

    def offsets(self, proposals: Proposals) -> tuple[Integers, Integers, Integers]:
        """The block, start and end of proposals in characters."""
        number = np.searchsorted(self.edges, proposals.first, side="right") - 1
        return number, proposals.first - self.edges[number], proposals.last + 1 - self.edges[number]

    def entities(self, decoded: Proposals, labels: Sequence[str]) -> list[list[Entity]]:
        """The entities of each block, given decoded proposals in characters."""
        number, start, end = self.offsets(decoded)
        entities: list[list[Entity]] = [[] for _ in self.texts]
        columns = (column.tolist() for column in (number, start, end, decoded.type, decoded.score))
        for block, first, after, kind, score in zip(*columns, strict=True):
            entities[block].append(Entity(first, after, self.texts[block][first:after], labels[kind], score))
        return entities
