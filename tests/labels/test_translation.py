from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from onoma import EntityType, OnomaError
from onoma.labels.translation import TRANSLATIONS_FILE, LabelTranslator, normalize_name
from onoma.models.hub import EMBEDDED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a translation that is not in Onoma's type inventory."""
    (tmp_path / TRANSLATIONS_FILE).write_text(json.dumps({"job title": ["头衔", "职业上的称呼"]}), "utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["job title", "Job Title", " job_title", "JOB-TITLE", "ｊｏｂ title"])
def test_spelling_has_no_influence(folder: Path, name: str) -> None:
    (translated,) = LabelTranslator(folder, "zh").translate([EntityType(name)])
    assert translated == EntityType("头衔", "职业上的称呼")


def test_examples_and_thresholds_are_kept(folder: Path) -> None:
    asked = EntityType("job title", examples=("经理",), threshold=0.4)
    (translated,) = LabelTranslator(folder, "zh").translate([asked])
    assert translated == EntityType("头衔", "职业上的称呼", ("经理",), 0.4)


def test_types_with_a_description_or_without_a_translation_stay_as_they_are(folder: Path) -> None:
    types = (EntityType("job title", "what one is called at work"), EntityType("人名"), EntityType("unheard of"))
    assert LabelTranslator(folder, "zh").translate(types) == types


@pytest.mark.parametrize("name", ["電影", "电影"])
def test_traditional_labels_are_translated_like_simplified_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / TRANSLATIONS_FILE).write_text(json.dumps({"电影": ["film", "a motion picture"]}), "utf-8")
    assert LabelTranslator(tmp_path, "en").translate([EntityType(name)]) == (EntityType("film", "a motion picture"),)


def test_a_chinese_model_is_asked_for_simplified_labels(folder: Path) -> None:
    types = [EntityType("電影", "電影的名稱，（如《臥虎藏龍》）", threshold=0.3), EntityType("ＤＶＤ類型")]
    expected = (EntityType("电影", "电影的名称，（如《卧虎藏龙》）", threshold=0.3), EntityType("DVD类型"))
    assert LabelTranslator(folder, "zh").translate(types) == expected


def test_traditional_labels_that_a_model_was_trained_on_stay(folder: Path) -> None:
    (asked,) = types = (EntityType("電影"),)
    assert LabelTranslator(folder, "zh", known={asked.name: ""}).translate(types) == types


def test_names_of_the_embedded_tables_are_simplified() -> None:
    for model in ("en", "zh"):
        names = json.loads((EMBEDDED / model / TRANSLATIONS_FILE).read_text("utf-8"))
        assert all(normalize_name(name) == name for name in names)


def test_without_a_language_nothing_is_translated(folder: Path) -> None:
    assert LabelTranslator(folder, None).translate([EntityType("job title")]) == (EntityType("job title"),)


def test_labels_in_the_language_of_the_model_do_not_need_the_table(tmp_path: Path) -> None:
    (tmp_path / TRANSLATIONS_FILE).write_text("{", "utf-8")  # reading it would be an error
    english, chinese = (EntityType("person"), EntityType("DNA")), (EntityType("人名"), EntityType("B细胞"))
    assert LabelTranslator(tmp_path, "en").translate(english) == english
    assert LabelTranslator(tmp_path, "zh").translate(chinese) == chinese


def test_without_a_table_labels_stay_as_they_are(tmp_path: Path) -> None:
    assert LabelTranslator(tmp_path, "zh").translate([EntityType("person")]) == (EntityType("person"),)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"person": "人名"}', '{"person": ["人名"]}', '{"person": 3}', '{"a": ["", ""]}', "[" * 50_000],
)
def test_a_damaged_table_is_explained(tmp_path: Path, content: str) -> None:
    (tmp_path / TRANSLATIONS_FILE).write_text(content, "utf-8")
    with pytest.raises(OnomaError, match=r"labels\.json.*Fix: save or download the model again"):
        LabelTranslator(tmp_path, "zh").translate([EntityType("person")])


def test_labels_without_a_translation_are_reported_once_in_one_line(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    translator = LabelTranslator(folder, "zh")
    with caplog.at_level(logging.WARNING, "onoma"):
        translator.translate([EntityType("job title"), EntityType("人名"), EntityType("widget"), EntityType("gadget")])
        translator.translate([EntityType("gadget"), EntityType("widget", "a small thing")])
        translator.translate([EntityType(f"thing {number}") for number in range(25)])
    first, second = (record.getMessage() for record in caplog.records)
    assert "'widget', 'gadget';" in first
    assert "job title" not in first
    assert "'thing 9' and 15 more" in second
