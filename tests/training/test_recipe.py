"""Recipes: what is wrong is said before anything is loaded, with its place."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from onoma import OnomaError
from onoma.training.recipe import load_recipe

MINIMAL: dict[str, Any] = {"system": "binder", "encoder": "some/encoder", "data": {"corpora": [{"path": "news"}]}}
RECIPES = Path(__file__).parents[2] / "recipes"


def changed(place: str, value: Any) -> dict[str, Any]:
    """The minimal recipe with one value put somewhere."""
    values = deepcopy(MINIMAL)
    *folders, last = place.split(".")
    inner: Any = values
    for name in folders:
        inner = inner[int(name)] if isinstance(inner, list) else inner.setdefault(name, {})
    inner[last] = value
    return values


def test_a_recipe_needs_little() -> None:
    recipe = load_recipe(MINIMAL)
    assert recipe.training.batch_size == 8
    assert recipe.binder_options().thresholds == "dynamic"


@pytest.mark.parametrize("path", sorted(RECIPES.rglob("*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_recipes_that_come_with_onoma_are_right(path: Path) -> None:
    assert load_recipe(path).data.corpora


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("sytem", "binder"),
        ("system", "blinder"),
        ("encoder", None),
        ("seed", "abc"),
        ("seed", -1),
        ("max_tokens", 64),
        ("overlap", -1),
        ("data.corpora", []),
        ("data.corpora.0.limt", 5),
        ("data.corpora.0.dev_share", 1.5),
        ("data.corpora.0.limit", 0),
        ("data.windows", "paragraph"),
        ("data.sampling", "random"),
        ("data.sampling", 0),
        ("data.draws", 0),
        ("data.most_types", 0),
        ("training.batch_size", 0),
        ("training.accumulation", 0),
        ("training.rate", "fast"),
        ("training.rate", -1e-5),
        ("training.epochs", 0),
        ("training.evaluate_every", 0),
        ("training.patience", 0),
        ("training.warmup", 1.0),
        ("training.type_dropout", 2),
        ("training.optimizer", "sgd"),
        ("options.sise", 64),
        ("options.size", "big"),
        ("options.thresholds", "dynamik"),
        ("options.weights", [1.0, 2.0]),
        ("options.types", "keywords"),
    ],
)
def test_what_is_wrong_is_named(place: str, value: Any) -> None:
    with pytest.raises(OnomaError, match=place.replace(".", r"\.")) as caught:
        load_recipe(changed(place, value))
    assert repr(value) in str(caught.value)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(OnomaError, match=r"data\.corpora\.0\.path"):
        load_recipe({**MINIMAL, "data": {"corpora": [{}]}})


def test_everything_wrong_is_said_at_once() -> None:
    values = {**changed("training.batch_size", "x"), "sed": 1}
    with pytest.raises(OnomaError) as caught:
        load_recipe(values)
    assert "training.batch_size" in str(caught.value)
    assert "sed" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("training.epochs=3", lambda recipe: recipe.training.epochs == 3),
        ("training.rate=5e-5", lambda recipe: recipe.training.rate == 5e-5),
        ("options.thresholds=global", lambda recipe: recipe.binder_options().thresholds == "global"),
        ("options.weights=[0.1, 0.1, 0.8]", lambda recipe: recipe.binder_options().weights == (0.1, 0.1, 0.8)),
        ("data.corpora.0.path=other=place", lambda recipe: recipe.data.corpora[0].path == "other=place"),
        ("data.corpora.0.test=null", lambda recipe: recipe.data.corpora[0].test is None),
        ("data.corpora=[{path: a}, {path: b}]", lambda recipe: [one.path for one in recipe.data.corpora] == ["a", "b"]),
    ],
)
def test_set_changes_one_value(change: str, read: Any) -> None:
    assert not read(load_recipe(MINIMAL))
    assert read(load_recipe(MINIMAL, [change]))


def test_set_leaves_the_given_values_alone() -> None:
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
def test_a_bad_change_says_so(change: str) -> None:
    with pytest.raises(OnomaError, match=r"epoc|--set|encoder\.size|corpora"):
        load_recipe(MINIMAL, [change])


def test_a_bad_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"nowhere\.yaml"):
        load_recipe(tmp_path / "nowhere.yaml")
    for name, content in {"list.yaml": "- a\n- b\n", "empty.yaml": "", "bad.yaml": "a: [1\n"}.items():
        (tmp_path / name).write_text(content, "utf-8")
        with pytest.raises(OnomaError, match=name.replace(".", r"\.")):
            load_recipe(tmp_path / name)


def test_numbers_may_be_written_as_people_do(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    text = "system: binder\nencoder: e\ndata: {corpora: [{path: a}]}\ntraining: {rate: 3e-5}\n"
    path.write_text(text, "utf-8")  # YAML reads 3e-5, without a point, as a string
    assert load_recipe(path).training.rate == 3e-5


def test_corpora_beside_the_recipe(tmp_path: Path) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    values = {"system": "binder", "encoder": "x", "data": {"corpora": [{"path": "../own"}, {"path": "en/other"}]}}
    (folder / "one.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    recipe = load_recipe(folder / "one.yaml")
    assert [one.path for one in recipe.data.corpora] == [str(tmp_path / "own"), "en/other"]
    (folder / "bad.yaml").write_text("system: binder\nencoder: x\ndata: {corpora: [3]}\n", encoding="utf-8")
    with pytest.raises(OnomaError, match=r"data\.corpora\.0"):
        load_recipe(folder / "bad.yaml")
