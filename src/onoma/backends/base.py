"""What the Extractor needs of a trained system, whatever runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onoma.batches import Batch
from onoma.config import ModelConfig
from onoma.decoding import Proposals
from onoma.entities import EntityType
from onoma.subwords import Subwords


class Backend(Protocol):
    """A trained system, ready to run. Its methods may be called from several threads."""

    name: str
    batches_together: int  # how many it is best given at once
    config: ModelConfig
    subwords: Subwords

    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """One row of numbers a type, independent of the other types and of any text."""

    def type_key(self, entity_type: EntityType) -> str:
        """What the row of a type depends on: types with the same key have the same row."""

    def style(self, corpus: str | None) -> Backend:
        """The same system, told to annotate as in one of the corpora it was trained on, where it can be told."""

    def propose(self, batch: Batch, types: NDArray[np.float32], floor: float) -> Proposals:
        """The spans of each window whose score for a type (row of `types`) is at least `floor`."""


def scores(margin: NDArray[np.float32], config: ModelConfig) -> NDArray[np.float32]:
    """Calibrated scores of raw margins: sigmoid(scale · margin + bias)."""
    return np.asarray(1.0 / (1.0 + np.exp(-(config.scale * margin + config.bias))), np.float32)


def lowest_margin(floor: float, config: ModelConfig) -> float:
    """The margin whose score is `floor`."""
    if floor <= 0.0:
        return -float("inf")
    return float((np.log(floor) - np.log1p(-floor) - config.bias) / config.scale) if floor < 1.0 else float("inf")
