"""Which windows make up an epoch and its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from onoma.training.examples import Example

_POOL = 64  # batches whose windows are sorted by length together


class BucketedBatches:
    """Batches of similar length, drawn anew in every epoch; the seed and the epoch decide everything.

    Corpora are drawn with p_i ∝ min(n_i, cap)^(1/T): T = 1 is proportional, infinite is uniform; `shares`
    multiply the chance of single corpora. Without `draws`, an epoch of a single corpus is each of its windows once.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        batch_size: int,
        *,
        seed: int,
        temperature: float = 1.0,
        cap: int | None = None,
        draws: int | None = None,
        shares: Sequence[float] = (),
    ) -> None:
        self.lengths = np.array([len(example.pieces.ids) for example in examples])
        self.batch_size, self.seed, self.epoch = batch_size, seed, 0
        corpora = np.array([example.corpus for example in examples])
        present = np.unique(corpora)
        self.members = [np.flatnonzero(corpora == corpus) for corpus in present]
        sizes = np.array([min(len(members), cap or len(members)) for members in self.members], float)
        weights = sizes ** (1.0 / temperature) * (np.array(shares)[present] if shares else 1.0)
        self.probabilities = weights / weights.sum()
        self.draws = draws or int(sizes.sum())
        self.plain = draws is None and temperature == 1.0 and cap is None and len(set(shares)) <= 1

    def __len__(self) -> int:
        return -(-self.draws // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer at the start of an epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng((self.seed, self.epoch))
        chosen = generator.permutation(len(self.lengths)) if self.plain else self._draw(generator)
        batches = []
        pool = self.batch_size * _POOL
        for start in range(0, len(chosen), pool):
            part = chosen[start : start + pool]
            part = part[np.argsort(self.lengths[part], kind="stable")]
            batches += [part[i : i + self.batch_size].tolist() for i in range(0, len(part), self.batch_size)]
        generator.shuffle(batches)
        batches.sort(key=len, reverse=True)  # the one that is not full comes last, as processes that share them expect
        return iter(batches)

    def _draw(self, generator: np.random.Generator) -> NDArray[np.int64]:
        """Windows of every corpus in its share; a small corpus is repeated, each time in another order."""
        counts = generator.multinomial(self.draws, self.probabilities)
        parts = []
        for members, count in zip(self.members, counts, strict=True):
            rounds = -(-count // len(members))
            repeated = [generator.permutation(members) for _ in range(rounds)]
            parts.append(np.concatenate(repeated)[:count] if repeated else np.zeros(0, np.int64))
        return generator.permutation(np.concatenate(parts))
