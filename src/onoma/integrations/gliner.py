"""GLiNER: its class with its methods and argument names, run by a model of Onoma.

    from onoma.integrations.gliner import GLiNER  # instead of: from gliner import GLiNER

    model = GLiNER.from_pretrained()
    model.predict_entities("Tom flew to Paris.", ["person", "city"])

Results have the form of GLiNER's: dictionaries with start, end, text, label and score. What differs:
docs/guides/integrations/gliner.md.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onoma.errors import OnomaError
from onoma.extractor import Extractor, load
from onoma.labels.parsing import Threshold
from onoma.models.config import ModelConfig

Labels = str | Iterable[str] | Mapping[str, str]
LabelsPerText = Sequence[Sequence[str] | Mapping[str, str]]

_WITHOUT_EFFECT = ("packing_config",)
_LOADING = "choose it when the model is loaded: from_pretrained(map_location=...)"
_TRAINING = "use `onoma train --start embedded --data train.json`, which reads GLiNER's training data"
_EXPORT = "use `onoma export MODEL FOLDER`, with --int8 for weights in 8 bits"
_EMBEDDINGS = "use predict_entities: labels are encoded once and kept, with onoma.load(cache_dir=...) also on disk"
_INSTEAD = {
    "run": "use inference",
    "predict": "use inference",
    "run_batch": "use inference",
    **dict.fromkeys(("encode_labels", "predict_with_embeds", "batch_predict_with_embeds"), _EMBEDDINGS),
    **dict.fromkeys(("device", "cuda", "cpu", "half", "float", "bfloat16"), _LOADING),
    **dict.fromkeys(("quantize", "export_to_onnx", "export_to_openvino"), _EXPORT),
    **dict.fromkeys(("train", "train_model", "create_training_args", "compile_for_training"), _TRAINING),
    **dict.fromkeys(("freeze_component", "unfreeze_component", "parameters", "named_parameters"), _TRAINING),
    "evaluate": "use `onoma evaluate CORPUS --model MODEL`, or onoma.evaluate",
    "compile": "leave it out",
    "from_config": "train a model with Onoma and load it with from_pretrained",
    "load_from_config": "train a model with Onoma and load it with from_pretrained",
    **dict.fromkeys(("model", "forward", "state_dict"), "use model.extractor, which is what onoma.load returns"),
    **dict.fromkeys(("data_processor", "decoder", "onnx_model"), "use model.extractor, as onoma.load returns it"),
    "configure_inference_packing": "leave it out: texts are always packed into batches of similar length",
    "resize_token_embeddings": "leave it out",
    "resize_embeddings": "leave it out",
    "predict_relations": "use another library for relations: Onoma finds entities",
    "generate_labels": "name the labels: Onoma does not generate them",
}
"""What GLiNER 0.2 has and this class lacks, and what to use instead."""
_LOGGER = logging.getLogger("onoma")


class GLiNER:
    """A model of Onoma with the methods of GLiNER."""

    def __init__(self, extractor: Extractor) -> None:
        self.extractor = extractor

    def __repr__(self) -> str:
        return f"GLiNER({self.extractor!r})"

    @classmethod
    def from_pretrained(
        cls,
        model_id: str | os.PathLike[str] | None = None,
        revision: str | None = None,
        *,
        map_location: str | None = None,
        load_onnx_model: bool = False,
        **others: Any,
    ) -> GLiNER:
        """Load a model of Onoma: the embedded one without a name, or one in a folder or on the hub.

        Args:
            model_id: a folder or a hub name. Weights of GLiNER cannot be loaded.
            revision: a branch, tag or commit on the hub.
            map_location: the device for models that PyTorch runs.
            load_onnx_model: take the onnx backend, also if the model has weights for PyTorch.
            others: other options of GLiNER, which are named in a warning and have no effect.
        """
        if others:
            _LOGGER.warning("these options of GLiNER have no effect in Onoma: %s", ", ".join(sorted(others)))
        name = model_id if revision is None else f"{model_id}@{revision}"
        try:
            return cls(load(name, backend="onnx" if load_onnx_model else "auto", device=map_location))
        except OnomaError as error:
            if "gliner" not in str(model_id).lower():
                raise
            fix = "leave the name out to load the embedded model, or name a model that was trained with Onoma"
            raise OnomaError(f"weights of GLiNER cannot be loaded: {error}. Fix: {fix}") from error

    def __getattr__(self, name: str) -> Any:
        """Called for attributes that do not exist: an error that says what to use instead of one of GLiNER."""
        if name not in _INSTEAD:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        raise AttributeError(
            f"Onoma's GLiNER has no {name!r}. Fix: {_INSTEAD[name]}. It has {', '.join(_PUBLIC)}; what differs: "
            "docs/guides/integrations/gliner.md",
            name=name,
            obj=self,
        )

    @property
    def config(self) -> ModelConfig:
        """The configuration of the model."""
        return self.extractor.config

    def to(self, device: Any) -> GLiNER:
        """The model itself: its device is chosen when it is loaded, by default a GPU if there is one."""
        return self

    def eval(self) -> GLiNER:
        """The model itself: it is always ready for inference."""
        return self

    def predict_entities(
        self,
        text: str,
        labels: Labels,
        flat_ner: bool = True,
        threshold: Threshold | None = None,
        multi_label: bool = False,
        **others: Any,
    ) -> list[dict[str, Any]]:
        """The entities of one text, as dictionaries with start, end, text, label and score.

        >>> model = GLiNER.from_pretrained()
        >>> [(one["text"], one["label"]) for one in model.predict_entities("Tom flew to Paris.", ["person", "city"])]
        [('Tom', 'person'), ('Paris', 'city')]
        """
        return self.inference([text], labels, flat_ner, threshold, multi_label, **others)[0]

    def batch_predict_entities(
        self,
        texts: Sequence[str],
        labels: Labels | LabelsPerText,
        flat_ner: bool = True,
        threshold: Threshold | None = None,
        multi_label: bool = False,
        **others: Any,
    ) -> list[list[dict[str, Any]]]:
        """The entities of several texts; the same as `inference`."""
        return self.inference(texts, labels, flat_ner, threshold, multi_label, **others)

    def inference(
        self,
        texts: str | Sequence[str],
        labels: Labels | LabelsPerText,
        flat_ner: bool = True,
        threshold: Threshold | None = None,
        multi_label: bool = False,
        batch_size: int = 64,
        **others: Any,
    ) -> list[list[dict[str, Any]]]:
        """The entities of each text.

        Args:
            texts: texts; one string is taken as one text.
            labels: names, or name → description, for all texts; or a list of these with one item per text.
            flat_ner: False allows mentions inside of others.
            threshold: the score to reach, in any form that `Extractor.extract` takes; by default that of the model.
            multi_label: report all labels of a span that reach the threshold.
            batch_size: windows that the model reads at once.
            others: options that Onoma has no counterpart for are refused.
        """
        _refuse(others)
        texts = [texts] if isinstance(texts, str) else list(texts)
        found: list[list[dict[str, Any]]] = [[] for _ in texts]
        for own, places in _label_sets(labels, len(texts)):
            entities = self.extractor.extract(
                [texts[place] for place in places],
                own,
                threshold=threshold,
                overlap="flat" if flat_ner else "nested",
                several_labels=multi_label,
                batch_size=batch_size,
            )
            for place, one in zip(places, entities, strict=True):
                found[place] = [entity.to_dict() for entity in one]
        return found

    def save_pretrained(self, save_directory: str | os.PathLike[str]) -> None:
        """Write the model into a new folder."""
        self.extractor.save_pretrained(save_directory)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Upload the model to the hub, as `Extractor.push_to_hub` does."""
        return self.extractor.push_to_hub(repo_id, **options)


