"""How BINDER is trained: in one stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.evaluation.candidates import (
    Candidates,
    EvaluationSet,
    best_breadth_weight,
    best_threshold,
    mean_of_candidates,
    mean_scores,
)
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.systems.binder.collator import BinderCollator, type_breadths
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.prototypes import Prototypes
from onoma.systems.binder.teacher import Teacher
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.systems.blocks.encoders import load_encoder
from onoma.training.calibration import calibrate
from onoma.training.recipe import Recipe
from onoma.training.stages import Stage, TrainingData

LARGEST_LOGIT = 10.0
"""What a cosine of 1 is before the sigmoid, while thresholds on similarities are tuned."""
LOWEST_COSINE = 0.15
"""Spans that are less similar to a type are not candidates then."""
MOST_CANDIDATES = 50
"""Candidates per mention; thresholds with more are not tried, because decoding so many would take long."""


class BinderTraining:
    """How BINDER is trained."""

    parts: tuple[str, ...] = ()

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> TorchBinder:
        """An untrained model on its pretrained encoder."""
        options: BinderOptions = recipe.system_options()
        separate = not options.shared_encoder and options.types != "atomic"
        type_encoder = load_encoder(recipe.encoder) if separate else None
        model = Binder(load_encoder(recipe.encoder), type_encoder, options, recipe.max_tokens, len(types))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        config = recipe.model_config_for(types, asdict(options))
        return TorchBinder(model.to(device), config, WordTokenizer.load(tokenizer_folder, options.word_shapes))

    def continued(self, model: Binder, config: ModelConfig, tokenizer: WordTokenizer) -> TorchBinder:
        """A trained model that is to be trained further."""
        return TorchBinder(model, config, tokenizer)

    def stages(self, runtime: TorchBinder, data: TrainingData) -> Iterator[Stage]:
        """The only stage."""
        recipe, options = data.recipe, runtime.model.options
        prototypes = None
        if options.types == "prototype":
            prototypes = Prototypes(data.examples, len(data.types), runtime.tokenizer)
            runtime.prototypes = prototypes.sample(recipe.seed)
        teacher = self._teacher(runtime, data)
        needs_breadths = options.breadth_head or options.narrow_type_weight
        collator = BinderCollator(
            data.types,
            runtime.tokenizer,
            options,
            max_types=recipe.data.max_types_per_batch,
            description_dropout=recipe.training.description_dropout,
            aliases=data.aliases(),
            alias_rate=recipe.training.alias_rate,
            nonsense_types=recipe.data.nonsense_types,
            seed=recipe.seed,
            prototypes=prototypes,
            breadths=type_breadths(data.examples, len(data.types)) if needs_breadths else None,
            teacher_tokenizer=None if teacher is None else teacher.tokenizer,
        )
        keep = recipe.training.threshold_from == "start"
        evaluate = partial(_evaluate, runtime, data.development, keep_breadth_weight=keep)
        yield Stage("binder", data.examples, collator, evaluate, has_teacher=teacher is not None)
        runtime.model.teacher = None

    def _teacher(self, runtime: TorchBinder, data: TrainingData) -> Teacher | None:
        """The teacher of the recipe, which the model asks for its margins."""
        settings = data.recipe.training
        if settings.teacher is None:
            return None
        if runtime.options.objective != "sigmoid":
            raise OnomaError(
                "only 'objective: sigmoid' learns from a teacher. Fix: set it, or remove 'training.teacher'"
            )
        runtime.model.teacher_weight = settings.teacher_weight
        runtime.model.teacher = Teacher(settings.teacher, data.types)
        return runtime.model.teacher

    def finish(self, runtime: TorchBinder, recipe: Recipe, development: Sequence[EvaluationSet]) -> None:
        """With dynamic or global thresholds the paper's decision stays the default unless the recipe asks for dev."""
        if recipe.training.threshold_from == "start":
            return
        tuned = runtime.model.options.thresholds == "tuned"
        floor = _score_of_cosine(LOWEST_COSINE) if tuned else None
        choose = tuned or recipe.training.threshold_from == "dev"
        calibrate(runtime, development, floor=floor, choose_threshold=choose)


def _evaluate(
    runtime: TorchBinder, development: Sequence[EvaluationSet], *, keep_breadth_weight: bool
) -> dict[str, float]:
    """What is not learned is tuned at each evaluation, so that weights are compared at their best."""
    if runtime.options.thresholds == "tuned":
        tune_similarity(runtime, development)
    if keep_breadth_weight or not runtime.options.breadth_head:
        return mean_scores(development, runtime)
    threshold = runtime.config.threshold
    candidates = [one.candidates(runtime, threshold) for one in development]
    _, weight = best_breadth_weight(candidates, [threshold])
    runtime.config = replace(runtime.config, breadth_weight=weight)
    return mean_of_candidates(development, [replace(one, breadth_weight=weight) for one in candidates], threshold)


def tune_similarity(runtime: TorchBinder, development: Sequence[EvaluationSet]) -> None:
    """Set the threshold on the similarity itself with the best F1 on development data, to 0.01 of the cosine.

    Similarities are up to 1/τ, and the sigmoid of more than 17 is 1 in float32, so they are scaled before it.
    """
    with torch.no_grad():
        largest = float(runtime.model.similarity_scales()[2])
    runtime.config = replace(runtime.config, scale=LARGEST_LOGIT / largest, bias=0.0)
    candidates = [one.candidates(runtime, _score_of_cosine(LOWEST_COSINE)) for one in development]
    centre = 0.5
    for step in (0.1, 0.01):
        cosines = np.arange(-5, 6) * step + centre
        scores = {_score_of_cosine(cosine): cosine for cosine in cosines if LOWEST_COSINE <= cosine <= 1}
        sensible = [score for score in scores if _candidates_per_mention(candidates, score) <= MOST_CANDIDATES]
        threshold = best_threshold(candidates, sensible or [max(scores)])
        centre = scores[threshold]
    runtime.config = replace(runtime.config, threshold=threshold)


def _candidates_per_mention(candidates: Sequence[Candidates], score: float) -> float:
    mentions = sum(int(one.gold.sum()) for one in candidates)
    return sum(int((one.proposals.score >= score).sum()) for one in candidates) / max(mentions, 1)


def _score_of_cosine(cosine: float) -> float:
    """The score of a similarity before calibration, if no threshold is subtracted from it."""
    return float(1 / (1 + np.exp(-LARGEST_LOGIT * cosine)))
