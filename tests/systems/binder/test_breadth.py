"""A breadth head: which of two fitting labels is reported, without a change of scores.

In the training data, poets and singers are persons as well; in the development data, every mention has one label, the
narrowest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import onoma
from onoma import Entity, EntityType, Extractor, OnomaError
from onoma.data import load_corpus, write
from onoma.evaluation.candidates import EvaluationSet
from onoma.labels.examples import ExampleSet
from onoma.models.config import load_config
from onoma.models.export import export
from onoma.models.weights import load_weights
from onoma.training.run import train
from systems.binder.test_export import random_binder
from systems.binder.test_restore import restored
from tiny import CITIES, PEOPLE, TYPES, document
from tiny_training import SHORT, changed_recipe, metrics_of, save_encoder, small_recipe

torch.set_num_threads(1)

LABELS = ["city", "person", "poet", "singer"]
SINGERS = ("Freddie", "Aretha Franklin", "Bowie")
PATTERNS = (
    ("[person|[poet|{}]] wrote a poem in [city|{}] .", PEOPLE),
    ("We read poems by [person|[poet|{}]] in [city|{}] .", PEOPLE),
    ("[person|{}] flew to [city|{}] .", PEOPLE),
    ("Nobody has seen [person|{}] in [city|{}] .", PEOPLE),
    ("[person|[singer|{}]] flew to [city|{}] .", SINGERS),
)
MARKED = [pattern.format(*pair) for pattern, names in PATTERNS for pair in product(names, CITIES)]
POETS = ["Greta wrote a poem in Rome .", "We read poems by Tom in Lima .", "Ann wrote a poem in Oslo ."]
OTHERS = ["Greta flew to Rome .", "Nobody has seen Tom in Lima .", "Ann flew to Oslo ."]
OPTIONS = {"breadth_head": True}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus `poets`."""
    root = tmp_path_factory.mktemp("data")
    narrowest = [re.sub(r"\[person\|(\[\w+\|[^]]*\])\]", r"\1", one) for one in MARKED]
    write([document(one) for number, one in enumerate(MARKED) if number % 5], root / "poets" / "train.jsonl")
    write([document(one) for one in narrowest[::5]], root / "poets" / "dev.jsonl")
    return root


@pytest.fixture(scope="module")
def recipe_values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A recipe for this corpus."""
    encoder = save_encoder(tmp_path_factory.mktemp("encoders") / "bert", [document(one) for one in MARKED])
    values = small_recipe(encoder)
    values["data"]["corpora"] = [{"path": "poets", "test": None}]
    values["training"] |= {"max_steps": 300, "eval_steps": 150, "checkpoints": False, "threshold_from": "dev"}
    values["training"]["description_dropout"] = 0.0
    return values


@pytest.fixture(scope="module")
def trained(recipe_values: dict[str, Any], data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model with a breadth head."""
    return train(
        changed_recipe(recipe_values, options=OPTIONS), output=tmp_path_factory.mktemp("runs") / "run", data=data
    )


@pytest.fixture(scope="module")
def model(trained: Path) -> Extractor:
    return onoma.load(trained, "torch", "cpu")


def people(found: Sequence[Sequence[Entity]]) -> list[list[tuple[str, str]]]:
    return [[(one.text, one.label) for one in entities if one.label != "city"] for entities in found]


def by_span(found: Sequence[Entity], label: str) -> dict[tuple[int, int], float]:
    return {(one.start, one.end): one.score for one in found if one.label == label}


def with_weight(folder: Path, source: Path, weight: float) -> Extractor:
    """A copy of a model with another weight of breadths."""
    onoma.load(source, device="cpu").save_pretrained(folder)
    replace(load_config(source), breadth_weight=weight).save(folder)
    return onoma.load(folder, device="cpu")


def test_of_two_fitting_labels_the_narrow_one_is_reported(model: Extractor) -> None:
    assert model.config.breadth_weight > 0  # chosen on dev
    found = people(model.extract(POETS + OTHERS, LABELS))
    assert found[: len(POETS)] == [[("Greta", "poet")], [("Tom", "poet")], [("Ann", "poet")]]
    assert found[len(POETS) :] == [[("Greta", "person")], [("Tom", "person")], [("Ann", "person")]]


