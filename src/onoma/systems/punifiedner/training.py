"""How PUnifiedNER is trained: prefix language modelling on the texts, then prompts of all corpora together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.evaluation.candidates import EvaluationSet, mean_scores
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.systems.blocks.encoders import load_t5
from onoma.systems.punifiedner.collator import PrefixCollator, PromptCollator
from onoma.systems.punifiedner.model import PUnifiedNer
from onoma.systems.punifiedner.options import PUnifiedNerOptions
from onoma.systems.punifiedner.torch_runtime import TorchPUnifiedNer
from onoma.training.calibration import calibrate
from onoma.training.development import development_examples, mean_loss
from onoma.training.examples import Example
from onoma.training.recipe import Recipe
from onoma.training.stages import Stage, TrainingData

ALL_MENTIONS = 0.0
"""The threshold that reports every mention of an answer, as the paper does."""


class PUnifiedNerTraining:
    """How PUnifiedNER is trained."""

    parts: tuple[str, ...] = ()

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> TorchPUnifiedNer:
        """A pretrained T5."""
        options: PUnifiedNerOptions = recipe.system_options()
        model = PUnifiedNer(load_t5(recipe.encoder), options)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        config = recipe.model_config_for(types, asdict(options))
        return TorchPUnifiedNer(model.to(device), config, WordTokenizer.load(tokenizer_folder))

    def continued(self, model: PUnifiedNer, config: ModelConfig, tokenizer: WordTokenizer) -> TorchPUnifiedNer:
        """A trained model that is to be trained further."""
        return TorchPUnifiedNer(model, config, tokenizer)

    def stages(self, runtime: TorchPUnifiedNer, data: TrainingData) -> Iterator[Stage]:
        """Adaptation is judged by the loss on development texts, joint learning by the mean F1 over corpora."""
        if data.recipe.data.mask_repeated:
            raise OnomaError(
                "PUnifiedNER writes all mentions of a text, so that none can be left open. Fix: remove "
                "'data.mask_repeated' from the recipe, or complete the labels with 'data.relabel'"
            )
        if data.recipe.training.threshold_from != "start":
            runtime.config = replace(runtime.config, threshold=ALL_MENTIONS)
        makers = {"adapt": self._adapt, "joint": self._joint}
        for name in runtime.model.options.stages.split("+"):
            yield makers[name](runtime, data)

    @staticmethod
    def _adapt(runtime: TorchPUnifiedNer, data: TrainingData) -> Stage:
        collator = PrefixCollator(runtime.prompts, seed=data.recipe.seed)
        texts = [(one.corpus.name, development_examples([one], runtime)) for one in data.development]
        size = data.recipe.stage_training("adapt").batch_size
        return Stage("adapt", data.examples, collator, lambda: mean_losses(runtime, collator, texts, size), "loss")

    @staticmethod
    def _joint(runtime: TorchPUnifiedNer, data: TrainingData) -> Stage:
        collator = PromptCollator(data.types, runtime.prompts, runtime.model.options, seed=data.recipe.seed)
        return Stage("joint", data.examples, collator, lambda: mean_scores(data.development, runtime))

    def finish(self, runtime: TorchPUnifiedNer, recipe: Recipe, development: Sequence[EvaluationSet]) -> None:
        """Calibrate the scores; the paper reports all mentions of an answer."""
        source = recipe.training.threshold_from
        if source == "start" or runtime.model.options.stages == "adapt":
            return
        calibrate(runtime, development, choose_threshold=source == "dev")
        if source == "paper":
            runtime.config = replace(runtime.config, threshold=ALL_MENTIONS)


def mean_losses(
    runtime: TorchPUnifiedNer,
    collator: PrefixCollator,
    texts: Sequence[tuple[str, Sequence[Example]]],
    batch_size: int,
) -> dict[str, float]:
    """The mean loss over corpora, and the loss of each one if there are several."""
    each = {name: mean_loss(runtime.model, collator, examples, batch_size) for name, examples in texts}
    mean = {"loss": float(np.mean(list(each.values())))}
    return mean if len(each) == 1 else mean | {f"{name}_loss": value for name, value in each.items()}
