"""Mixtures: draw documents from several corpora, for as long as training wants them.

The chance of a corpus with n documents is

    p_i ∝ min(n_i, cap) ^ (1 / T)

so that a temperature T of 1 draws in proportion to size, and an infinite one draws every corpus equally often.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count as count_up
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Corpus, Document
from onoma.errors import OnomaError

BLOCK = 4096
"""How many corpora are drawn at once; part of what makes a seed's draws what they are."""


class Draw(NamedTuple):
    """A document and the place of its corpus in the mixture."""

    corpus: int
    document: Document


class Mixture:
    """An endless, seeded stream of documents out of several corpora.

    Each corpus gives all of its documents, shuffled, before it gives one again (shuffled anew). The number of
    draws is all the state there is: `draws(start=n)` goes on where a stream of n draws ended.

    Args:
        corpora: where to draw from; none of them may be empty.
        sampling: "proportional" (temperature 1), "uniform" (infinite) or a temperature above zero.
        cap: the size from which on a corpus counts as no bigger.
        seed: the same seed gives the same stream.

    >>> mixture = Mixture([Corpus("news", [Document("a")] * 4), Corpus("tweets", [Document("b")] * 16)], sampling=2.0)
    >>> mixture.probabilities.round(3).tolist()
    [0.333, 0.667]
    """

    def __init__(
        self,
        corpora: Sequence[Corpus],
        *,
        sampling: Literal["proportional", "uniform"] | float = "proportional",
        cap: int | None = None,
        seed: int = 0,
    ) -> None:
        empty = [corpus.name for corpus in corpora if not len(corpus)]
        if empty or not corpora:
            raise OnomaError(f"a mixture needs corpora with documents; empty: {', '.join(empty) or 'the list itself'}")
        if cap is not None and cap < 1:
            raise OnomaError(f"the cap of a mixture is a number of documents, at least 1, got {cap!r}")
        self.corpora = tuple(corpora)
        self.seed = seed
        sizes = np.minimum([len(corpus) for corpus in corpora], cap or math.inf)
        logarithms = np.log(sizes) / _temperature(sampling)
        weights = np.exp(logarithms - logarithms.max())  # a small temperature would overflow without the difference
        self.probabilities: NDArray[np.float64] = weights / weights.sum()

    def __iter__(self) -> Iterator[Draw]:
        return self.draws()

    def draws(self, start: int = 0, count: int | None = None) -> Iterator[Draw]:
        """Draw number `start`, `start + 1` and so on: `count` of them, or without end."""
        if start < 0:
            raise OnomaError(f"draws are counted from 0, got start={start}")
        taken = self._taken_before(start)
        orders: dict[int, tuple[int, NDArray[np.int64]]] = {}
        for number in count_up(start) if count is None else range(start, start + count):
            if number % BLOCK == 0 or number == start:
                block = self._block(number // BLOCK)
            index = int(block[number % BLOCK])
            corpus = self.corpora[index]
            round_, position = divmod(int(taken[index]), len(corpus))
            if index not in orders or orders[index][0] != round_:
                orders[index] = round_, self._order(index, round_)
            taken[index] += 1
            yield Draw(index, corpus.documents[orders[index][1][position]])

    def _block(self, number: int) -> NDArray[np.int64]:
        """The corpora of draws number * BLOCK and following: any block can be made without those before it."""
        chances = np.random.default_rng([self.seed, 0, number]).random(BLOCK)
        cumulated = np.cumsum(self.probabilities)
        return np.minimum(np.searchsorted(cumulated, chances, side="right"), len(cumulated) - 1)

    def _order(self, index: int, round_: int) -> NDArray[np.int64]:
        """How a corpus is shuffled for its nth round."""
        return np.random.default_rng([self.seed, 1, index, round_]).permutation(len(self.corpora[index]))

    def _taken_before(self, start: int) -> NDArray[np.int64]:
        """How many documents each corpus gave in the first `start` draws."""
        taken = np.zeros(len(self.corpora), dtype=np.int64)
        for first in range(0, start, BLOCK):
            chosen = self._block(first // BLOCK)[: start - first]
            taken += np.bincount(chosen, minlength=len(self.corpora))
        return taken


def _temperature(sampling: str | float) -> float:
    named = {"proportional": 1.0, "uniform": math.inf}
    temperature = named.get(sampling) if isinstance(sampling, str) else sampling
    if temperature is None or not temperature > 0:
        raise OnomaError(f"sampling is 'proportional', 'uniform' or a temperature above 0, got {sampling!r}")
    return temperature
