"""How BINDER is trained: one stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from onoma.entities import EntityType
from onoma.subwords import Subwords
from onoma.systems.binder.model import Binder
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.systems.blocks.encoders import load_encoder
from onoma.training.collating import BinderCollator, breadths
from onoma.training.development import DevelopmentSet
from onoma.training.prototypes import Prototypes
from onoma.training.recipe import Recipe
from onoma.training.stages import Material, Stage
from onoma.training.thresholds import SIMILARITIES, best_threshold, calibrate, mean_scores


class BinderTraining:
    """BINDER's part in training."""

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> TorchBinder:
        """An untrained model on its encoder."""
        options = recipe.binder_options()
        separate = not options.shared_encoder and options.types != "atomic"
        type_encoder = load_encoder(recipe.encoder) if separate else None
        model = Binder(load_encoder(recipe.encoder), type_encoder, options, recipe.max_tokens, len(types))
        config = recipe.model_config_of(types, {**asdict(options), "weights": list(options.weights)})
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return TorchBinder(model.to(device), config, Subwords.load(tokenizer_folder))

    def stages(self, backend: TorchBinder, material: Material) -> Iterator[Stage]:
        """The only stage."""
        recipe, types, examples = material.recipe, material.types, material.examples
        prototypes = None
        if backend.model.options.types == "prototype":
            prototypes = Prototypes(examples, len(types), backend.subwords)
            backend.config.options["prototypes"] = prototypes.for_use(recipe.seed)
        collator = BinderCollator(
            types,
            backend.subwords,
            backend.model.options,
            most_types=recipe.data.most_types,
            type_dropout=recipe.training.type_dropout,
            seed=recipe.seed,
            prototypes=prototypes,
            breadth=breadths(examples, len(types)) if backend.model.options.ranking else None,
        )
        yield Stage("binder", examples, collator, lambda: self._score(backend, material.development))

    @staticmethod
    def _score(backend: TorchBinder, development: Sequence[DevelopmentSet]) -> dict[str, float]:
        """Where no threshold is learned, it is tuned at each evaluation, so that models are compared at their best."""
        if backend.model.options.thresholds == "tuned":
            backend.config = replace(backend.config, threshold=best_threshold(backend, development, SIMILARITIES))
        return mean_scores(development, backend)

    def finish(self, backend: TorchBinder, recipe: Recipe, development: Sequence[DevelopmentSet]) -> None:
        """With dynamic or global thresholds the paper's own rule stays the default unless the recipe says otherwise."""
        tuned = backend.model.options.thresholds == "tuned"
        floor = 0.5 if tuned else None  # a similarity of 0
        calibrate(backend, development, floor=floor, choose=tuned or recipe.training.threshold_on == "dev")
