"""Recipes: a training run as a YAML file, checked before anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError

from onoma.entities import EntityType
from onoma.errors import DataError, OnomaError
from onoma.models.config import CATCH_ALL_LABELS, ModelConfig
from onoma.models.folder import ModelFolder, RoutedFolder, open_folder
from onoma.structured import parse_yaml, read_yaml
from onoma.systems.registry import SYSTEMS, get_system

RENAMED = {
    "training.rate": "training.learning_rate",
    "training.head_rate": "training.head_learning_rate",
    "training.accumulation": "training.gradient_accumulation_steps",
    "training.warmup": "training.warmup_ratio",
    "training.average": "training.ema_decay",
    "training.graphs": "training.cuda_graphs",
    "training.evaluate_every": "training.eval_steps",
    "training.minutes": "training.max_minutes",
    "training.workers": "training.dataloader_workers",
    "training.type_dropout": "training.description_dropout",
    "training.threshold_on": "training.threshold_from",
    "data.draws": "data.samples_per_epoch",
    "data.most_types": "data.max_types_per_batch",
    "data.cap": "data.size_cap",
    "data.drop_empty": "data.drop_empty_windows",
    "data.corpora.share": "data.corpora.weight",
    "data.corpora.sample": "data.corpora.sample_seed",
    "data.corpora.known": "data.corpora.annotation",
    "data.corpora.broader": "data.corpora.broader_types",
    "detector": "parts.detector",
}
"""Former keys of recipes, and what they are called now."""


KeptLabels = Literal["all", "unless_contradicted", "none"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class CorpusRecipe(_Strict):
    """A corpus: its folder (below `--data`, or with ./ or ../ relative to the recipe) and its splits."""

    path: str
    train: str | None = "train"  # None: the corpus is only used for evaluation
    dev: str | None = "dev"
    test: str | None = "test"
    dev_share: float = Field(default=0.1, gt=0, lt=1)  # of train, if there is no dev split
    limit: PositiveInt | None = None  # random documents of train
    sample_seed: NonNegativeInt = 0  # of this choice
    dev_limit: PositiveInt | None = None  # random documents of dev
    names: Literal["inventory", "natural", "labels"] | None = None  # if different from the other corpora
    annotation: Literal["complete", "by_cooccurrence"] = "complete"  # see `restrict_annotation`
    broader_types: dict[str, list[str]] = {}  # type -> narrower types, whose mentions become mentions of it, too
    weight: float = Field(default=1.0, gt=0)  # factor of the probability of drawing its windows


class RelabelRecipe(_Strict):
    """Predictions of a trained model become labels of the train data."""

    model: str  # a folder, a hub name, or "embedded"
    threshold: float = Field(default=0.9, gt=0, le=1)  # the score that predictions must reach
    keep: KeptLabels = "all"  # which labels of the corpora stay


class DataRecipe(_Strict):
    """Corpora, how their types are named, and how they are cut and mixed."""

    corpora: list[CorpusRecipe] = Field(min_length=1)
    names: Literal["inventory", "natural", "labels"] = "inventory"
    language: str | None = None
    windows: Literal["across", "sentence"] = "across"
    drop_empty_windows: bool = True  # train without windows that have no mention, as BINDER does
    sampling: Literal["proportional", "uniform"] | PositiveFloat = "proportional"
    size_cap: PositiveInt | None = None
    samples_per_epoch: PositiveInt | None = None  # windows; by default as many as there are
    max_types_per_batch: PositiveInt | None = None  # others are sampled
    aliases: str | None = None  # a file of other names of types
    nonsense_types: NonNegativeInt = 0  # names per batch that have no mention anywhere
    simulate_missing: float = Field(default=0.0, ge=0, lt=1)  # share of the mentions of train that are dropped
    relabel: RelabelRecipe | None = None  # after that
    exclude_evaluated: bool = False  # train without texts that are in dev or test splits of the recipe
    mask_repeated: bool = False  # unlabelled spans whose words are labelled elsewhere are no negatives


class TrainingRecipe(_Strict):
    """Optimisation and evaluation."""

    epochs: PositiveFloat = 20
    max_steps: Literal[-1] | PositiveInt = -1
    max_minutes: PositiveFloat | None = None  # training ends then at the latest; the learning rate falls by the clock
    batch_size: PositiveInt = 8
    gradient_accumulation_steps: PositiveInt = 1
    learning_rate: PositiveFloat = 3e-5
    head_learning_rate: PositiveFloat | None = None  # of all weights that are not pretrained; by default the same
    weight_decay: float = Field(default=0.01, ge=0)
    warmup_ratio: float = Field(default=0.1, ge=0, lt=1)
    max_grad_norm: float = Field(default=1.0, gt=0)
    eval_steps: PositiveInt = 100
    eval_batch_size: PositiveInt = 64
    patience: PositiveInt = 20  # evaluations without improvement
    dropout: float | None = Field(default=None, ge=0, lt=1)  # in pretrained encoders; None: as they were pretrained
    ema_decay: float = Field(default=0.0, ge=0, lt=1)  # of an exponential moving average of the weights; 0: none
    bf16: bool = True  # on GPUs
    bf16_on_cpu: bool = False  # faster on processors that have instructions for it
    cuda_graphs: bool = True  # on one GPU
    dataloader_workers: NonNegativeInt = 2
    checkpoints: bool = True  # to resume after an interruption
    description_dropout: float = Field(default=0.0, ge=0, le=1)  # types without their descriptions
    alias_rate: float = Field(default=0.0, ge=0, le=1)  # types given by one of their `data.aliases`
    teacher: str | None = None  # a trained model whose scores are learned as well: a folder or a hub name
    teacher_weight: float = Field(default=1.0, gt=0)  # of its loss
    threshold_from: Literal["paper", "dev", "start"] = (
        "paper"  # start: that of the model to start from, with its scores
    )
    threshold_score: float | None = Field(default=None, gt=0, lt=1)  # scores are shifted so that the threshold has it
    threshold_factor: PositiveFloat = 1.0  # of the threshold of `start`, for weights without a share of it
    frozen_layers: NonNegativeInt | Literal["half"] = 0  # lower layers that are not trained, nor are the embeddings
    start_share: Literal["dev"] | Annotated[float, Field(ge=0, le=1)] = 0.0  # of the start in the final weights


class Recipe(_Strict):
    """A whole training run."""

    system: str
    encoder: str = ""  # that of `start` if empty, and so are tokenizer and options
    start: str | None = None  # a trained or exported model to start from, or "embedded"
    parts: dict[str, str | list[str]] = {}  # what a system takes from elsewhere: name of the part -> file or folder
    seed: int = Field(default=0, ge=0, lt=2**32)
    max_tokens: int = Field(default=256, ge=130)
    overlap: NonNegativeInt = 16
    data: DataRecipe
    options: dict[str, Any] = {}
    training: TrainingRecipe = TrainingRecipe()
    stages: dict[str, dict[str, Any]] = {}  # changes of `training` for single stages

    def stage_training(self, name: str) -> TrainingRecipe:
        """The settings of a stage."""
        return TrainingRecipe.model_validate(self.training.model_dump() | self.stages.get(name, {}))

    def model_config_for(self, types: Sequence[EntityType], options: Mapping[str, Any]) -> ModelConfig:
        """The configuration of the model that this recipe trains."""
        folder = Path(self.encoder)
        names = {one.name.strip().casefold() for one in types}
        return ModelConfig(
            system=self.system,
            encoder=folder.name if folder.is_dir() else self.encoder,
            max_tokens=self.max_tokens,
            overlap=self.overlap,
            types={one.name: one.description for one in types},
            catch_all=CATCH_ALL_LABELS if names.isdisjoint(CATCH_ALL_LABELS) else (),
            options=dict(options),
        )

    def system_options(self) -> Any:
        """The options of the system, checked."""
        return get_system(self.system).parse_options(self.options)

    def with_parts_of(self, data: Path) -> Recipe:
        """The recipe with the files of its parts: paths are relative to the current folder, or else to the data's."""

        def find(path: str) -> str:
            return str(data / path) if not os.path.exists(path) and (data / path).exists() else path

        found = {name: find(one) if isinstance(one, str) else list(map(find, one)) for name, one in self.parts.items()}
        return self.model_copy(update={"parts": found})

    def part(self, name: str) -> str:
        """The only file or folder of a part."""
        path = self.parts[name]
        if isinstance(path, str):
            return path
        raise OnomaError(f"parts.{name} must be one file or folder, got {len(path)}. Fix: name a single one")

    def stage_names(self) -> tuple[str, ...]:
        """The stages of this run, in their order."""
        return get_system(self.system).stage_names(self.system_options())

    def check(self) -> None:
        """Check what depends on several keys, and what only the system knows."""
        if not self.encoder and self.start is None:
            raise OnomaError("the recipe names no encoder. Fix: give 'encoder', or a model to 'start' from")
        if self.start is None and (self.training.start_share or self.training.threshold_from == "start"):
            raise OnomaError("the recipe uses weights or thresholds of a start. Fix: give 'start', such as 'embedded'")
        if self.training.alias_rate and not self.data.aliases:
            raise OnomaError("'training.alias_rate' has no effect without aliases. Fix: give a file as 'data.aliases'")
        names = self.stage_names()
        for name in self.stages:
            if name not in (*names, *get_system(self.system).optional_stages):
                raise OnomaError(f"there is no stage {name!r}; the stages are: {', '.join(names)}")
            _refuse_renamed({"training": self.stages[name]})
            self.stage_training(name)


