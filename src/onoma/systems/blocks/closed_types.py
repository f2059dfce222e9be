"""What runtimes share whose models know a closed set of types: a type is asked for by its name and becomes a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from onoma.entities import EntityType
from onoma.models.config import ModelConfig


class ClosedTypes:
    """Mixin of runtimes whose `labels` are the types of their configuration; a query is the number of each type."""

    config: ModelConfig

    def with_style(self, corpus: str | None) -> Self:
        """There are no styles: the same model."""
        return self

    def type_text(self, entity_type: EntityType) -> str:
        """Types are known by name."""
        return entity_type.name

    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """The number of each type."""
        numbers = {name: number for number, name in enumerate(self.config.types)}
        return np.array([[numbers[one.name]] for one in types], np.float32)
