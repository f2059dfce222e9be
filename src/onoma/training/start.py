"""Training that starts from a trained model: of PyTorch, exported to ONNX, or embedded in the package.

System, encoder, tokenizer, options and calibration are those of the start, so that a recipe with `start` needs no
`encoder`, and nothing is downloaded. Weights in int8 are multiplied by their scales.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.routing import ScriptRouter
from onoma.labels.translation import LabelTranslator
from onoma.models.config import ModelConfig
from onoma.models.folder import ONNX_FILE, WEIGHTS_FILE, ModelFolder, RoutedFolder, open_folder
from onoma.models.hub import EMBEDDED, EMBEDDED_NAME
from onoma.models.weights import load_model
from onoma.systems.blocks.families import layer_names
from onoma.systems.options import reads_word_shapes
from onoma.systems.registry import get_system
from onoma.training.corpora import load_part
from onoma.training.recipe import Recipe
from onoma.training.stages import Training

Weights = dict[str, Tensor]
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Shares of the start to choose from."""
FEWEST_MENTIONS = 10
"""With fewer mentions in the development data, F1 depends on chance, and the loss is compared instead."""
ENOUGH_MENTIONS = 40
"""In training and development data together; with fewer, m, at least 1 - m / 40 of the start remains."""


class Quality(NamedTuple):
    """How good a model is on development data."""

    f1: float  # in percent
    loss: float


def find_start(recipe: Recipe, data: Path) -> ModelFolder | None:
    """The model that a recipe without an encoder starts from, with the options of the recipe.

    Of a folder with several models it is the one for `data.language`, else the one that reads the texts of the train
    data.
    """
    if recipe.start is None or recipe.encoder:
        return None
    folder = open_folder(recipe.start)
    if isinstance(folder, RoutedFolder):
        folder = _choose_route(folder, recipe, data)
    config = folder.config
    if config.system != recipe.system:
        raise OnomaError(
            f"{recipe.start} is a model of {config.system}, but the recipe trains {recipe.system}. "
            f"Fix: write 'system: {config.system}', or leave it out"
        )
    if not (folder.has(WEIGHTS_FILE) or folder.has(ONNX_FILE)):
        raise OnomaError(f"{folder.path} has neither {WEIGHTS_FILE} nor {ONNX_FILE}. Fix: get the model again")
    return replace(folder, config=replace(config, options=config.options | recipe.options))


def _choose_route(folder: RoutedFolder, recipe: Recipe, data: Path) -> ModelFolder:
    """The model of a language, or of the script of most texts."""
    models = folder.models()
    if recipe.data.language is not None:
        for one in models:
            if one.config.language == recipe.data.language:
                return one
    router = ScriptRouter([route.scripts for route in folder.config.routes], folder.config.share)
    texts = (document.text for corpus in load_part(recipe.data, data, "train") for document in corpus)
    routes = Counter(map(router.route, texts))
    return models[routes.most_common(1)[0][0] if routes else -1]


def complete_recipe(recipe: Recipe, start: ModelFolder) -> Recipe:
    """The recipe with the windows and options of the start."""
    config, given = start.config, recipe.model_fields_set
    if "max_tokens" in given and recipe.max_tokens != config.max_tokens:
        raise OnomaError(
            f"{start.path} reads windows of {config.max_tokens} tokens, but the recipe has 'max_tokens: "
            f"{recipe.max_tokens}'. Fix: leave it out"
        )
    overlap = recipe.overlap if "overlap" in given else config.overlap
    name = f"{EMBEDDED_NAME}/{start.path.name}" if start.path.parent == EMBEDDED else str(start.path)
    changes = {"start": name, "max_tokens": config.max_tokens, "overlap": overlap, "options": config.options}
    return recipe.model_copy(update=changes)


def load_start(start: ModelFolder) -> nn.Module:
    """The model to start from, in PyTorch."""
    system = get_system(start.config.system)
    if start.has(WEIGHTS_FILE):
        return load_model(start)
    try:
        return system.restore(start).to("cuda" if torch.cuda.is_available() else "cpu")
    except RuntimeError as error:  # of shapes
        reason = str(error).splitlines()[-1].strip()
        raise OnomaError(
            f"training cannot start from {start.path} with these options ({reason}). Fix: remove options that change "
            "the shape of the model"
        ) from error


def continue_start(start: ModelFolder, training: Training, types: Sequence[EntityType], tokenizer: Path) -> Any:
    """The runtime of the start, whose model is to be trained on `types`, named as the model reads them."""
    model: Any = load_start(start)
    described = {one.name: one.description for one in types}
    config = replace(start.config, types=described, options=asdict(model.options))
    runtime = training.continued(model, config, WordTokenizer.load(tokenizer, reads_word_shapes(config.options)))
    if runtime.labels is not None and list(start.config.types) != list(described):
        raise OnomaError(
            f"{start.path} knows only the types it was trained on ({', '.join(start.config.types)}), the data has "
            f"others ({', '.join(described)}). Fix: start from a model that is asked for types by name"
        )
    return runtime


