"""A teacher: its scores are learned for types that the training data does not annotate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import onoma
from onoma import Document, OnomaError
from onoma.data import write
from onoma.systems.blocks.losses import distillation_loss, focal_loss
from onoma.training.run import train
from tiny import documents
from tiny_training import changed_recipe, save_encoder, small_recipe

torch.set_num_threads(1)

FEW_STEPS = {"max_steps": 120, "eval_steps": 60, "checkpoints": False, "threshold_from": "dev", "patience": 9}
TEXTS = ["Tom flew to Oslo .", "In Lima it rains , says Ann .", "Nobody has seen Greta since the concert in Rome ."]


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A recipe with the sigmoid objective."""
    values = small_recipe(save_encoder(tmp_path_factory.mktemp("encoders") / "bert", documents()))
    values["options"] = values.get("options", {}) | {"objective": "sigmoid"}
    values["data"] |= {"corpora": [{"path": "trips", "test": None}], "drop_empty_windows": False}
    values["training"] |= FEW_STEPS
    return values


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All mentions, or only the persons: nothing is known about cities there, except in one sentence without any."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("all", "persons")}
    full = documents()
    write(full, folders["all"] / "trips" / "train.jsonl")
    write([only_persons(one) for one in full], folders["persons"] / "trips" / "train.jsonl")
    known = Document("We eat soup .", annotated=frozenset({"city", "band"}))
    write([*map(only_persons, full), known], folders["persons"] / "trips" / "train.jsonl")
    for folder in folders.values():
        write(full[::5], folder / "trips" / "dev.jsonl")
    return folders


def only_persons(document: Document) -> Document:
    entities = tuple(one for one in document.entities if one.label == "person")
    return replace(document, entities=entities, annotated=frozenset({"person"}))


@pytest.fixture(scope="module")
def teacher(values: dict[str, Any], data: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows cities."""
    return train(changed_recipe(values), output=tmp_path_factory.mktemp("teacher") / "run", data=data["all"])


def cities(model: Path) -> list[str]:
    found = onoma.load(model, device="cpu").extract(TEXTS, ["city"])
    return [one.text for each in found for one in each]


def test_a_teacher_shows_what_is_not_annotated(
    values: dict[str, Any], data: dict[str, Path], teacher: Path, tmp_path: Path
) -> None:
    taught = changed_recipe(values, training={"teacher": str(teacher)})
    model = train(taught, output=tmp_path / "taught", data=data["persons"])
    assert cities(teacher) == cities(model) == ["Oslo", "Lima", "Rome"]
    alone = train(changed_recipe(values), output=tmp_path / "alone", data=data["persons"])
    assert cities(alone) != ["Oslo", "Lima", "Rome"]
    assert "teacher" not in (model / "config.json").read_text("utf-8")


def test_other_systems_have_no_teacher(
    values: dict[str, Any], data: dict[str, Path], teacher: Path, tmp_path: Path
) -> None:
    other = changed_recipe(values, training={"teacher": str(teacher)})
    for changes in ({"options": {"objective": "contrast"}}, {"system": "suner", "options": {}}):
        recipe = changed_recipe(values | changes, training={"teacher": str(teacher)})
        with pytest.raises(OnomaError, match="teacher"):
            train(recipe, output=tmp_path / str(len(list(tmp_path.iterdir()))), data=data["all"])
    contrast = train(
        changed_recipe(values, options={"objective": "contrast"}, training={"max_steps": 2, "eval_steps": 2}),
        output=tmp_path / "contrast",
        data=data["all"],
    )
    recipe = changed_recipe(other.model_dump(), training={"teacher": str(contrast)})
    with pytest.raises(OnomaError, match="objective: sigmoid"):
        train(recipe, output=tmp_path / "from-contrast", data=data["all"])


@given(st.integers(0, 1000), st.floats(0, 3))
def test_the_loss_equals_a_loop(seed: int, gamma: float) -> None:
    generator = np.random.default_rng(seed)
    margin, teacher = generator.normal(0, 3, (2, 2, 3, 4))
    counted = generator.random((2, 3, 4)) < 0.6
    total = weight = 0.0
    for place in np.ndindex(margin.shape):
        if counted[place]:
            p, t = (1 / (1 + np.exp(-x[place])) for x in (margin, teacher))
            total += abs(t - p) ** gamma * (-t * np.log(p) - (1 - t) * np.log(1 - p))
            weight += t
    tensors = (torch.tensor(one) for one in (margin, teacher, counted))
    assert float(distillation_loss(*tensors, gamma)) == pytest.approx(total / max(weight, 1), rel=1e-4)


def test_with_a_teacher_that_is_sure_it_is_the_focal_loss() -> None:
    generator = torch.Generator().manual_seed(0)
    margin = torch.randn(2, 3, 5, generator=generator)
    gold = torch.rand(2, 3, 5, generator=generator) < 0.4
    candidate, known = torch.ones(2, 1, 5, dtype=torch.bool), torch.ones(2, 3, dtype=torch.bool)
    sure = torch.where(gold, 40.0, -40.0)
    expected = focal_loss(margin, gold, candidate & known.unsqueeze(-1), 2.0)
    assert float(distillation_loss(margin, sure, torch.ones_like(gold), 2.0)) == pytest.approx(
        float(expected), rel=1e-5
    )
