"""How SUNER is trained: detection and then classification, or all at once in its other forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from onoma.entities import Corpus, Entity, EntityType
from onoma.errors import OnomaError
from onoma.evaluation.candidates import EvaluationSet, mean_scores
from onoma.inputs.batches import bucket_by_length
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.models.folder import open_single
from onoma.models.weights import load_weights
from onoma.systems.blocks.encoders import load_encoder
from onoma.systems.suner.candidates import dataset_prefix
from onoma.systems.suner.collator import SunerCollator
from onoma.systems.suner.model import Suner
from onoma.systems.suner.options import SunerOptions
from onoma.systems.suner.torch_runtime import DetectorRuntime, TorchSuner
from onoma.training.calibration import calibrate
from onoma.training.collation import collate_examples
from onoma.training.examples import Example
from onoma.training.recipe import Recipe
from onoma.training.stages import Stage, TrainingData

MENTION = "mention"
HARD_FROM, MAX_HARD = 0.05, 8  # the detector's mistakes: lowest probability, and how many per window
DETECTION_THRESHOLDS = (0.5, 0.35, 0.2, 0.1, 0.05)  # θ1 to choose from; of equals the first, with fewest candidates
DETECTION_WEIGHTS = (0.0, 0.3, 1.0)  # weights of the detector's logit in the score to choose from
MARGINS = [float(value) for value in range(-4, 9)]
FINE_SCALE = 0.05  # of scores from which even large margins can be restored


class SunerTraining:
    """How SUNER is trained."""

    parts: tuple[str, ...] = ("detector",)

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> TorchSuner:
        """An untrained model on its pretrained encoders, or with the detector of a trained one."""
        options: SunerOptions = recipe.system_options()
        detection_encoder = load_encoder(recipe.encoder) if options.form == "two-stage" else None
        model = Suner(load_encoder(recipe.encoder), detection_encoder, options)
        tokenizer = WordTokenizer.load(tokenizer_folder)
        model.initialize_markers(tokenizer.mask)
        if "detector" in recipe.parts:
            load_detector(model, recipe.part("detector"))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return TorchSuner(model.to(device), recipe.model_config_for(types, asdict(options)), tokenizer)

    def continued(self, model: Suner, config: ModelConfig, tokenizer: WordTokenizer) -> TorchSuner:
        """A trained model that is to be trained further."""
        return TorchSuner(model, config, tokenizer)

    def stages(self, runtime: TorchSuner, data: TrainingData) -> Iterator[Stage]:
        """Detection is chosen by its own F1 regardless of types, everything else by the F1 of the whole model."""
        model, examples = runtime.model, data.examples
        if model.options.dataset_prefix:
            runtime.config = replace(runtime.config, datasets=tuple(self._datasets(runtime, data)))

        def evaluate() -> dict[str, float]:
            return mean_scores(data.development, runtime)

        if model.options.form != "two-stage":
            model.select_stage(model.options.form)
            yield Stage(model.stage, examples, self._collator(runtime, data), evaluate)
            return
        if "detector" not in data.recipe.parts:
            model.select_stage("detection")
            detector = DetectorRuntime(runtime)
            sets = [EvaluationSet(without_types(one.corpus), detector) for one in data.development]
            yield Stage("detection", examples, self._collator(runtime, data), lambda: mean_scores(sets, detector))
        if model.options.hard_negatives:
            examples = with_hard_negatives(examples, runtime, data.corpora)
        model.select_stage("classification")
        yield Stage("classification", examples, self._collator(runtime, data), evaluate)

    @staticmethod
    def _datasets(runtime: TorchSuner, data: TrainingData) -> list[str]:
        """The corpora whose names the detector knows: those of this training, or of the one that it comes from."""
        recipe, names = data.recipe, list(data.corpora)
        if "detector" in recipe.parts:
            names = list(open_single(recipe.part("detector"), "take the detector of").config.datasets)
        longest = max((len(dataset_prefix(name, runtime.tokenizer)) for name in names), default=0)
        most = runtime.model.transformer.max_positions
        if recipe.max_tokens + longest > most:
            raise OnomaError(
                f"windows of {recipe.max_tokens} tokens and corpus names of up to {longest} tokens exceed the "
                f"encoder's {most} positions. Fix: set max_tokens to at most {most - longest}"
            )
        return names

    @staticmethod
    def _collator(runtime: TorchSuner, data: TrainingData) -> SunerCollator:
        recipe = data.recipe
        return SunerCollator(
            data.types,
            runtime.tokenizer,
            runtime.model.options,
            runtime.model.stage,
            corpora=data.corpora,
            max_types=recipe.data.max_types_per_batch,
            description_dropout=recipe.training.description_dropout,
            aliases=data.aliases(),
            alias_rate=recipe.training.alias_rate,
            seed=recipe.seed,
        )

    def finish(self, runtime: TorchSuner, recipe: Recipe, development: Sequence[EvaluationSet]) -> None:
        """Choose how detection and match are combined, then calibrate."""
        if recipe.training.threshold_from == "start":
            return
        choose = recipe.training.threshold_from == "dev"
        if choose and runtime.model.options.form != "one-stage":
            choose_detection(runtime, development)
        calibrate(runtime, development, choose_threshold=choose)


def load_detector(model: Suner, folder: str | Path) -> None:
    """Load the trained detector of another model."""
    own = model.state_dict()
    names = [name for name in own if name.startswith(("detection_encoder.", "detector."))]
    if model.detection_encoder is None:
        raise OnomaError("only a two-stage SUNER takes a detector. Fix: remove parts.detector from this recipe")
    weights = load_weights(open_single(folder, "take the detector of").path)
    if any(name not in weights or weights[name].shape != own[name].shape for name in names):
        raise OnomaError(f"{folder} has no detector that fits: it must be a two-stage SUNER on the same encoder")
    model.load_state_dict(own | {name: weights[name] for name in names})


def without_types(corpus: Corpus) -> Corpus:
    """The corpus with all of its types merged into one.

    Documents in which some types are not annotated may have more mentions than their labels; they are left out, unless
    all documents are such.
    """
    whole = [document for document in corpus if corpus.annotated(document) >= set(corpus.labels)]
    documents = [
        replace(
            document,
            entities=tuple(
                Entity(start, end, document.text[start:end], MENTION)
                for start, end in sorted({(one.start, one.end) for one in document.entities})
            ),
            annotated=None,
        )
        for document in whole or corpus
    ]
    return replace(corpus, documents=documents, types=(EntityType(MENTION),))


def with_hard_negatives(
    examples: Sequence[Example], runtime: TorchSuner, corpora: Sequence[str], batch_size: int = 256
) -> list[Example]:
    """The examples, each with the spans that the detector takes for mentions by mistake."""
    result = list(examples)
    for corpus in sorted({example.corpus for example in examples}):
        styled = runtime.with_style(corpora[corpus])
        own = np.array([number for number, example in enumerate(examples) if example.corpus == corpus])
        for rows in bucket_by_length([len(examples[number].tokens.ids) for number in own], batch_size):
            batch = collate_examples([examples[number] for number in own[rows]], runtime.tokenizer)
            spans, logit = styled.detect(batch, HARD_FROM)
            for place, number in enumerate(own[rows].tolist()):
                inside = np.flatnonzero(spans.window == place)
                best = inside[np.argsort(-logit[inside], kind="stable")]
                gold = set(map(tuple, examples[number].gold[:, :2].tolist()))
                found = zip(spans.first[best].tolist(), spans.last[best].tolist(), strict=True)
                mistakes = [span for span in found if span not in gold][:MAX_HARD]
                hard = np.array(mistakes, np.int64).reshape(-1, 2)
                result[number] = replace(examples[number], hard_negatives=hard)
    return result


def choose_detection(runtime: TorchSuner, development: Sequence[EvaluationSet]) -> None:
    """Choose θ1 and the weight of detection in the score by the F1 on development data.

    Everything above the lowest θ1 is proposed twice, with and without the detector's logit in the score; the results
    of all other choices follow from these.
    """
    options, config = runtime.model.options, runtime.config
    runtime.config = replace(config, scale=FINE_SCALE, bias=0.0)
    found = []
    for weight in (0.0, 1.0):
        runtime.model.options = replace(options, detection_weight=weight, detection_threshold=DETECTION_THRESHOLDS[-1])
        found.append([one.candidates(runtime, 0.0) for one in development])
    margins = [
        (matched, _margin(matched.proposals.score), _margin(both.proposals.score))
        for matched, both in zip(*found, strict=True)
    ]

    def mean_f1(choice: tuple[float, float, float]) -> float:
        threshold, weight, margin = choice
        lowest = np.log(threshold) - np.log1p(-threshold) - 1e-3
        scores = []
        for candidates, match, both in margins:
            logit = both - match
            above = np.where(logit >= lowest, match + weight * logit - margin, -np.inf)
            rescored = candidates.rescored((1 / (1 + np.exp(-FINE_SCALE * above))).astype(np.float32))
            scores.append(rescored.scores(0.5).f1)
        return float(np.mean(scores))

    threshold, weight, _ = max(product(DETECTION_THRESHOLDS, DETECTION_WEIGHTS, MARGINS), key=mean_f1)
    chosen = replace(options, detection_threshold=threshold, detection_weight=weight)
    runtime.model.options = chosen
    runtime.config = replace(config, options=asdict(chosen))


def _margin(score: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = np.clip(score.astype(np.float64), 1e-9, 1 - 1e-9)
    return np.asarray((np.log(exact) - np.log1p(-exact)) / FINE_SCALE)
