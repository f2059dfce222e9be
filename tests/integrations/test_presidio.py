"""The recogniser, in real engines of Presidio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from presidio_analyzer import AnalyzerEngine, BatchAnalyzerEngine, RecognizerRegistry
from presidio_analyzer.nlp_engine import NoOpNlpEngine
from presidio_analyzer.predefined_recognizers import EmailRecognizer
from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider

from onoma import Extractor, OnomaError
from onoma.integrations.presidio import DEFAULT_MAPPING, OnomaRecognizer

TEXT = "Maria Silva flew to Paris , write to tom@example.com ."
MAPPING = {"person": "PERSON", "city": "LOCATION"}


def engine(*recognizers: Any, languages: tuple[str, ...] = ("en",)) -> AnalyzerEngine:
    registry = RecognizerRegistry(supported_languages=list(languages))
    for one in recognizers:
        registry.add_recognizer(one)
    models = [{"lang_code": language, "model_name": ""} for language in languages]
    return AnalyzerEngine(registry, NoOpNlpEngine(models), supported_languages=list(languages))


def found(results: list[Any], text: str = TEXT) -> list[tuple[str, str]]:
    return [(text[one.start : one.end], one.entity_type) for one in sorted(results, key=lambda one: one.start)]


def test_entities_of_presidio_beside_its_own_recognisers(ner: Extractor) -> None:
    analyzer = engine(OnomaRecognizer(entity_mapping=MAPPING, model=ner), EmailRecognizer())
    results = analyzer.analyze(TEXT, "en")
    expected = [("Maria Silva", "PERSON"), ("Paris", "LOCATION"), ("tom@example.com", "EMAIL_ADDRESS")]
    assert [one for one in found(results) if one[1] != "URL"] == expected
    scores = {one.text: one.score for one in ner.extract(TEXT, list(MAPPING))}
    assert {TEXT[one.start : one.end]: one.score for one in results if one.entity_type != "EMAIL_ADDRESS"} == scores


def test_only_the_entities_that_are_asked_for(ner: Extractor) -> None:
    recognizer = OnomaRecognizer(entity_mapping=MAPPING, model=ner, threshold={"person": 0.1, "city": "balanced"})
    analyzer = engine(recognizer, EmailRecognizer())
    assert found(analyzer.analyze(TEXT, "en", entities=["LOCATION"])) == [("Paris", "LOCATION")]
    assert found(analyzer.analyze(TEXT, "en", entities=["EMAIL_ADDRESS"])) == [("tom@example.com", "EMAIL_ADDRESS")]
    assert found(recognizer.analyze(TEXT, [])) == [("Maria Silva", "PERSON"), ("Paris", "LOCATION")]
    assert recognizer.analyze(TEXT, ["IBAN_CODE"]) == []


def test_several_labels_may_stand_for_one_entity(ner: Extractor) -> None:
    recognizer = OnomaRecognizer(entity_mapping={"person": "NAME", "city": "NAME"}, model=ner)
    assert recognizer.supported_entities == ["NAME"]
    assert found(recognizer.analyze(TEXT, ["NAME"])) == [("Maria Silva", "NAME"), ("Paris", "NAME")]


def test_names_of_entities_are_read_as_labels() -> None:
    recognizer = OnomaRecognizer(["PERSON", "CITY"])
    text = "Maria Silva flew to Oslo."
    assert found(recognizer.analyze(text, []), text) == [("Maria Silva", "PERSON"), ("Oslo", "CITY")]


def test_threshold_overlap_and_explanation(ner: Extractor) -> None:
    strict = OnomaRecognizer(entity_mapping=MAPPING, model=ner, threshold=1.0)
    assert strict.analyze(TEXT, []) == []
    text = "The Rome Players will sing for Maria Silva today ."
    nested = OnomaRecognizer(entity_mapping={"band": "BAND", "city": "CITY"}, model=ner, overlap="nested")
    assert found(nested.analyze(text, []), text) == [("The Rome Players", "BAND"), ("Rome", "CITY")]
    (result, *_) = engine(nested).analyze(text, "en", return_decision_process=True)
    assert result.analysis_explanation.recognizer == "OnomaRecognizer"
    assert "'city' by <Extractor" in result.analysis_explanation.textual_explanation or (
        "'band' by <Extractor" in result.analysis_explanation.textual_explanation
    )


def test_one_loaded_model_for_two_languages() -> None:
    english = OnomaRecognizer()
    chinese = OnomaRecognizer(supported_language="zh", model=english.extractor)
    analyzer = engine(english, chinese, languages=("en", "zh"))
    text = "王芳昨天飞往北京。"
    assert ("王芳", "PERSON") in found(analyzer.analyze(text, "zh"), text)
    text = "Maria Silva, 43, works for Fjord Optics in Oslo."
    assert {("Maria Silva", "PERSON"), ("Oslo", "LOCATION")} <= set(found(analyzer.analyze(text, "en"), text))
    assert set(english.supported_entities) == set(DEFAULT_MAPPING.values())


def test_batches(ner: Extractor) -> None:
    analyzer = BatchAnalyzerEngine(engine(OnomaRecognizer(entity_mapping=MAPPING, model=ner)))
    results = analyzer.analyze_iterator([TEXT, "We eat soup ."], "en")
    assert [found(one) for one in results] == [[("Maria Silva", "PERSON"), ("Paris", "LOCATION")], []]


class TinyRecognizer(OnomaRecognizer):
    """What a user writes to name a model in a configuration of Presidio, which drops options that it does not know."""

    model: str

    def __init__(self, **options: Any) -> None:
        super().__init__(entity_mapping=MAPPING, model=self.model, **options)


def test_a_registry_from_a_configuration(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TinyRecognizer, "model", str(tiny_model), raising=False)
    rows = [
        {"name": "OnomaRecognizer", "type": "predefined", "supported_entities": ["MEANS_OF_TRANSPORT", "FRUIT"]},
        {"name": "TinyRecognizer", "type": "predefined"},
    ]
    configuration = {"supported_languages": ["en"], "recognizers": rows}
    registry = RecognizerRegistryProvider(registry_configuration=configuration).create_recognizer_registry()
    analyzer = AnalyzerEngine(registry, NoOpNlpEngine([{"lang_code": "en", "model_name": ""}]))
    assert found(analyzer.analyze(TEXT, "en")) == [("Maria Silva", "PERSON"), ("Paris", "LOCATION")]
    assert set(analyzer.get_supported_entities()) == {"PERSON", "LOCATION", "MEANS_OF_TRANSPORT", "FRUIT"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"entity_mapping": MAPPING, "supported_entities": ["PERSON"]}, "Fix: give one of them"),
        ({"entity_mapping": MAPPING, "threshold": {"date": 0.5}}, "date, which is not among the labels"),
        ({"entity_mapping": MAPPING, "overlap": "crossed"}, "overlap must be"),
        ({"model": "/no/such/model"}, "no model folder"),
    ],
)
def test_bad_use_is_refused_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OnomaError, match=message):
        OnomaRecognizer(**arguments)


def test_a_recogniser_says_what_it_is(ner: Extractor) -> None:
    assert repr(OnomaRecognizer(entity_mapping=MAPPING, model="embedded/en")) == (
        "OnomaRecognizer('OnomaRecognizer', en, entities: LOCATION, PERSON, model: embedded/en)"
    )
    assert "model: <Extractor: " in repr(OnomaRecognizer(entity_mapping=MAPPING, model=ner))