def test_without_the_weight_the_broad_label_is_reported(trained: Path, tmp_path: Path) -> None:
    plain = with_weight(tmp_path / "plain", trained, 0.0)
    assert people(plain.extract(POETS, LABELS)) == [[("Greta", "person")], [("Tom", "person")], [("Ann", "person")]]


def test_the_broad_label_alone_finds_the_same_mentions_with_the_same_scores(model: Extractor) -> None:
    for text in POETS:
        alone = by_span(model.extract(text, ["person"]), "person")
        assert len(alone) == 1
        assert min(alone.values()) > 0.9
        assert by_span(model.extract(text, LABELS, several_labels=True), "person") == pytest.approx(alone, abs=1e-6)
        (poet,) = by_span(model.extract(text, LABELS), "poet").items()
        assert by_span(model.extract(text, ["poet"]), "poet") == pytest.approx(dict([poet]), abs=1e-6)
        assert poet[0] in alone


def test_the_order_of_labels_has_no_influence(model: Extractor) -> None:
    expected = model.extract(POETS + OTHERS, LABELS)
    for order in permutations(LABELS):
        for some, others in zip(model.extract(POETS + OTHERS, list(order)), expected, strict=True):
            assert [replace(one, score=0) for one in some] == [replace(one, score=0) for one in others]
            assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-5)


@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
def test_leaving_out_labels_batch_by_batch_does_not_change_what_is_reported(
    model: Extractor, monkeypatch: pytest.MonkeyPatch, overlap: Any
) -> None:
    expected = model.extract(POETS + OTHERS, LABELS, threshold=0.01, overlap=overlap)
    monkeypatch.setattr("onoma.systems.base.MANY_PROPOSALS", 0)
    assert model.extract(POETS + OTHERS, LABELS, threshold=0.01, overlap=overlap) == expected


def test_the_breadths_of_types_follow_from_shared_mentions(model: Extractor) -> None:
    breadths = model.runtime.breadths(model.runtime.ask([EntityType(one) for one in LABELS]))
    assert breadths is not None
    _, person, poet, singer = breadths
    assert person > max(poet, singer) + 1


def test_evaluation_and_extraction_report_the_same(model: Extractor, trained: Path, data: Path) -> None:
    dev = load_corpus(data / "poets", "dev")
    scores = EvaluationSet(dev, model.runtime).evaluate(model.runtime)
    assert scores == pytest.approx(metrics_of(trained.parent)["dev"]["poets"])
    assert scores["f1"] == pytest.approx(100 * onoma.evaluate(model, dev).strict.micro.f1)
    assert scores["f1"] > 90


def test_cached_types_have_their_breadths(trained: Path, tmp_path: Path) -> None:
    expected = onoma.load(trained, device="cpu").extract(POETS, LABELS)
    for _ in range(2):  # written, then read
        assert onoma.load(trained, device="cpu", cache_dir=tmp_path).extract(POETS, LABELS) == expected


def test_marked_examples_leave_breadths_as_they_are(model: Extractor) -> None:
    shown = EntityType("poet", examples=("[[Greta]] wrote a poem in Rome .",))
    plain = model.runtime.ask([EntityType("poet")])
    taught = model.runtime.ask([EntityType("poet")], [ExampleSet().of(shown)])
    assert not np.array_equal(plain, taught)
    assert model.runtime.breadths(plain) == model.runtime.breadths(taught)


# --- export


