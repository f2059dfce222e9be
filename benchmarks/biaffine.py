"""The biaffine classifier of `baselines.py` as a system, so that it is trained and tested as all others are.

Importing this module adds it to the registry under the name "biaffine". It knows the types that it was trained on. A
span has its best type if that exceeds "no mention", and the score is the margin over "no mention".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from baselines import Biaffine
from onoma.decoding.proposals import Proposals
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.evaluation.candidates import EvaluationSet, mean_scores
from onoma.inputs.batches import Batch
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.type_cache import TypeCache
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import NOT_RESTORED, RuntimeSettings, margin_of, scores_of
from onoma.systems.blocks.closed_types import ClosedTypes
from onoma.systems.blocks.encoders import empty_encoder, load_encoder
from onoma.systems.blocks.torch_runtime import TorchRuntime
from onoma.systems.options import parse_options
from onoma.systems.registry import SYSTEMS
from onoma.training.calibration import calibrate
from onoma.training.collation import Arrays, collate_examples, gold_rows
from onoma.training.examples import Example
from onoma.training.recipe import Recipe
from onoma.training.stages import Stage, TrainingData

NAME = "biaffine"


@dataclass(frozen=True, slots=True)
class BiaffineOptions:
    """Options of the classifier."""

    size: int = 150  # of the vectors of first and last words


class BiaffineModel(Biaffine):
    """The classifier with what training asks of a model."""

    graphed_functions: tuple[Any, ...] = ()

    def __init__(self, encoder: Any, types: int, options: BiaffineOptions) -> None:
        super().__init__(encoder, encoder.config.hidden_size, types, options.size)
        self.options = options

    @property
    def text_encoder(self) -> nn.Module:
        """The pretrained encoder."""
        return self.word_encoder.encoder

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        """The loss of a batch."""
        return {"loss": super().forward(**inputs)}


class BiaffineRuntime(ClosedTypes, TorchRuntime):
    """A trained classifier on a device."""

    model: BiaffineModel

    def __init__(
        self, model: BiaffineModel, config: ModelConfig, tokenizer: WordTokenizer, cache: TypeCache | None = None
    ) -> None:
        super().__init__(model, config, tokenizer, cache)
        self.labels = frozenset(config.types)

    @torch.inference_mode()
    def propose(self, batch: Batch, query: NDArray[np.float32], floor: float) -> Proposals:
        """The spans whose best type has a score of at least `floor`."""
        self.eval()
        asked = torch.as_tensor(query[:, 0], device=self.device).long() + 1
        with self.autocast():
            states, words = self.model.word_encoder.read(batch)
            scores = self.model.scores(states)  # (windows, 1 + types, words, words)
        best, kind = scores[:, asked].max(dim=1)
        place = torch.arange(best.shape[1], device=self.device)
        inside = (place[:, None] <= place) & (place < words[:, None, None])
        margin = best - scores[:, 0]
        chosen = inside & (margin >= max(margin_of(floor, self.config), -1e4))
        window, first, last = chosen.nonzero().cpu().numpy().T
        found = scores_of(margin[chosen].cpu().numpy(), self.config)
        return Proposals(window, first, last, kind[chosen].cpu().numpy(), found)


class BiaffineTraining:
    """How the classifier is trained: in one stage."""

    parts: tuple[str, ...] = ()

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> BiaffineRuntime:
        """An untrained model on its pretrained encoder."""
        options: BiaffineOptions = recipe.system_options()
        model = BiaffineModel(load_encoder(recipe.encoder), len(types), options)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        config = recipe.model_config_for(types, asdict(options))
        return BiaffineRuntime(model.to(device), config, WordTokenizer.load(tokenizer_folder))

    def continued(self, model: BiaffineModel, config: ModelConfig, tokenizer: WordTokenizer) -> BiaffineRuntime:
        """A trained model that is to be trained further."""
        return BiaffineRuntime(model, config, tokenizer)

    def stages(self, runtime: BiaffineRuntime, data: TrainingData) -> Iterator[Stage]:
        """The only stage."""
        types = np.arange(len(data.types))

        def collate(examples: Sequence[Example]) -> Arrays:
            batch = collate_examples(examples, runtime.tokenizer)
            names = ("ids", "mask", "first", "words")
            return {**{name: getattr(batch, name) for name in names}, "gold": gold_rows(examples, types)}

        yield Stage(NAME, data.examples, collate, lambda: mean_scores(data.development, runtime))

    def finish(self, runtime: BiaffineRuntime, recipe: Recipe, development: Sequence[EvaluationSet]) -> None:
        """Calibrate the trained model on development data."""
        calibrate(runtime, development, choose_threshold=recipe.training.threshold_from == "dev")


class BiaffineSystem:
    """The classifier's entry in the registry."""

    name = NAME
    artifacts: tuple[str, ...] = ()
    optional_stages: tuple[str, ...] = ()

    def parse_options(self, values: Mapping[str, Any]) -> BiaffineOptions:
        """The options of a recipe or of config.json."""
        return parse_options(BiaffineOptions, values)

    def stage_names(self, options: BiaffineOptions) -> tuple[str, ...]:
        """There is one stage."""
        return (NAME,)

    def build(self, config: ModelConfig, folder: Path) -> nn.Module:
        """An untrained model of the shape that a configuration describes."""
        return BiaffineModel(empty_encoder(folder), len(config.types), self.parse_options(config.options))

    def restore(self, folder: ModelFolder) -> nn.Module:
        """Not possible."""
        raise OnomaError(NOT_RESTORED.format(system=self.name, folder=folder.path))

    def training(self) -> BiaffineTraining:
        """How the classifier is trained."""
        return BiaffineTraining()

    def runtime(self, folder: ModelFolder, settings: RuntimeSettings) -> BiaffineRuntime:
        """Load a trained model."""
        return BiaffineRuntime.load(folder, settings)

    def export(self, model: nn.Module, folder: Path, *, int8: bool) -> None:
        """Not possible."""
        raise OnomaError("the biaffine classifier is a baseline of the benchmarks, which is not exported")


SYSTEM = BiaffineSystem()
SYSTEMS[NAME] = f"{__name__}:SYSTEM"
