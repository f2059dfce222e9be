"""Recipes: a training run as a YAML file, checked before anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError

from onoma.config import ModelConfig
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.systems.binder.options import BinderOptions
from onoma.systems.suner.options import STAGES, SunerOptions


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CorpusRecipe(_Strict):
    """Where documents come from: a corpus folder (below `--data`, or with ./ or ../ beside the recipe), its splits."""

    path: str
    train: str | None = "train"  # None: the corpus is only measured on
    dev: str | None = "dev"
    test: str | None = "test"
    dev_share: float = Field(default=0.1, gt=0, lt=1)  # cut from train where there is no dev split
    limit: PositiveInt | None = None  # documents of train, chosen by chance
    sample: NonNegativeInt = 0  # another number, another choice
    dev_limit: PositiveInt | None = None  # documents of dev, likewise
    names: Literal["inventory", "natural", "labels"] | None = None  # other than the others have
    known: Literal["all", "together"] = "all"  # which types a document says something of; see `partly_known`
    broader: dict[str, list[str]] = {}  # a type: narrower ones, whose mentions become mentions of it as well
    share: float = Field(default=1.0, gt=0)  # how much more often its windows are drawn than its size says


class DataRecipe(_Strict):
    """Corpora, how their types are named, and how they are cut and mixed."""

    corpora: list[CorpusRecipe] = Field(min_length=1)
    names: Literal["inventory", "natural", "labels"] = "inventory"
    language: str | None = None
    windows: Literal["across", "sentence"] = "across"
    drop_empty: bool = True  # windows without an entity are left out of training, as BINDER does
    sampling: Literal["proportional", "uniform"] | PositiveFloat = "proportional"
    cap: PositiveInt | None = None
    draws: PositiveInt | None = None  # windows an epoch; by default as many as there are
    most_types: PositiveInt | None = None  # asked in one batch; more are sampled


class TrainingRecipe(_Strict):
    """The optimiser's side."""

    epochs: PositiveFloat = 20
    max_steps: int = -1
    minutes: PositiveFloat | None = None  # training ends then at the latest, its rate having fallen by the clock
    batch_size: PositiveInt = 8
    accumulation: PositiveInt = 1
    rate: PositiveFloat = 3e-5
    head_rate: PositiveFloat | None = None  # of everything that is not pretrained; by default the same
    weight_decay: float = 0.01
    warmup: float = Field(default=0.1, ge=0, lt=1)
    max_grad_norm: float = 1.0
    evaluate_every: PositiveInt = 100  # steps
    patience: PositiveInt = 20  # evaluations without a better dev F1
    average: float = Field(default=0.0, ge=0, lt=1)  # decay a step of a running average of the weights; 0: none
    bf16: bool = True
    graphs: bool = True  # on one GPU, passes through encoders are recorded as CUDA graphs
    workers: NonNegativeInt = 2
    checkpoints: bool = True  # to resume after a kill
    type_dropout: float = Field(default=0.0, ge=0, le=1)  # types given without their description
    threshold_on: Literal["paper", "dev"] = "paper"


class _BinderChoice(_Strict):
    options: BinderOptions


class _SunerChoice(_Strict):
    options: SunerOptions


class Recipe(_Strict):
    """A whole training run."""

    system: Literal["binder", "suner"]
    encoder: str
    start: str | None = None  # a trained model of the same system and shape to begin with, instead of the bare encoder
    detector: str | None = None  # a SUNER whose trained detector is taken over; detection is not trained then
    seed: NonNegativeInt = 0
    max_tokens: int = Field(default=256, ge=130)
    overlap: NonNegativeInt = 16
    data: DataRecipe
    options: dict[str, Any] = {}
    training: TrainingRecipe = TrainingRecipe()
    stages: dict[str, dict[str, Any]] = {}  # what is different in single stages: name -> values of `training`

    def stage_training(self, name: str) -> TrainingRecipe:
        """The settings of a stage."""
        return TrainingRecipe.model_validate(self.training.model_dump() | self.stages.get(name, {}))

    def model_config_of(self, types: Sequence[EntityType], options: dict[str, Any]) -> ModelConfig:
        """What the model will say of itself."""
        folder = Path(self.encoder)
        return ModelConfig(
            system=self.system,
            encoder=folder.name if folder.is_dir() else self.encoder,
            max_tokens=self.max_tokens,
            overlap=self.overlap,
            types={one.name: one.description for one in types},
            options=options,
        )

    def binder_options(self) -> BinderOptions:
        """The options of the system, checked."""
        return _BinderChoice(options=self.options).options  # type: ignore[arg-type]  # pydantic makes it of a dict

    def suner_options(self) -> SunerOptions:
        """The same for SUNER."""
        return _SunerChoice(options=self.options).options  # type: ignore[arg-type]

    def stage_names(self) -> tuple[str, ...]:
        """The stages of this run, in their order."""
        if self.system == "binder":
            self.binder_options()
            return ("binder",)
        return STAGES[self.suner_options().form]

    def check(self) -> None:
        """Check what only the system can know."""
        if self.detector is not None and self.stage_names() != ("detection", "classification"):
            raise OnomaError("only a two-stage SUNER takes over a detector: leave 'detector' out of this recipe")
        names = self.stage_names()
        unknown = [name for name in self.stages if name not in names]
        if unknown:
            raise OnomaError(f"there is no stage {unknown[0]!r} here; the stages are: {', '.join(names)}")
        for name in self.stages:
            self.stage_training(name)


def load_recipe(source: str | os.PathLike[str] | dict[str, Any], changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe and change single values of it, as `--set training.epochs=3` does."""
    values = deepcopy(source) if isinstance(source, dict) else _beside(_read(Path(source)), Path(source).parent)
    for change in changes:
        _change(values, change)
    try:
        recipe = Recipe.model_validate(values)
        recipe.check()
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, one['loc']))}: {one['msg']} (got {one['input']!r})" for one in error.errors()]
        raise OnomaError("the recipe is not right:\n" + "\n".join(lines)) from error
    return recipe


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OnomaError(f"cannot read the recipe {path}: {error}") from error
    except yaml.YAMLError as error:
        raise OnomaError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise OnomaError(f"{path} is no recipe: it should have keys such as system, encoder and data")
    return values


def _beside(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Corpora whose paths begin with a dot lie beside the recipe, not below the folder of the data."""
    try:
        for one in values["data"]["corpora"]:
            if one["path"].startswith("."):
                one["path"] = str((folder / one["path"]).resolve())
    except (KeyError, TypeError, AttributeError):
        pass  # what is wrong will be said when the recipe is checked
    return values


def _change(values: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise OnomaError(f"--set takes KEY=VALUE, such as training.epochs=3, got {change!r}")
    *folders, last = key.split(".")
    place: Any = values
    try:
        for name in folders:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        place[int(last) if isinstance(place, list) else last] = yaml.safe_load(text)
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        raise OnomaError(f"--set {change}: the recipe has no place {key!r}") from error
    except yaml.YAMLError as error:
        raise OnomaError(f"--set {change}: the value is not valid YAML: {error}") from error
