"""Batches of windows that are given by their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from onoma.inputs.batches import Batch
from onoma.inputs.tokenizer import WordTokenIds
from onoma.training.collation import collate_examples
from onoma.training.examples import Example

SPECIAL = SimpleNamespace(pad=0, cls=1, sep=2)


def random_tokens(counts: Sequence[Sequence[int]], low: int, high: int, seed: int = 0) -> list[WordTokenIds]:
    """Random tokens of windows, given by the number of tokens of each word."""
    generator = np.random.default_rng(seed)
    return [
        WordTokenIds(generator.integers(low, high, sum(one)).astype(np.int32), np.array(one, np.int32))
        for one in counts
    ]


def batch_of(windows: Sequence[WordTokenIds], special_tokens: Any = SPECIAL) -> Batch:
    """Windows as one batch; `special_tokens` has `pad`, `cls` and `sep`, as a tokenizer has."""
    nothing, known = np.zeros((0, 3), np.int64), np.zeros(0, np.int64)
    return collate_examples([Example(one, nothing, known, 0) for one in windows], special_tokens)
