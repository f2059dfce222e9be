from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from onoma import EntityType, OnomaError
from onoma.config import ModelConfig
from onoma.data import Inventory
from onoma.label_names import LABELS, LabelNames, told_config, write_label_names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the configuration of a model, and names that are not those of the inventory."""
    ModelConfig("binder", threshold=0.7, options={"size": 32}).save(tmp_path)
    (tmp_path / LABELS).write_text(json.dumps({"job title": ["头衔", "职业上的称呼"]}), "utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["job title", "Job Title", " job_title", "JOB-TITLE", "ｊｏｂ title"])
def test_spelling_does_not_matter(folder: Path, name: str) -> None:
    (told,) = LabelNames(folder, "zh").told([EntityType(name)])
    assert told == EntityType("头衔", "职业上的称呼")


def test_what_the_user_said_stays(folder: Path) -> None:
    names = LabelNames(folder, "zh")
    (told,) = names.told([EntityType("job title", examples=("经理",), threshold=0.4)])
    assert told == EntityType("头衔", "职业上的称呼", ("经理",), 0.4)
    same = (EntityType("job title", "what one is called at work"), EntityType("人名"), EntityType("unheard of"))
    assert names.told(same) == same


def test_without_a_language_nothing_is_changed(folder: Path) -> None:
    assert LabelNames(folder, None).told([EntityType("job title")]) == (EntityType("job title"),)


def test_labels_in_the_language_of_the_model_need_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inventory, "load", None)
    english, chinese = (EntityType("person"), EntityType("DNA")), (EntityType("人名"), EntityType("B细胞"))
    assert LabelNames(tmp_path, "en").told(english) == english
    assert LabelNames(tmp_path, "zh").told(chinese) == chinese


def test_names_come_from_the_inventory_where_no_file_has_them(tmp_path: Path) -> None:
    ours = Inventory.load().types["person"]
    assert LabelNames(tmp_path, "zh").told([EntityType("person")]) == (ours.in_language("zh"),)
    assert LabelNames(tmp_path, "en").told([EntityType(ours.zh)]) == (ours.in_language("en"),)


@pytest.mark.parametrize(("language", "asked"), [("zh", "person"), ("en", "人名")])
def test_written_names_are_those_of_the_inventory(folder: Path, language: str, asked: str) -> None:
    write_label_names(folder, language)  # type: ignore[arg-type]
    assert ModelConfig.load(folder) == ModelConfig("binder", threshold=0.7, options={"size": 32, "language": language})
    ours = Inventory.load().types["person"].in_language(language)  # type: ignore[arg-type]
    names = json.loads((folder / LABELS).read_text("utf-8"))
    assert names[asked] == [ours.name, ours.description]
    assert len(names) == sum(bool(one.zh) for one in Inventory.load().types.values())


@pytest.mark.parametrize("content", ["{", "[]", '{"person": "人名"}', '{"person": ["人名"]}', '{"person": 3}'])
def test_a_damaged_file_is_explained(tmp_path: Path, content: str) -> None:
    (tmp_path / LABELS).write_text(content, "utf-8")
    with pytest.raises(OnomaError, match=r"labels\.json is damaged"):
        LabelNames(tmp_path, "zh").told([EntityType("person")])


def test_an_unknown_language_is_explained(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"one of en, zh, config\.json says 'fr'"):
        LabelNames(tmp_path, "fr")


def test_what_was_tuned_for_a_name_holds_for_its_translation() -> None:
    config = ModelConfig("binder", thresholds={"人名": 0.2, "city": 0.3})
    asked = [EntityType("person"), EntityType("city")]
    told = [replace(asked[0], name="人名"), replace(asked[1], name="城市")]
    assert told_config(config, asked, told).thresholds == {"人名": 0.2, "person": 0.2, "city": 0.3}
