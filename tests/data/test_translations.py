"""The table of common labels in English and Chinese."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from onoma import DataError, EntityType
from onoma.data.inventory import Inventory, Language
from onoma.data.translations import label_translations, read_table
from onoma.labels.spelling import ABBREVIATIONS
from onoma.labels.translation import TRANSLATIONS_FILE, LabelTranslator, normalize_name
from onoma.models.hub import EMBEDDED
from onoma.text.words import is_unspaced

COMMON = """
person people PER name organization ORG company city country location LOC date time money price
hospital bank law team school university product brand book film song event disease drug symptom
doctor patient lawyer judge court police government political_party president minister airport
station street address phone email URL ip_address passport_number bank_account credit_card_number
id_number license_plate order_number animal plant food drink fruit vegetable vehicle car ship
aircraft weapon war battle festival earthquake award language religion nationality occupation
JOB_TITLE skill degree sport athlete football_team stadium coach actor singer musician painter
museum restaurant hotel park river mountain lake island gene protein virus bacterium
chemical_element mineral planet software programming_language database server website newspaper
magazine tv_channel journalist stock currency tax contract insurance percentage quantity age weight
height facility GPE NORP FAC work_of_art ordinal cardinal hospitals Companies phoneNumbers
medical_condition treatment surgery
"""
CHINESE = """
姓名 人物 组织 机构 地点 位置 公司名称 企业 职务 手机号 邮箱 身份证号 银行卡号 药品 医院 银行 法律 学校 金额 车牌号
"""


@pytest.mark.parametrize("name", COMMON.split())
def test_common_english_labels_are_known_in_chinese(name: str) -> None:
    (translated,) = LabelTranslator(EMBEDDED / "zh", "zh").translate([EntityType(name)])
    assert is_unspaced(translated.name)


@pytest.mark.parametrize("name", CHINESE.split())
def test_common_chinese_labels_are_known_in_english(name: str) -> None:
    (translated,) = LabelTranslator(EMBEDDED / "en", "en").translate([EntityType(name)])
    assert translated.name.isascii()


def test_other_names_for_a_type_of_the_inventory_are_translated_like_its_own() -> None:
    table = label_translations("zh")
    assert table["film"] == table["movie"]
    assert table["corporation"] == table["company"]
    assert label_translations("en")["姓名"] == label_translations("en")["人名"]


def test_names_are_written_once_and_have_one_meaning() -> None:
    rows, types = list(read_table()), Inventory.load().types
    known = {normalize_name(one.name): normalize_name(one.zh) for one in types.values() if one.zh}
    for names in ([one for row in rows for one in row.english], [one for row in rows for one in row.chinese]):
        counts = Counter(map(normalize_name, names))
        assert [name for name, count in counts.items() if count > 1] == []
    for row in rows:
        english, chinese = (list(map(normalize_name, names)) for names in (row.english, row.chinese))
        assert all(known.get(name, chinese[0]) == chinese[0] for name in english)
        assert not set(chinese[1:]) & set(known.values()) - {"组织"}
        if chinese[0] in known.values():  # other names for a type of the inventory, which comes first
            assert known[english[0]] == chinese[0]


def test_names_are_natural_and_many() -> None:
    rows = list(read_table())
    assert sum(len(row.english) for row in rows) >= 1500
    for row in rows:
        assert all(one == one.strip() and normalize_name(one) for one in (*row.english, *row.chinese))
        assert all(not is_unspaced(one) for one in row.english)
        assert all(is_unspaced(one) or one.isupper() for one in row.chinese)


def test_no_abbreviation_of_a_label_contradicts_its_full_form() -> None:
    table = label_translations("zh")
    for short, full in ABBREVIATIONS.items():
        if short in table and normalize_name(full) in table and short not in ("amt", "website"):
            assert table[short] == table[normalize_name(full)], (short, full)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_embedded_model_has_the_current_table(language: Language) -> None:
    assert json.loads((EMBEDDED / language / TRANSLATIONS_FILE).read_text("utf-8")) == label_translations(language)


@pytest.mark.parametrize("line", ["dog", "dog = ", "dog, = 狗", " = 狗", "dog = 狗、"])
def test_a_bad_row_is_explained(tmp_path: Path, line: str) -> None:
    path = tmp_path / "table.txt"
    path.write_text(f"# animals\ncat = 猫\n{line}\n", "utf-8")
    with pytest.raises(DataError, match=r"table\.txt.*3.*needs English and Chinese names"):
        list(read_table(path))