@pytest.mark.parametrize("int8", [False, True])
def test_exported_models_report_the_same(model: Extractor, trained: Path, tmp_path: Path, int8: bool) -> None:
    exported = onoma.load(export(trained, tmp_path / "onnx", int8))
    assert exported.runtime.backend == "onnx"
    expected = model.extract(POETS + OTHERS, LABELS)
    for some, others in zip(exported.extract(POETS + OTHERS, LABELS), expected, strict=True):
        assert [replace(one, score=0) for one in some] == [replace(one, score=0) for one in others]
        assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=0.1 if int8 else 1e-3)
    types = [EntityType(one) for one in LABELS]
    by_torch, by_onnx = (one.runtime.breadths(one.runtime.ask(types)) for one in (model, exported))
    assert by_onnx == pytest.approx(by_torch, abs=0.3 if int8 else 1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"shared_encoder": True, "pooling": "mean"},
        {"shared_linear": True},
        {"inference": "joint", "thresholds": "global"},
        {"types": "atomic", "thresholds": "global"},
    ],
    ids=str,
)
def test_breadths_can_be_exported_with_all_options(tiny_model: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    folder = random_binder(tiny_model, tmp_path / "torch", breadth_head=True, **options)
    runtimes = [onoma.load(folder, "torch", "cpu").runtime, onoma.load(export(folder, tmp_path / "onnx")).runtime]
    by_torch, by_onnx = (one.breadths(one.ask(TYPES)) for one in runtimes)
    assert by_torch is not None
    assert np.ptp(by_torch) > 0.01
    assert by_onnx == pytest.approx(by_torch, abs=1e-3)


@pytest.mark.parametrize("int8", [False, True])
def test_an_exported_breadth_head_can_be_restored(trained: Path, tmp_path: Path, int8: bool) -> None:
    exported = export(trained, tmp_path / "onnx", int8)
    weight = load_weights(trained)["breadth_head.weight"]
    assert torch.allclose(restored(exported).model.breadth_head.weight, weight, atol=1e-2 if int8 else 1e-5)


def test_a_head_can_be_added_to_an_exported_model_or_left_out(tiny_model: Path, trained: Path, tmp_path: Path) -> None:
    for source, head in (tiny_model, True), (trained, False):
        exported = export(source, tmp_path / source.name / "onnx")
        config = load_config(exported)
        replace(config, options=config.options | {"breadth_head": head}).save(exported)
        model = restored(exported).model
        assert hasattr(model, "breadth_head") == head
        if head:
            assert not model.breadth_head.weight.any()  # untrained: all labels count alike


def test_a_graph_without_the_breadths_that_its_configuration_names_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    exported = export(tiny_model, tmp_path / "onnx")
    config = load_config(exported)
    replace(config, options=config.options | {"breadth_head": True}).save(exported)
    with pytest.raises(OnomaError, match="cannot be loaded by the onnx backend"):
        onoma.load(exported)


# --- models without a head, and training


def test_models_without_a_head_have_no_breadths(ner: Extractor, tiny_model: Path, tmp_path: Path) -> None:
    exported = onoma.load(export(tiny_model, tmp_path / "onnx"))
    size = 3 * ner.config.options["vector_size"]
    for model, columns in (ner, size + 2), (exported, size + 1):
        query = model.runtime.ask(TYPES)
        assert query.shape == (len(TYPES), columns)  # as in caches that were written before there were breadths
        assert model.runtime.breadths(query) is None
    weighted = with_weight(tmp_path / "weighted", tiny_model, 4.0)  # without breadths, the weight has no effect
    names = [one.name for one in TYPES]
    assert weighted.extract(OTHERS, names) == ner.extract(OTHERS, names)


def test_a_folder_from_before_there_were_breadths_is_loaded(tiny_model: Path, ner: Extractor, tmp_path: Path) -> None:
    ner.save_pretrained(tmp_path / "old")
    path = tmp_path / "old" / "config.json"
    path.write_text(re.sub(r'\s*"(breadth_weight|breadth_head)": [^,\n]*,', "", path.read_text("utf-8")), "utf-8")
    assert "breadth" not in path.read_text("utf-8")
    names = [one.name for one in TYPES]
    assert onoma.load(tmp_path / "old", device="cpu").extract(OTHERS, names) == ner.extract(OTHERS, names)


def test_the_head_does_not_change_what_else_is_learned(
    recipe_values: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    weights = []
    for head in (False, True):
        settings = SHORT | {"max_grad_norm": 1000.0}  # gradients are not clipped together
        recipe = changed_recipe(recipe_values, options={"breadth_head": head}, training=settings)
        weights.append(load_weights(train(recipe, output=tmp_path / str(head), data=data)))
    plain, other = weights
    assert other.pop("breadth_head.weight").any()
    assert plain.keys() == other.keys()
    assert all(torch.equal(weight, other[name]) for name, weight in plain.items())


def test_prototypical_types_have_breadths(recipe_values: dict[str, Any], data: Path, tmp_path: Path) -> None:
    recipe = changed_recipe(recipe_values, options=OPTIONS | {"types": "prototype"}, training=SHORT)
    model = onoma.load(train(recipe, output=tmp_path / "run", data=data), device="cpu")
    breadths = model.runtime.breadths(model.runtime.ask([EntityType(one) for one in LABELS]))
    assert breadths is not None
    assert np.isfinite(breadths).all()
    assert np.ptp(breadths) > 0
