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