def uncalibrated(config: ModelConfig) -> ModelConfig:
    """A configuration whose scores and thresholds are to be fitted anew."""
    return replace(config, scale=1.0, bias=0.0, threshold=0.5, thresholds={}, presets={}, calibration_error=None)


def translated_types(start: ModelFolder | None, types: Sequence[EntityType]) -> list[EntityType]:
    """The types as the model reads them: in the language of the start, if it has one."""
    if start is None:
        return list(types)
    return list(LabelTranslator(start.path, start.config.language, known=start.config.types).translate(types))


def copy_weights(model: nn.Module) -> Weights:
    """A copy of the weights of a model."""
    return {name: weight.detach().clone() for name, weight in model.state_dict().items()}


def average_with_start(runtime: Any, start: Weights, share: float, threshold_factor: float = 1.0) -> None:
    """θ ← (1 - s) θ + s θ_start: between the two, a model often generalises better (Wortsman et al., 2022, WiSE-FT).

    Thresholds are multiplied by f^(1 - s), because a model that was trained on few data scores new mentions low.
    """
    if share:
        weights = {
            name: weight.lerp(start[name], share) if weight.is_floating_point() else weight
            for name, weight in copy_weights(runtime.model).items()
        }
        runtime.model.load_state_dict(weights)
    config, factor = runtime.config, threshold_factor ** (1 - share)
    tuned, presets = (
        {name: min(1.0, factor * value) for name, value in each.items()} for each in (config.thresholds, config.presets)
    )
    threshold = min(1.0, factor * config.threshold)
    runtime.config = replace(config, threshold=threshold, thresholds=tuned, presets=presets)


def choose_start_share(
    runtime: Any,
    start: Weights,
    quality: Callable[[], Quality],
    mentions: tuple[int, int],
    threshold_factor: float = 1.0,
) -> float:
    """The best share of the start on development data; the model gets these weights.

    `mentions` are the numbers of mentions in training and in development data.
    """
    trained, config, found = copy_weights(runtime.model), runtime.config, {}

    def use(share: float) -> None:
        runtime.model.load_state_dict(trained)
        runtime.config = config
        average_with_start(runtime, start, share, threshold_factor)

    for share in SHARES:
        use(share)
        found[share] = quality()
    best = best_share(found, *mentions)
    use(best)
    return best


def best_share(found: Mapping[float, Quality], trained: int, held_out: int) -> float:
    """The share with the highest F1, or with few held-out mentions the lowest loss.

    Few mentions can spoil a model, and few held-out ones do not show it. So the fewer there are in all, the more of the
    start remains, unless F1 rises by more than chance: 1 / √m with m held-out mentions, two standard errors of a share.
    """
    best = max(found, key=lambda share: (found[share].f1, -found[share].loss))
    if held_out and found[best].f1 - found[1.0].f1 > 100 / held_out**0.5:
        return best
    allowed = [share for share in found if share >= 1 - (trained + held_out) / ENOUGH_MENTIONS]
    enough = held_out >= FEWEST_MENTIONS
    return max(allowed, key=lambda share: (found[share].f1 if enough else 0.0, -found[share].loss))


@contextmanager
def encoder_dropout(model: nn.Module, rate: float | None) -> Iterator[None]:
    """Another dropout rate in all pretrained encoders; None: their own."""
    encoders = [one for name, one in model.named_children() if name.endswith("encoder")]
    dropouts = [part for one in encoders for part in one.modules() if isinstance(part, nn.Dropout)]
    rates = [one.p for one in dropouts]
    for one in dropouts:
        one.p = one.p if rate is None else rate
    try:
        yield
    finally:
        for one, own in zip(dropouts, rates, strict=True):
            one.p = own


def freeze_layers(model: nn.Module, layers: int | Literal["half"]) -> None:
    """Exclude the embeddings, some lower layers, and what all layers share, from the training of all encoders."""
    if not layers:
        return
    encoders: list[Any] = [one for name, one in model.named_children() if name.endswith("encoder")]
    for encoder in encoders:
        if layer_names(encoder.config) is None:
            raise OnomaError(
                f"layers of an encoder of the type {encoder.config.model_type!r} cannot be frozen. "
                "Fix: remove 'frozen_layers' from the recipe"
            )
        blocks = encoder.encoder.layer
        shared = [one for name, one in encoder.encoder.named_children() if name != "layer"]  # MPNet: bias by distance
        for part in (encoder.embeddings, *shared, *blocks[: len(blocks) // 2 if layers == "half" else layers]):
            part.requires_grad_(False)
