"""How SCL-RAI is trained: in one stage; then the centres of labels are computed for retrieval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from onoma.entities import EntityType
from onoma.evaluation.candidates import EvaluationSet, mean_scores
from onoma.inputs.batches import bucket_by_length
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.systems.blocks.encoders import load_encoder
from onoma.systems.scl_rai.collator import SclRaiCollator
from onoma.systems.scl_rai.model import SclRai, Spans
from onoma.systems.scl_rai.options import SclRaiOptions
from onoma.systems.scl_rai.retrieval import NON_ENTITY, DataStore
from onoma.systems.scl_rai.torch_runtime import TorchSclRai
from onoma.training.calibration import calibrate
from onoma.training.examples import Example
from onoma.training.recipe import Recipe
from onoma.training.stages import Stage, TrainingData
from onoma.training.trainer import to_device

_BATCH_TOKENS = 8_192  # when centres are computed
_LOWEST_TEMPERATURE = 0.05


class SclRaiTraining:
    """How SCL-RAI is trained."""

    parts: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.examples: list[Example] = []

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> TorchSclRai:
        """An untrained model on its pretrained encoder."""
        options: SclRaiOptions = recipe.system_options()
        model = SclRai(load_encoder(recipe.encoder), options, len(types))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        config = recipe.model_config_for(types, asdict(options))
        return TorchSclRai(model.to(device), config, WordTokenizer.load(tokenizer_folder))

    def continued(self, model: SclRai, config: ModelConfig, tokenizer: WordTokenizer) -> TorchSclRai:
        """A trained model that is to be trained further."""
        return TorchSclRai(model, config, tokenizer)

    def stages(self, runtime: TorchSclRai, data: TrainingData) -> Iterator[Stage]:
        """The only stage; it is evaluated without retrieval, because centres are computed once, after training."""
        self.examples = data.examples
        collator = self._collator(runtime, data.recipe)
        yield Stage("scl-rai", data.examples, collator, lambda: self._evaluate(runtime, data.development))

    @staticmethod
    def _collator(runtime: TorchSclRai, recipe: Recipe) -> SclRaiCollator:
        return SclRaiCollator(len(runtime.config.types), runtime.tokenizer, runtime.model.options, seed=recipe.seed)

    @staticmethod
    def _evaluate(runtime: TorchSclRai, development: Sequence[EvaluationSet]) -> dict[str, float]:
        """The F1 also sets the temperature of weighted sampling: the better the model, the more its weights count."""
        scores = mean_scores(development, runtime)
        runtime.model.sampling_temperature = max(_LOWEST_TEMPERATURE, (1 - scores["f1"] / 100) ** 0.5)
        return scores

    def finish(self, runtime: TorchSclRai, recipe: Recipe, development: Sequence[EvaluationSet]) -> None:
        """Compute the centres of labels, then calibrate."""
        if runtime.model.options.retrieval_weight > 0:
            runtime.store = compute_centres(runtime, self.examples, self._collator(runtime, recipe))
        if recipe.training.threshold_from == "start":
            return
        calibrate(runtime, development, choose_threshold=recipe.training.threshold_from == "dev")


@torch.inference_mode()
def compute_centres(runtime: TorchSclRai, examples: Sequence[Example], collator: SclRaiCollator) -> DataStore:
    """Equation 12: the mean vector of the training spans of each label, in evaluation mode, scaled to length 1.

    Non-entity spans are a random sample, as in training.
    """
    runtime.eval()
    model, labels = runtime.model, len(runtime.config.types) + 1
    totals = torch.zeros((labels, model.options.vector_size), dtype=torch.float64, device=runtime.device)
    counts = torch.zeros(labels, dtype=torch.int64, device=runtime.device)
    for rows in bucket_by_length([len(one.tokens.ids) for one in examples], len(examples), _BATCH_TOKENS):
        inputs = to_device(collator([examples[row] for row in rows]), runtime.device)
        with runtime.autocast():
            states = model.word_states(*(inputs[name] for name in ("ids", "mask", "first", "last")))
            masked = inputs.get("masked")
            negatives = model.sample_negatives(states, inputs["words"], inputs["gold"], inputs["chances"], masked)
            gold = inputs["gold"]
            spans = Spans(*(torch.cat(pair) for pair in zip(gold[:, :3].T, negatives, strict=True)))
            vectors = model.span_vectors(states, spans).double()
        label = torch.cat([gold[:, 3] + 1, torch.full_like(negatives.window, NON_ENTITY)])
        totals.index_add_(0, label, vectors)
        counts += torch.bincount(label, minlength=labels)
    centres = F.normalize(totals, dim=-1).float().cpu().numpy()
    return DataStore(centres, counts.cpu().numpy().astype(np.int64))
