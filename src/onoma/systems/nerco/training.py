"""How NerCo is trained: contrast first, then tagging, with a warm start of the upper parts if wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.evaluation.candidates import EvaluationSet, mean_scores
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.systems.blocks.encoders import load_encoder
from onoma.systems.nerco.collator import NerCoCollator
from onoma.systems.nerco.inputs import LatticeInputs
from onoma.systems.nerco.model import NerCo
from onoma.systems.nerco.options import NerCoOptions
from onoma.systems.nerco.torch_runtime import TorchNerCo
from onoma.systems.nerco.word_vectors import Floats, load_word_vectors
from onoma.text.lexicon import Lexicon
from onoma.training.calibration import calibrate
from onoma.training.development import development_examples, mean_loss
from onoma.training.examples import Example
from onoma.training.recipe import Recipe
from onoma.training.stages import Stage, TrainingData

EVERYTHING = 0.0
"""The default threshold: all mentions of the best tags are reported, as in the paper."""


class NerCoTraining:
    """How NerCo is trained."""

    parts: tuple[str, ...] = ("lexicon", "word_vectors")

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> TorchNerCo:
        """An untrained model on its pretrained encoder, with the words of the recipe's lexicon."""
        options: NerCoOptions = recipe.system_options()
        inputs, vectors = (None, None) if not options.lattice else self._lattice(recipe, options)
        if inputs is not None:
            size = options.vector_size if vectors is None else vectors.shape[1]
            options = replace(options, vector_rows=len(inputs.names), vector_size=size)
        model = NerCo(load_encoder(recipe.encoder), options, len(types))
        if vectors is not None and model.lattice is not None:
            with torch.no_grad():
                model.lattice.word_vectors.weight[1:] = torch.from_numpy(vectors)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        config = replace(recipe.model_config_for(types, asdict(options)), threshold=EVERYTHING)
        return TorchNerCo(model.to(device), config, WordTokenizer.load(tokenizer_folder), inputs=inputs)

    @staticmethod
    def _lattice(recipe: Recipe, options: NerCoOptions) -> tuple[LatticeInputs, Floats | None]:
        """The lexicon with the vectors that its words need; without pretrained ones, characters get trained ones."""
        if "lexicon" not in recipe.parts:
            raise OnomaError(
                "NerCo reads a lattice of lexicon words, but the recipe names no lexicon. Fix: set parts.lexicon to a "
                "file with one word per line, or options.lattice to false"
            )
        lexicon = Lexicon.read(recipe.parts["lexicon"])
        if "word_vectors" not in recipe.parts:
            if not options.tune_word_vectors:
                raise OnomaError(
                    "there are no vectors for the words of the lexicon. Fix: set parts.word_vectors to a folder with "
                    "vectors.npy and words.txt, or options.tune_word_vectors to true to train vectors of characters"
                )
            return LatticeInputs.build(lexicon, sorted(set().union(*lexicon.words)), options.max_nodes), None
        names, vectors = load_word_vectors(recipe.part("word_vectors"))
        used = LatticeInputs.build(lexicon, names, options.max_nodes).used_rows()
        kept = [names[row] for row in used]
        return LatticeInputs.build(lexicon, kept, options.max_nodes), _normalize(vectors[used])

    def continued(self, model: NerCo, config: ModelConfig, tokenizer: WordTokenizer) -> TorchNerCo:
        """A trained model that is to be trained further."""
        if model.options.lattice:
            raise OnomaError(
                "a NerCo model with a lattice cannot be trained further without its lexicon. Fix: give 'encoder' and "
                "'parts.lexicon' in the recipe, besides 'start'"
            )
        return TorchNerCo(model, config, tokenizer)

    def stages(self, runtime: TorchNerCo, data: TrainingData) -> Iterator[Stage]:
        """Contrast is monitored by its loss on development data, all other stages by F1."""
        model = runtime.model
        collator = NerCoCollator(model.scheme, runtime.tokenizer, runtime.inputs)
        for name in model.options.stage_names():
            model.select_stage(name)
            if name != "contrast":
                yield Stage(name, data.examples, collator, lambda: mean_scores(data.development, runtime))
                continue
            examples = development_examples(data.development, runtime)
            size = data.recipe.stage_training(name).batch_size
            evaluate = partial(_contrastive_loss, model, collator, examples, size)
            yield Stage(name, data.examples, collator, evaluate, monitor="loss")

    def finish(self, runtime: TorchNerCo, recipe: Recipe, development: Sequence[EvaluationSet]) -> None:
        """Calibrate; all mentions of the best tags are reported unless the threshold is to be chosen."""
        if recipe.training.threshold_from == "start":
            return
        choose = recipe.training.threshold_from == "dev"
        calibrate(runtime, development, choose_threshold=choose)
        if not choose:
            runtime.config = replace(runtime.config, threshold=EVERYTHING)


def _normalize(vectors: Floats) -> Floats:
    """Vectors of the same length, such that their numbers are about 1, as those of the encoder's states."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-6) * vectors.shape[1] ** 0.5, np.float32)


def _contrastive_loss(
    model: NerCo, collator: NerCoCollator, examples: list[Example], batch_size: int
) -> dict[str, float]:
    return {"loss": mean_loss(model, collator, examples, batch_size)}