_PUBLIC = [name for name in vars(GLiNER) if not name.startswith("_")]


def _refuse(options: Mapping[str, Any]) -> None:
    """Raise an error for options that would change the result in GLiNER and cannot do so here."""
    for name, value in options.items():
        if value not in (None, False) and name not in _WITHOUT_EFFECT:
            fix = "leave it out; docs/guides/integrations/gliner.md says what to use instead"
            raise OnomaError(f"{name}={value!r:.80} has no counterpart in Onoma. Fix: {fix}")


def _label_sets(labels: Any, texts: int) -> list[tuple[Sequence[str] | Mapping[str, str], Sequence[int]]]:
    """Sets of labels, each with the numbers of the texts that it is for."""
    labels = [labels] if isinstance(labels, str) else labels if isinstance(labels, Mapping) else list(labels)
    if isinstance(labels, Mapping) or all(isinstance(one, str) for one in labels):
        return [(labels, range(texts))]
    if len(labels) != texts or any(isinstance(one, str) for one in labels):
        message = f"labels per text must be a list with one list of labels for each of the {texts} texts"
        raise OnomaError(f"{message}, got {labels!r:.200}")
    places: dict[tuple[Any, ...], list[int]] = {}
    for place, own in enumerate(labels):
        places.setdefault(tuple(own.items() if isinstance(own, Mapping) else own), []).append(place)
    return [(labels[own[0]], own) for key, own in places.items() if key]