def load_recipe(source: str | os.PathLike[str] | dict[str, Any], changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe and change single values of it, as `--set training.epochs=3` does."""
    values = deepcopy(source) if isinstance(source, dict) else _resolve_paths(_read(Path(source)), Path(source).parent)
    for change in changes:
        _apply_change(values, change)
    _refuse_renamed(values)
    if "system" not in values and isinstance(values.get("start"), str):
        values["system"] = _system_of(open_folder(values["start"]))
    try:
        if "system" in values and values["system"] not in SYSTEMS:
            raise OnomaError(f"there is no system {values['system']!r}; the systems are: {', '.join(SYSTEMS)}")
        recipe = Recipe.model_validate(values)
        recipe.check()
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, one['loc']))}: {one['msg']} (got {one['input']!r})" for one in error.errors()]
        raise OnomaError("the recipe is not valid:\n" + "\n".join(lines)) from error
    return recipe


def _system_of(folder: ModelFolder | RoutedFolder) -> str:
    return folder.config.system if isinstance(folder, ModelFolder) else folder.models()[-1].config.system


def _read(path: Path) -> dict[str, Any]:
    values = read_yaml(path)
    if not isinstance(values, dict):
        raise OnomaError(f"{path} is not a recipe: it should have keys such as system, encoder and data")
    return values


def _resolve_paths(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Paths of corpora and aliases that start with a dot are relative to the recipe, not to the folder of the data."""
    try:
        if str(values["data"].get("aliases", "")).startswith("."):
            values["data"]["aliases"] = str((folder / values["data"]["aliases"]).resolve())
        for one in values["data"]["corpora"]:
            if one["path"].startswith("."):
                one["path"] = str((folder / one["path"]).resolve())
    except (KeyError, TypeError, AttributeError):
        pass  # the validation of the recipe reports what is wrong
    return values


def _refuse_renamed(values: Any, prefix: str = "") -> None:
    """Raise an error that names the present key for a former one."""
    if isinstance(values, list):
        for one in values:
            _refuse_renamed(one, prefix)
    elif isinstance(values, dict):
        for key, value in values.items():
            name = f"{prefix}{key}"
            if name in RENAMED:
                raise OnomaError(f"the recipe has the key {name!r}, which is called {RENAMED[name]!r} now")
            if name in ("data", "data.corpora", "training"):
                _refuse_renamed(value, f"{name}.")


def _apply_change(values: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise OnomaError(f"--set takes KEY=VALUE, such as training.epochs=3, got {change!r}")
    *folders, last = key.split(".")
    place: Any = values
    try:
        for name in folders:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        place[int(last) if isinstance(place, list) else last] = parse_yaml(text, f"--set {key}")
    except DataError:
        raise
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        raise OnomaError(f"--set {change}: the recipe has no key {key!r}") from error
