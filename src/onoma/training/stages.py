"""What a system contributes to training; the rest is the same for all systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from onoma.entities import EntityType
from onoma.evaluation.candidates import EvaluationSet
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.training.aliases import Aliases, read_aliases
from onoma.training.collation import Collator
from onoma.training.examples import Example
from onoma.training.recipe import Recipe

Monitor = Literal["f1", "loss"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One training phase with its own objective.

    `evaluate` returns scores on development data. The weights with the best value of `monitor` are kept: the highest
    "f1" or the lowest "loss".
    """

    name: str
    examples: list[Example]
    collator: Collator
    evaluate: Callable[[], dict[str, float]]
    monitor: Monitor = "f1"
    has_teacher: bool = False  # whether it learns from the teacher of the recipe


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a run trains with."""

    recipe: Recipe
    types: Sequence[EntityType]
    examples: list[Example]
    corpora: Sequence[str]  # names; `Example.corpus` counts into them
    development: Sequence[EvaluationSet]

    def aliases(self) -> Aliases | None:
        """Other names of types, if the recipe has a file of them."""
        return read_aliases(Path(self.recipe.data.aliases)) if self.recipe.data.aliases else None


class Training(Protocol):
    """How a system is trained."""

    parts: tuple[str, ...]  # what a recipe may take from elsewhere, such as a trained part of another model

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> Any:
        """A runtime with an untrained model on its pretrained encoder."""

    def continued(self, model: Any, config: ModelConfig, tokenizer: WordTokenizer) -> Any:
        """A runtime with a trained model, which is to be trained further."""

    def stages(self, runtime: Any, data: TrainingData) -> Iterator[Stage]:
        """The stages in their order; each one is requested when the one before has been trained."""

    def finish(self, runtime: Any, recipe: Recipe, development: Sequence[EvaluationSet]) -> None:
        """Calibrate the trained model on development data."""
