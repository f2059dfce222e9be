"""Training of BINDER: all of its options can be trained, and what its models know is saved with them."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

import onoma
from onoma import EntityType, Extractor, OnomaError
from onoma.data import load_corpus
from onoma.evaluation.candidates import EvaluationSet
from onoma.models.config import load_config
from onoma.models.export import export
from onoma.systems.binder.prototypes import INSTANCES
from onoma.training.run import train
from tiny import TYPES, documents
from tiny_training import SHORT, changed_recipe, metrics_of

torch.set_num_threads(1)
TEXTS = [one.text for one in documents()[::9]]
NAMES = [one.name for one in TYPES]

VARIANTS: list[dict[str, Any]] = [
    {"options": {"shared_encoder": False, "shared_linear": True, "inference": "joint"}},
    {"options": {"thresholds": "global", "types": "atomic"}},
    {"options": {"thresholds": "tuned", "types": "name"}, "data": {"max_types_per_batch": 2}},
    {"options": {"types": "prototype", "position_losses": False}},
    {"options": {"narrow_type_weight": 0.5, "max_train_width": 4}},
    {"data": {"windows": "across", "drop_empty_windows": False, "sampling": "uniform", "samples_per_epoch": 40}},
    {
        "training": {
            "gradient_accumulation_steps": 2,
            "head_learning_rate": 1e-2,
            "threshold_from": "dev",
            "ema_decay": 0.9,
            "checkpoints": True,
        }
    },
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_all_options_can_be_trained_and_loaded(
    changes: dict[str, Any], recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    changes = deepcopy(changes)
    changes["training"] = SHORT | changes.get("training", {})
    folder = train(changed_recipe(recipe_values, **changes), output=tmp_path / "run", data=data_folder)
    runtime = onoma.load(folder, "torch", "cpu").runtime
    dev = EvaluationSet(load_corpus(data_folder / "small", "dev"), runtime)
    assert dev.evaluate(runtime) == pytest.approx(metrics_of(tmp_path / "run")["dev"]["small"])
    presets = runtime.config.presets  # chosen together with the threshold
    assert bool(presets) == (changes["training"].get("threshold_from") == "dev" or "tuned" in str(changes))
    assert not presets or presets["complete"] <= runtime.config.threshold <= presets["precise"]


@pytest.mark.parametrize(("temperature", "least"), [(0.07, 80), (0.02, 60)])  # similarities up to 14, or up to 50
def test_models_with_tuned_thresholds_are_compared_at_their_best(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path, temperature: float, least: float
) -> None:
    recipe = changed_recipe(recipe_values, options={"thresholds": "tuned", "temperature": temperature})
    train(recipe, output=tmp_path / "run", data=data_folder)
    metrics = metrics_of(tmp_path / "run")
    assert metrics["best_dev_f1"] > least
    assert metrics["dev"]["small"]["f1"] == pytest.approx(metrics["best_dev_f1"], abs=5)


def test_the_sigmoid_objective_learns(recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path) -> None:
    settings = {"checkpoints": False, "max_steps": 160, "eval_steps": 40}
    recipe = changed_recipe(recipe_values, options={"objective": "sigmoid"}, training=settings)
    train(recipe, output=tmp_path / "run", data=data_folder)
    assert metrics_of(tmp_path / "run")["test"]["small"]["f1"] > 80


# --- models with a closed set of labels


@pytest.fixture(scope="module")
def prototype_model(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose types are represented by mentions of the training data."""
    output = tmp_path_factory.mktemp("runs") / "prototype"
    recipe = changed_recipe(recipe_values, options={"types": "prototype"}, training={"checkpoints": False})
    return train(recipe, output=output, data=data_folder)


def entities(model: Extractor) -> list[list[onoma.Entity]]:
    return model.extract(TEXTS, NAMES, threshold=0.05, overlap="any")


def test_prototypes_are_saved_with_the_model(prototype_model: Path) -> None:
    stored = json.loads((prototype_model / "prototypes.json").read_text("utf-8"))
    assert [len(instances) for instances in stored] == [INSTANCES] * len(load_config(prototype_model).types)
    for tokens, place in (instance for instances in stored for instance in instances):
        assert 0 < place < len(tokens)


def test_a_copy_of_a_model_with_prototypes_finds_the_same_entities(prototype_model: Path, tmp_path: Path) -> None:
    model = onoma.load(prototype_model, device="cpu")
    found = entities(model)
    assert sum(map(len, found)) > len(TEXTS)
    model.save_pretrained(tmp_path / "copy")
    assert (tmp_path / "copy" / "prototypes.json").read_bytes() == (prototype_model / "prototypes.json").read_bytes()
    assert entities(onoma.load(tmp_path / "copy", device="cpu")) == found


def test_prototypes_determine_the_entities(prototype_model: Path, tmp_path: Path) -> None:
    model = onoma.load(prototype_model, device="cpu")
    model.save_pretrained(tmp_path / "copy")
    path = tmp_path / "copy" / "prototypes.json"
    band, city, person = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps([band, person, city]), "utf-8")
    swapped = onoma.load(tmp_path / "copy", device="cpu")
    query, other = (one.runtime.ask([EntityType(name)]) for one, name in ((model, "city"), (swapped, "person")))
    assert query[0, :-1] == pytest.approx(other[0, :-1], abs=1e-5)
    path.unlink()
    with pytest.raises(OnomaError, match=r"has no prototypes\.json"):
        onoma.load(tmp_path / "copy", device="cpu")


def test_a_model_with_prototypes_cannot_be_exported(prototype_model: Path, tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"prototypical instances cannot be exported\. Fix: use the torch backend"):
        export(prototype_model, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_a_model_with_prototypes_refuses_other_labels(prototype_model: Path) -> None:
    model = onoma.load(prototype_model, device="cpu")
    assert model.runtime.labels == set(NAMES)
    with pytest.raises(OnomaError, match=r"does not know the type river\..*band, city, person"):
        model.extract("Tom swam .", ["river", "city"])


def test_development_data_with_labels_that_a_closed_model_does_not_know_is_an_error(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "other"
    corpus.mkdir()
    (corpus / "dev.jsonl").write_text(
        '{"text": "The Nile", "entities": [{"start": 4, "end": 8, "label": "river"}]}\n', "utf-8"
    )
    corpora = [{"path": "small"}, {"path": str(corpus), "train": None, "test": None}]
    changes = {"options": {"types": "atomic"}, "data": {"corpora": corpora}, "training": SHORT}
    with pytest.raises(OnomaError, match="does not know the type river"):
        train(changed_recipe(recipe_values, **changes), output=tmp_path / "run", data=data_folder)
