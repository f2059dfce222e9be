"""What a system has to say about its own training; the rest is the same for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from onoma.entities import EntityType
from onoma.training.collating import Collator
from onoma.training.development import DevelopmentSet
from onoma.training.examples import Example
from onoma.training.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Stage:
    """One training phase with an objective of its own."""

    name: str
    examples: list[Example]
    collator: Collator
    evaluate: Callable[[], dict[str, float]]  # on the development data; the best `f1` wins


@dataclass(frozen=True, slots=True)
class Material:
    """What there is to train with."""

    recipe: Recipe
    types: Sequence[EntityType]
    examples: list[Example]
    corpora: Sequence[str]  # names; examples count into them
    development: Sequence[DevelopmentSet]


class Training(Protocol):
    """A system's part in training."""

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> Any:
        """An untrained model on its encoder, as a backend."""

    def stages(self, backend: Any, material: Material) -> Iterator[Stage]:
        """The stages one after the other; each is asked for when the one before has been trained."""

    def finish(self, backend: Any, recipe: Recipe, development: Sequence[DevelopmentSet]) -> None:
        """Calibrate the trained model on development data."""


def training_of(system: str) -> Training:
    """The training of a system."""
    if system == "suner":
        from onoma.training.suner import SunerTraining

        return SunerTraining()
    from onoma.training.binder import BinderTraining

    return BinderTraining()
