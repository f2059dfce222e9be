"""How SUNER is trained: detection and then classification, or all at once in its other forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from onoma.batches import bucket, collate
from onoma.config import ModelConfig
from onoma.decoding import Proposals
from onoma.entities import Corpus, Entity, EntityType
from onoma.errors import OnomaError
from onoma.subwords import Subwords, pad_rows
from onoma.systems.blocks.encoders import load_encoder
from onoma.systems.suner.candidates import dataset_prefix
from onoma.systems.suner.marking import Candidates, mark
from onoma.systems.suner.model import Suner
from onoma.systems.suner.options import Stage as StageName
from onoma.systems.suner.options import SunerOptions
from onoma.systems.suner.torch_runtime import DetectorAlone, TorchSuner
from onoma.training.collating import Arrays, AskedTypes, Integers, batch_generator, gold_rows, known_types
from onoma.training.development import DevelopmentSet
from onoma.training.examples import Example
from onoma.training.recipe import Recipe
from onoma.training.stages import Material, Stage
from onoma.training.thresholds import calibrate, mean_scores

MENTION = "mention"
MOST_MARKED = 32  # candidates of a window in training; of more, some are chosen by chance
HARD_FROM, MOST_HARD = 0.05, 8  # the detector's mistakes: from which probability on, and how many of a window
DETECTION_THRESHOLDS = (0.5, 0.35, 0.2, 0.1, 0.05)  # θ1 to choose from; of equals the first, with fewest candidates
DETECTION_WEIGHTS = (0.0, 0.3, 1.0)  # and weights of the detector's logit in the score
MARGINS = np.arange(-4.0, 9.0, 1.0)
FINE = 0.05  # a scale of scores at which even large margins can be read back from them


class SunerCollator:
    """Builds the arguments of `Suner.forward` for one stage."""

    def __init__(
        self,
        types: Sequence[EntityType],
        subwords: Subwords,
        options: SunerOptions,
        stage: StageName,
        *,
        corpora: Sequence[str] = (),
        most_types: int | None = None,
        type_dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.subwords, self.options, self.stage, self.seed = subwords, options, stage, seed
        self.asked = AskedTypes(types, subwords, options, most_types=most_types, type_dropout=type_dropout)
        prefixed = options.dataset_prefix and stage != "classification"
        self.prefixes = [dataset_prefix(name, subwords) for name in corpora] if prefixed else []

    def __call__(self, examples: Sequence[Example]) -> Arrays:
        """The arrays of one batch."""
        generator = batch_generator(examples, self.seed)
        prefixes = [self.prefixes[example.corpus] for example in examples] if self.prefixes else []
        batch = collate([example.pieces for example in examples], self.subwords, prefixes)
        kinds = self.asked.choose(examples, generator)
        gold = gold_rows(examples, kinds)  # (mentions, 4)
        spans = np.unique(gold[:, :3], axis=0)
        arrays: Arrays = {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": batch.first,
            "last": batch.last,
            "words": batch.words,
            "gold": spans,
        }
        if self.stage == "detection":
            return arrays
        known = known_types(examples, kinds)
        arrays["type_ids"], arrays["type_mask"] = pad_rows(self.asked.rows(kinds, generator), self.subwords.pad)
        if self.stage == "one-stage":
            return arrays | {"labels": gold, "known": known}
        candidates = self._candidates(examples, spans, generator)
        marked = mark(batch, candidates, tied=self.options.tied_positions)
        window = candidates.window
        if self.options.markers:
            arrays["ids"] = marked.ids
        number = {tuple(row): place for place, row in enumerate(np.stack(candidates, axis=1).tolist())}
        labels = [(number[row[:3]], row[3]) for row in map(tuple, gold.tolist()) if row[:3] in number]
        return arrays | {
            "positions": marked.positions,
            "roles": marked.roles,
            "marks": np.stack([window, marked.opening, marked.closing, *candidates.tokens(batch)], axis=1),
            "labels": np.array(labels, np.int64).reshape(-1, 2),
            "known": known[window],
        }

    def _candidates(self, examples: Sequence[Example], spans: Integers, generator: np.random.Generator) -> Candidates:
        """The mentions, and spans that are none: sampled ones and the detector's mistakes."""
        rows = [spans]
        if self.options.negatives > 0 and self.options.reject == "learned":
            taken = set(map(tuple, spans.tolist()))
            counts = np.bincount(spans[:, 0], minlength=len(examples))
            begin = np.concatenate([[0], np.cumsum(counts)])
            negatives = []
            for window, example in enumerate(examples):
                own = spans[begin[window] : begin[window + 1], 1:]
                for first, last in sample_negatives(example, own, self.options.negatives, generator):
                    row = (window, first, last)
                    if row not in taken:
                        taken.add(row)
                        negatives.append(row)
            rows.append(np.array(negatives, np.int64).reshape(-1, 3))
        together = np.concatenate(rows)
        together = together[np.lexsort((together[:, 2], together[:, 1], together[:, 0]))]
        candidates = Candidates(*together.T)
        if candidates.slot.max(initial=0) < MOST_MARKED:
            return candidates
        order = np.lexsort((generator.random(len(together)), together[:, 0]))  # by chance within each window
        kept = np.sort(order[candidates.slot < MOST_MARKED])
        return Candidates(*together[kept].T)


