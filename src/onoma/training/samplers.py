"""Which windows make up an epoch, and its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onoma.inputs.batches import bucket_by_length
from onoma.training.examples import Example

_POOL = 64  # batches whose windows are sorted by length together


def sampling_probabilities(
    sizes: ArrayLike, temperature: float, cap: int | None = None, weights: ArrayLike = 1.0
) -> NDArray[np.float64]:
    """The probability with which each corpus is drawn: p_i ∝ w_i · min(n_i, cap)^(1/T).

    A temperature of 1 draws in proportion to size; an infinite one draws all corpora equally often.

    >>> sampling_probabilities([4, 16], 2.0).round(3).tolist()
    [0.333, 0.667]
    """
    logarithms = np.log(np.minimum(sizes, np.inf if cap is None else cap)) / temperature
    values = np.exp(logarithms - logarithms.max()) * weights  # the difference avoids overflow at low temperatures
    return np.asarray(values / values.sum())


class BucketedSampler:
    """Batches of windows of similar length, drawn anew in every epoch; seed and epoch determine everything.

    Corpora are drawn by `sampling_probabilities`. With `samples_per_epoch` None and a single corpus, or corpora in
    proportion to their sizes, an epoch contains each window once.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        batch_size: int,
        *,
        seed: int,
        temperature: float = 1.0,
        cap: int | None = None,
        samples_per_epoch: int | None = None,
        weights: Sequence[float] = (),
    ) -> None:
        self.lengths = np.array([len(example.tokens.ids) for example in examples])
        self.batch_size, self.seed, self.epoch = batch_size, seed, 0
        corpora = np.array([example.corpus for example in examples])
        present = np.unique(corpora)
        self.members = [np.flatnonzero(corpora == corpus) for corpus in present]
        sizes = [len(members) for members in self.members]
        chosen = np.array(weights)[present] if weights else 1.0
        self.probabilities = sampling_probabilities(sizes, temperature, cap, chosen)
        self.samples = samples_per_epoch or int(np.minimum(sizes, cap or np.inf).sum())
        self.each_once = samples_per_epoch is None and temperature == 1.0 and cap is None and len(set(weights)) <= 1

    def __len__(self) -> int:
        return -(-self.samples // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer at the start of an epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng((self.seed, self.epoch))
        chosen = generator.permutation(len(self.lengths)) if self.each_once else self._draw(generator)
        batches: list[list[int]] = []
        pool = self.batch_size * _POOL
        for start in range(0, len(chosen), pool):
            part = chosen[start : start + pool]
            batches += [part[rows].tolist() for rows in bucket_by_length(self.lengths[part], self.batch_size)]
        generator.shuffle(batches)
        batches.sort(key=len, reverse=True)  # the incomplete batch comes last, as processes that share them expect
        return iter(batches)

    def _draw(self, generator: np.random.Generator) -> NDArray[np.int64]:
        """Windows of each corpus in its share; a small corpus is repeated, each time in another order."""
        counts = generator.multinomial(self.samples, self.probabilities)
        parts = []
        for members, count in zip(self.members, counts, strict=True):
            rounds = -(-count // len(members))
            repeated = [generator.permutation(members) for _ in range(rounds)]
            parts.append(np.concatenate(repeated)[:count] if repeated else np.zeros(0, np.int64))
        return generator.permutation(np.concatenate(parts))
