"""Presidio: a recogniser of personal data for its AnalyzerEngine.

registry.add_recognizer(OnomaRecognizer())
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from onoma.decoding.overlap import Overlap, check_overlap
from onoma.errors import OnomaError
from onoma.integrations.models import Model, as_extractor
from onoma.labels.parsing import Threshold, parse_labels, resolve_thresholds

try:
    from presidio_analyzer import AnalysisExplanation, LocalRecognizer, RecognizerResult
except ModuleNotFoundError as error:
    raise OnomaError('OnomaRecognizer needs Presidio. Fix: pip install "onoma[presidio]"') from error

if TYPE_CHECKING:
    from presidio_analyzer.nlp_engine import NlpArtifacts

    from onoma.extractor import Extractor

DEFAULT_MAPPING = {
    "person": "PERSON",
    "location": "LOCATION",
    "address": "LOCATION",
    "organization": "ORGANIZATION",
    "date": "DATE_TIME",
    "time": "DATE_TIME",
    "age": "AGE",
    "nationality": "NRP",
    "religion": "NRP",
    "political affiliation": "NRP",
}
"""Labels in words and the entities of Presidio that they stand for; what has a fixed form, such as an e-mail address,
a telephone number or an IBAN, is left to Presidio's own recognisers."""


class OnomaRecognizer(LocalRecognizer):
    """Finds the entities of Presidio that labels in words stand for.

    Args:
        entity_mapping: label → entity of Presidio, such as {"patient": "PERSON"}; several labels may share an entity.
        supported_entities: entities of Presidio, whose names are read as labels; in place of a mapping.
        model: a loaded model, a folder, a hub name, or None for the embedded model.
        threshold: the score to reach: a number, "precise", "balanced" or "complete", or one of these per label.
        overlap: whether mentions may contain each other or cross: "flat", "nested" or "any".
        name, supported_language, version, context: as for all recognisers. Onoma reads any language that its model
            knows; Presidio asks a recogniser for one language only, so add one for each, with the same loaded model.
    """

    name: str

    def __init__(
        self,
        supported_entities: Iterable[str] | None = None,
        name: str = "OnomaRecognizer",
        supported_language: str = "en",
        version: str = "0.0.1",
        context: list[str] | None = None,
        *,
        entity_mapping: Mapping[str, str] | None = None,
        model: Model = None,
        threshold: Threshold | None = None,
        overlap: Overlap = "flat",
        **options: Any,
    ) -> None:
        if entity_mapping and supported_entities:
            raise OnomaError("entity_mapping and supported_entities are both given. Fix: give one of them")
        check_overlap(overlap)
        own = {entity: entity for entity in supported_entities} if supported_entities else DEFAULT_MAPPING
        self.entity_mapping = dict(entity_mapping or own)
        resolve_thresholds(parse_labels(self.entity_mapping.keys()), threshold, 0.5, {})  # raises errors at once
        self.model, self.threshold, self.overlap = model, threshold, overlap
        entities = sorted(set(self.entity_mapping.values()))
        super().__init__(entities, name, supported_language, version, context, **options)

    def __repr__(self) -> str:
        entities, language = ", ".join(self.supported_entities), self.supported_language
        return f"OnomaRecognizer({self.name!r}, {language}, entities: {entities}, model: {self.model or 'embedded'})"

    def load(self) -> None:
        """Load the model; Presidio calls it once."""
        self.extractor: Extractor = as_extractor(self.model)

    def analyze(
        self, text: str, entities: list[str], nlp_artifacts: NlpArtifacts | None = None
    ) -> list[RecognizerResult]:
        """The mentions of those entities that this recogniser supports."""
        labels = [label for label, entity in self.entity_mapping.items() if not entities or entity in entities]
        if not labels:
            return []
        threshold = self.threshold
        if isinstance(threshold, Mapping):
            threshold = {label: value for label, value in threshold.items() if label in labels}
        found = self.extractor.extract(text, labels, threshold=threshold, overlap=self.overlap)
        return [
            RecognizerResult(
                self.entity_mapping[one.label],
                one.start,
                one.end,
                one.score,
                AnalysisExplanation(
                    recognizer=self.name,
                    original_score=one.score,
                    textual_explanation=f"found as {one.label!r} by {self.extractor!r}",
                ),
            )
            for one in found
        ]