def sample_negatives(
    example: Example, spans: Integers, share: float, generator: np.random.Generator
) -> list[tuple[int, int]]:
    """Spans of a window that may be no mention: mentions with an end moved, spans by chance, the detector's mistakes.

    Some may be mentions after all; that is for the caller to see.
    """
    words = len(example.pieces.counts)
    count = int(np.ceil(share * max(len(spans), 1)))
    moved = spans[generator.integers(len(spans), size=count)] if len(spans) else np.zeros((0, 2), np.int64)
    moved = moved + generator.integers(-2, 3, size=moved.shape)
    first = generator.integers(words, size=-(-count // 2))
    random = np.stack([first, first + generator.geometric(0.5, size=len(first)) - 1], axis=1)
    rows = np.concatenate([moved, random])
    rows = rows[(rows[:, 0] >= 0) & (rows[:, 1] >= rows[:, 0]) & (rows[:, 1] < words)]
    found = [(first, last) for first, last in rows.tolist()]
    if example.hard is not None:
        found = [(first, last) for first, last in example.hard.tolist()] + found
    return found


class SunerTraining:
    """SUNER's part in training."""

    def new(self, recipe: Recipe, types: Sequence[EntityType], tokenizer_folder: Path) -> TorchSuner:
        """An untrained model on its encoders, or with the detector of a trained one."""
        options = recipe.suner_options()
        detection_encoder = load_encoder(recipe.encoder) if options.form == "two-stage" else None
        model = Suner(load_encoder(recipe.encoder), detection_encoder, options)
        subwords = Subwords.load(tokenizer_folder)
        model.markers_like(subwords.masked)
        if recipe.detector is not None:
            take_detector(model, recipe.detector)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return TorchSuner(model.to(device), recipe.model_config_of(types, asdict(options)), subwords)

    def stages(self, backend: TorchSuner, material: Material) -> Iterator[Stage]:
        """Detection is chosen by its own F1 whatever the type, everything else by the F1 of the whole."""
        model, recipe, examples = backend.model, material.recipe, material.examples
        if model.options.dataset_prefix:
            backend.config.options["datasets"] = self._datasets(backend, material)
        whole = lambda: mean_scores(material.development, backend)  # noqa: E731
        if model.options.form != "two-stage":
            model.select_stage(model.options.form)
            yield Stage(model.stage, examples, self._collator(backend, material), whole)
            return
        if recipe.detector is None:
            model.select_stage("detection")
            alone = DetectorAlone(backend)
            blind = [DevelopmentSet(typeless(one.corpus), alone) for one in material.development]
            yield Stage("detection", examples, self._collator(backend, material), lambda: mean_scores(blind, alone))
        if model.options.mined:
            examples = with_mistakes(examples, backend, material.corpora)
        model.select_stage("classification")
        yield Stage("classification", examples, self._collator(backend, material), whole)

    @staticmethod
    def _datasets(backend: TorchSuner, material: Material) -> list[str]:
        """The corpora whose names the detector knows: those of this training, or of the one that it comes from."""
        recipe = material.recipe
        names = list(material.corpora)
        if recipe.detector is not None:
            names = list(ModelConfig.load(recipe.detector).options.get("datasets", ()))
        longest = max((len(dataset_prefix(name, backend.subwords)) for name in names), default=0)
        most = backend.model.transformer.longest
        if recipe.max_tokens + longest > most:
            raise OnomaError(
                f"windows of {recipe.max_tokens} tokens and the names of corpora, up to {longest} tokens, do not fit "
                f"the encoder's {most} positions: set max_tokens to at most {most - longest}"
            )
        return names

    @staticmethod
    def _collator(backend: TorchSuner, material: Material) -> SunerCollator:
        recipe = material.recipe
        return SunerCollator(
            material.types,
            backend.subwords,
            backend.model.options,
            backend.model.stage,
            corpora=material.corpora,
            most_types=recipe.data.most_types,
            type_dropout=recipe.training.type_dropout,
            seed=recipe.seed,
        )

    def finish(self, backend: TorchSuner, recipe: Recipe, development: Sequence[DevelopmentSet]) -> None:
        """Choose how detection and match go together, then calibrate."""
        choose = recipe.training.threshold_on == "dev"
        if choose and backend.model.options.form != "one-stage":
            choose_detection(backend, development)
        calibrate(backend, development, choose=choose)


def take_detector(model: Suner, folder: str | Path) -> None:
    """Put the trained detector of another model into a model."""
    from onoma.backends.torch import load_weights

    own = model.state_dict()
    names = [name for name in own if name.startswith(("detection_encoder.", "detector."))]
    weights = load_weights(folder)
    if model.detection_encoder is None or any(
        name not in weights or weights[name].shape != own[name].shape for name in names
    ):
        raise OnomaError(f"{folder} has no detector that fits: it takes a two-stage SUNER on the same encoder")
    model.load_state_dict(own | {name: weights[name] for name in names})


def typeless(corpus: Corpus) -> Corpus:
    """The corpus with all its types made one."""
    documents = [
        replace(
            document,
            entities=tuple(
                Entity(start, end, document.text[start:end], MENTION)
                for start, end in sorted({(one.start, one.end) for one in document.entities})
            ),
            annotated=None,
        )
        for document in corpus
    ]
    return replace(corpus, documents=documents, types=(EntityType(MENTION),))


def with_mistakes(
    examples: Sequence[Example], backend: TorchSuner, corpora: Sequence[str], batch_size: int = 256
) -> list[Example]:
    """The examples, each with the spans that the detector takes for mentions but that are none."""
    result = list(examples)
    for corpus in sorted({example.corpus for example in examples}):
        styled = backend.style(corpora[corpus])
        own = np.array([number for number, example in enumerate(examples) if example.corpus == corpus])
        for rows in bucket([len(examples[number].pieces.ids) for number in own], batch_size):
            batch = collate([examples[number].pieces for number in own[rows]], backend.subwords)
            spans, logit = styled.detect(batch, HARD_FROM)
            for place, number in enumerate(own[rows].tolist()):
                inside = np.flatnonzero(spans.window == place)
                best = inside[np.argsort(-logit[inside], kind="stable")]
                gold = set(map(tuple, examples[number].gold[:, :2].tolist()))
                found = zip(spans.first[best].tolist(), spans.last[best].tolist(), strict=True)
                mistakes = [span for span in found if span not in gold][:MOST_HARD]
                result[number] = replace(examples[number], hard=np.array(mistakes, np.int64).reshape(-1, 2))
    return result


def choose_detection(backend: TorchSuner, development: Sequence[DevelopmentSet]) -> None:
    """Choose θ1 and the weight of detection in the score by the F1 on development data.

    Everything above the lowest θ1 is proposed twice, with and without the detector's logit in the score; all other
    choices can be reckoned from these.
    """
    options, config = backend.model.options, backend.config
    backend.config = replace(config, scale=FINE, bias=0.0)
    found = []
    for weight in (0.0, 1.0):
        backend.model.options = replace(options, detection_weight=weight, detection_threshold=min(DETECTION_THRESHOLDS))
        found.append([one.propose(backend, 0.0) for one in development])
    tried = [
        (one, matched, _margin(matched.proposals.score), _margin(both.proposals.score))
        for one, matched, both in zip(development, *found, strict=True)
    ]

    def mean_f1(choice: tuple[float, float, float]) -> float:
        threshold, weight, margin = choice
        lowest = np.log(threshold) - np.log1p(-threshold) - 1e-3
        scores = []
        for one, proposed, match, both in tried:
            logit = both - match
            above = np.where(logit >= lowest, match + weight * logit - margin, -1.0)
            scores.append(one.scores(replace(proposed, proposals=_rescored(proposed.proposals, above)), 0.5)["f1"])
        return float(np.mean(scores))

    choices = product(DETECTION_THRESHOLDS, DETECTION_WEIGHTS, MARGINS.tolist())
    threshold, weight, _ = max(choices, key=mean_f1)  # of equals the first
    chosen = replace(options, detection_threshold=threshold, detection_weight=weight)
    backend.model.options = chosen
    backend.config = replace(config, options={**config.options, **asdict(chosen)})


def _margin(score: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = np.clip(score.astype(np.float64), 1e-9, 1 - 1e-9)
    return np.asarray((np.log(exact) - np.log1p(-exact)) / FINE)


def _rescored(proposals: Proposals, margin: NDArray[np.float64]) -> Proposals:
    return proposals._replace(score=(1 / (1 + np.exp(-FINE * margin))).astype(np.float32)).take(margin >= 0)
