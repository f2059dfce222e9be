"""Recipes: errors are reported before anything is loaded, with the key that is wrong."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from onoma import EntityType, OnomaError
from onoma.models.config import CATCH_ALL_LABELS
from onoma.training.recipe import RENAMED, load_recipe

MINIMAL: dict[str, Any] = {"system": "binder", "encoder": "some/encoder", "data": {"corpora": [{"path": "news"}]}}


def changed(place: str, value: Any) -> dict[str, Any]:
    """The minimal recipe with one value added or changed."""
    values = deepcopy(MINIMAL)
    *folders, last = place.split(".")
    inner: Any = values
    for name in folders:
        inner = inner[int(name)] if isinstance(inner, list) else inner.setdefault(name, {})
    inner[last] = value
    return values


def test_a_minimal_recipe_has_defaults() -> None:
    recipe = load_recipe(MINIMAL)
    assert recipe.training.batch_size == 8
    assert recipe.system_options().thresholds == "dynamic"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("sytem", "binder"),
        ("system", "blinder"),
        ("encoder", None),
        ("seed", "abc"),
        ("seed", -1),
        ("seed", 2**32),
        ("max_tokens", 64),
        ("overlap", -1),
        ("data.corpora", []),
        ("data.corpora.0.limt", 5),
        ("data.corpora.0.dev_share", 1.5),
        ("data.corpora.0.limit", 0),
        ("data.windows", "paragraph"),
        ("data.sampling", "random"),
        ("data.sampling", 0),
        ("data.samples_per_epoch", 0),
        ("data.max_types_per_batch", 0),
        ("training.batch_size", 0),
        ("training.gradient_accumulation_steps", 0),
        ("training.learning_rate", "fast"),
        ("training.learning_rate", -1e-5),
        ("training.learning_rate", float("inf")),
        ("training.weight_decay", float("nan")),
        ("training.max_grad_norm", float("inf")),
        ("training.max_steps", 0),
        ("training.max_steps", -2),
        ("training.epochs", 0),
        ("training.eval_steps", 0),
        ("training.patience", 0),
        ("training.warmup_ratio", 1.0),
        ("training.description_dropout", 2),
        ("training.optimizer", "sgd"),
    ],
)
def test_a_wrong_value_is_named(place: str, value: Any) -> None:
    with pytest.raises(OnomaError, match=place.replace(".", r"\.")) as caught:
        load_recipe(changed(place, value))
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("sise", 64, "vector_size"),
        ("vector_size", "big", "'big'"),
        ("thresholds", "dynamik", "dynamic, global, tuned"),
        ("loss_weights", [1.0, 2.0], "a list of 3"),
        ("types", "keywords", "'keywords'"),
        ("size", 64, "'vector_size'"),
    ],
)
def test_a_wrong_option_is_named(name: str, value: Any, expected: str) -> None:
    with pytest.raises(OnomaError, match=rf"option '{name}'.*{expected}"):
        load_recipe(changed(f"options.{name}", value))


@pytest.mark.parametrize(("old", "new"), RENAMED.items(), ids=RENAMED)
def test_former_keys_are_refused_with_their_present_name(old: str, new: str) -> None:
    place = old.replace("data.corpora.", "data.corpora.0.")
    with pytest.raises(OnomaError, match=rf"'{re.escape(old)}'.* '{re.escape(new)}'"):
        load_recipe(changed(place, 1))
    with pytest.raises(OnomaError, match=re.escape(new)):
        load_recipe(MINIMAL, [f"{place}=1"])


@pytest.mark.parametrize("old", [key for key in RENAMED if key.startswith("training.")])
def test_former_keys_are_refused_in_stages(old: str) -> None:
    name = old.removeprefix("training.")
    with pytest.raises(OnomaError, match=re.escape(RENAMED[old].removeprefix("training."))):
        load_recipe(changed(f"stages.binder.{name}", 1))


def test_present_keys_are_accepted() -> None:
    values: dict[str, Any] = {
        "parts.detector": "runs/detector",
        "training.warmup_ratio": 0.2,
        "training.ema_decay": 0.5,
        "training.cuda_graphs": False,
        "training.threshold_from": "dev",
        "training.description_dropout": 0.5,
        "data.corpora.0.annotation": "by_cooccurrence",
        "data.corpora.0.broader_types": {"person": ["poet"]},
        "data.drop_empty_windows": False,
    }
    for new in RENAMED.values():
        place = new.replace("data.corpora.", "data.corpora.0.")
        load_recipe(changed(place, values.get(place, 3)))


def test_a_missing_value_is_named() -> None:
    with pytest.raises(OnomaError, match=r"data\.corpora\.0\.path"):
        load_recipe({**MINIMAL, "data": {"corpora": [{}]}})


def test_all_errors_are_reported_at_once() -> None:
    values = {**changed("training.batch_size", "x"), "sed": 1}
    with pytest.raises(OnomaError) as caught:
        load_recipe(values)
    assert "training.batch_size" in str(caught.value)
    assert "sed" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("training.epochs=3", lambda recipe: recipe.training.epochs == 3),
        ("training.learning_rate=5e-5", lambda recipe: recipe.training.learning_rate == 5e-5),
        ("options.thresholds=global", lambda recipe: recipe.system_options().thresholds == "global"),
        (
            "options.loss_weights=[0.1, 0.1, 0.8]",
            lambda recipe: recipe.system_options().loss_weights == (0.1, 0.1, 0.8),
        ),
        ("data.corpora.0.path=other=place", lambda recipe: recipe.data.corpora[0].path == "other=place"),
        ("data.corpora.0.test=null", lambda recipe: recipe.data.corpora[0].test is None),
        ("data.corpora=[{path: a}, {path: b}]", lambda recipe: [one.path for one in recipe.data.corpora] == ["a", "b"]),
    ],
)
def test_set_changes_one_value(change: str, read: Any) -> None:
    assert not read(load_recipe(MINIMAL))
    assert read(load_recipe(MINIMAL, [change]))


def test_set_does_not_change_the_given_values() -> None:
    before = deepcopy(MINIMAL)
    load_recipe(MINIMAL, ["training.epochs=3", "data.corpora.0.path=b"])
    assert before == MINIMAL


@pytest.mark.parametrize(
    "change",
    [
        "training.epochs",
        "=3",
        "training.epochs=[1",
        "training.epocks=3",
        "encoder.size=3",
        "data.corpora.first.path=a",
        "data.corpora.7.path=a",
        "data.corpora.x=a",
    ],
)
def test_a_wrong_change_is_reported(change: str) -> None:
    with pytest.raises(OnomaError, match=r"epoc|--set|encoder\.size|corpora"):
        load_recipe(MINIMAL, [change])


def test_an_unreadable_file_is_reported_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"nowhere\.yaml"):
        load_recipe(tmp_path / "nowhere.yaml")
    for name, content in {"list.yaml": "- a\n- b\n", "empty.yaml": "", "bad.yaml": "a: [1\n"}.items():
        (tmp_path / name).write_text(content, "utf-8")
        with pytest.raises(OnomaError, match=name.replace(".", r"\.")):
            load_recipe(tmp_path / name)


def test_numbers_may_be_written_with_an_exponent(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    text = "system: binder\nencoder: e\ndata: {corpora: [{path: a}]}\ntraining: {learning_rate: 3e-5}\n"
    path.write_text(text, "utf-8")  # YAML reads 3e-5, without a point, as a string
    assert load_recipe(path).training.learning_rate == 3e-5


def test_paths_with_a_dot_are_relative_to_the_recipe(tmp_path: Path) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    values = {"system": "binder", "encoder": "x", "data": {"corpora": [{"path": "../own"}, {"path": "en/other"}]}}
    (folder / "one.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    recipe = load_recipe(folder / "one.yaml")
    assert [one.path for one in recipe.data.corpora] == [str(tmp_path / "own"), "en/other"]
    (folder / "bad.yaml").write_text("system: binder\nencoder: x\ndata: {corpora: [3]}\n", encoding="utf-8")
    with pytest.raises(OnomaError, match=r"data\.corpora\.0"):
        load_recipe(folder / "bad.yaml")


@pytest.mark.parametrize(("names", "expected"), [(["person"], CATCH_ALL_LABELS), (["person", "Other "], ())])
def test_catch_all_labels_rank_last_unless_the_model_is_trained_on_one(
    names: list[str], expected: tuple[str, ...]
) -> None:
    config = load_recipe(MINIMAL).model_config_for([EntityType(name, "text") for name in names], {"max_width": 7})
    assert config.catch_all == expected
    assert config.types == dict.fromkeys(names, "text")
    assert (config.system, config.encoder, config.options) == ("binder", "some/encoder", {"max_width": 7})
