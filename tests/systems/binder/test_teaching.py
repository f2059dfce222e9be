"""Types by example: what a model finds after it was shown marked examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onoma
from onoma import Entity, EntityType, Extractor, OnomaError
from onoma.labels.examples import MarkedText
from onoma.models.export import export
from onoma.systems.binder import teaching
from onoma.systems.binder.teaching import teach
from tiny import corpus, documents

PEOPLE = [
    "[[Tom]] flew to Paris .",
    "In Rome it rains , says [[Ann]] .",
    "[[Maria Silva]] flew to Lima .",
    "Nobody has seen [[Omar Haddad]] since the concert in Kyoto .",
    "The Oslo Players will sing for [[Li Wei]] today .",
]
TEXTS = ["Greta flew to Rome .", "In Lima it rains , says Omar Haddad .", "We eat soup and bread every day ."]
ENTITIES = [[("Greta", "x1")], [("Omar Haddad", "x1")], []]


def found(model: Extractor, labels: Any, **options: Any) -> list[list[tuple[str, str]]]:
    return [[(one.text, one.label) for one in each] for each in model.extract(TEXTS, labels, **options)]


def rounded(entities: list[list[Entity]]) -> list[list[Entity]]:
    """Entities to compare: with another number of types, last digits of scores differ on some processors."""
    return [[replace(one, score=round(one.score, 4)) for one in each] for each in entities]


@pytest.fixture(scope="module", params=["torch", "onnx"])
def model(request: pytest.FixtureRequest, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Extractor:
    if request.param == "torch":
        return onoma.load(tiny_model, backend="torch", device="cpu")
    return onoma.load(export(tiny_model, tmp_path_factory.mktemp("exported") / "model"), backend="onnx", threads=1)


def test_a_type_with_any_name_is_found_after_examples(model: Extractor) -> None:
    assert found(model, ["x1"]) != ENTITIES
    taught = model.teach({"x1": PEOPLE})
    assert found(taught, ["x1"]) == ENTITIES
    assert found(model, [EntityType("x1", examples=PEOPLE)]) == ENTITIES
    assert found(model, ["x1"]) != ENTITIES  # the model itself has not changed


def test_types_without_examples_are_as_before(model: Extractor) -> None:
    taught = model.teach({"x1": PEOPLE})
    labels = ["city", "band"]
    assert taught.extract(TEXTS, labels) == model.extract(TEXTS, labels)
    both = taught.extract(TEXTS, ["x1", "city"], overlap="any", several_labels=True)
    cities = [[one for one in each if one.label == "city"] for each in both]
    assert rounded(cities) == rounded(model.extract(TEXTS, ["city"]))


def test_a_type_does_not_depend_on_the_others(model: Extractor) -> None:
    taught = model.teach(documents()[:40:3])
    together = taught.extract(TEXTS, ["person", "city", "band"], overlap="any", several_labels=True)
    for label in ("person", "city"):
        alone = taught.extract(TEXTS, [label], overlap="any")
        for some, others in zip(together, alone, strict=True):
            same = [one for one in some if one.label == label]
            assert [one.key for one in same] == [one.key for one in others]
            assert [one.score for one in same] == pytest.approx([one.score for one in others], abs=1e-3)


def test_both_runtimes_learn_the_same(tiny_model: Path, tmp_path: Path) -> None:
    pair = [onoma.load(tiny_model, backend="torch", device="cpu"), onoma.load(export(tiny_model, tmp_path / "model"))]
    rows = [each.runtime.ask([EntityType("x1")], [[MarkedText("Tom sang .", ((0, 3),))]]) for each in pair]
    size = 3 * 32 + 1  # vectors and offset
    np.testing.assert_allclose(rows[0][:, :size], rows[1][:, :size], atol=1e-2)


def test_examples_count_more_the_more_there_are(model: Extractor) -> None:
    scores = []
    for count in (1, 3, 5):
        taught = model.teach({"x1": PEOPLE[:count]})
        entities = taught.extract("Greta flew to Rome .", ["x1"], threshold=0.0, overlap="any")
        scores.append(next(one.score for one in entities if one.text == "Greta"))
    assert scores == sorted(scores)


def test_the_margin_is_that_of_the_corrected_vector(ner: Extractor) -> None:
    runtime: Any = ner.runtime
    name, examples = EntityType("x1"), [MarkedText("Tom flew to Paris .", ((0, 3),))]
    (before,), (after,) = runtime.ask([name]), runtime.ask([name], [examples])
    size = runtime.options.vector_size
    vectors = [teaching.TypeVector(before[2 * size : 3 * size], 0.0)]
    (taught,) = teach(runtime, vectors, [examples])
    np.testing.assert_allclose(after[2 * size : 3 * size], taught.span, atol=1e-5)
    assert after[3 * size] == pytest.approx(taught.offset, abs=1e-5)
    np.testing.assert_array_equal(after[: 2 * size], before[: 2 * size])


def test_with_many_spans_a_part_of_them_is_enough(model: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teaching, "MAX_SPANS", 150)
    assert found(model.teach({"x1": [*PEOPLE, "[[Ann]] flew to Oslo ."]}), ["x1"]) == ENTITIES


@pytest.mark.parametrize("text", ["[[We eat soup and bread every day . We eat soup]] and", "T[[o]]m flew ."])
def test_mentions_that_the_model_cannot_find_teach_nothing(model: Extractor, text: str) -> None:
    taught = model.teach({"x1": [text]})
    assert taught.extract(TEXTS, ["x1"], threshold=0.01) == model.extract(TEXTS, ["x1"], threshold=0.01)


def test_long_examples_are_read_in_windows(model: Extractor) -> None:
    long = " ".join(PEOPLE * 4)
    assert found(model.teach({"x1": [long, *PEOPLE]}), ["x1"]) == ENTITIES


def test_a_taught_model_is_saved_and_loaded(model: Extractor, tmp_path: Path) -> None:
    taught = model.teach({"x1": PEOPLE[:3]}).teach({"x1": PEOPLE[3:]})
    taught.save_pretrained(tmp_path / "taught")
    again = onoma.load(tmp_path / "taught", backend=model.runtime.backend, device="cpu")  # type: ignore[arg-type]
    assert again.examples == taught.examples
    assert found(again, ["x1"]) == found(taught, ["x1"]) == ENTITIES
    model.save_pretrained(tmp_path / "plain")
    assert not (tmp_path / "plain" / "examples.json").exists()


def test_examples_are_encoded_once(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(teaching, "teach", lambda *given: calls.append(given) or teach(*given))  # type: ignore[func-returns-value]
    taught = onoma.load(tiny_model, backend="torch", device="cpu").teach({"x1": PEOPLE})
    for _ in range(3):
        taught.extract(TEXTS, ["x1"])
    assert len(calls) == 1
    taught.teach({"x1": ["[[Greta]] sang ."]}).extract(TEXTS, ["x1"])
    assert len(calls) == 2


def test_a_corpus_can_be_taught(model: Extractor) -> None:
    taught = model.teach(corpus())
    assert found(taught, ["person", "city"])[0] == [("Greta", "person"), ("Rome", "city")]


def test_a_model_with_joint_inference_says_that_it_takes_none(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime: Any = ner.runtime
    monkeypatch.setattr(runtime.model, "options", replace(runtime.options, inference="joint"))
    with pytest.raises(OnomaError, match="joint"):
        runtime.ask([EntityType("x2")], [[MarkedText("Tom sang .", ((0, 3),))]])
