"""The embedded model, which is part of every installation."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import onoma
from onoma import Extractor
from onoma.models.hub import EMBEDDED

ENGLISH, CHINESE = "Maria Silva flew from Lisbon to Oslo.", "马云于1999年在杭州创立了阿里巴巴集团。"


@pytest.fixture(scope="module")
def embedded() -> Extractor:
    return onoma.load()


@pytest.mark.parametrize("labels", [["person", "city"], ["人名", "城市"]])
def test_texts_and_labels_in_two_languages(embedded: Extractor, labels: list[str]) -> None:
    person, city = labels
    found = [[(one.text, one.label) for one in entities] for entities in embedded.extract([ENGLISH, CHINESE], labels)]
    assert found == [
        [("Maria Silva", person), ("Lisbon", city), ("Oslo", city)],
        [("马云", person), ("杭州", city)],
    ]


def test_a_narrow_type_is_preferred_to_a_broad_one(embedded: Extractor) -> None:
    found = embedded.extract("The Liberal Party thanked the Red Cross.", ["organization", "political party"])
    assert [(one.text, one.label) for one in found] == [
        ("Liberal Party", "political party"),
        ("Red Cross", "organization"),
    ]


@pytest.mark.parametrize("text", ["Titanic was directed by James Cameron.", "李安执导了电影《卧虎藏龙》。"])
def test_traditional_labels_find_what_simplified_ones_find(embedded: Extractor, text: str) -> None:
    simplified, traditional = ["电影", "导演", "杂项"], ["電影", "導演", "雜項"]
    names = dict(zip(traditional, simplified, strict=True))
    found = embedded.extract(text, traditional)
    assert len(found) == 2
    assert [replace(one, label=names[one.label]) for one in found] == embedded.extract(text, simplified)


@pytest.mark.parametrize("text", ["IBM公司在北京设立了AI研究院，投资3.5亿元。", "张伟于20:30在GitHub发布了代码。"])
def test_full_width_letters_and_digits_have_no_influence(embedded: Extractor, text: str) -> None:
    wide = "".join(chr(ord(one) + 0xFEE0) if one.isascii() else one for one in text)
    labels = ["公司", "城市", "人名", "时间"]
    found = embedded.extract(wide, labels)
    assert found
    assert [replace(one, text=text[one.start : one.end]) for one in found] == embedded.extract(text, labels)
    assert all(one.text == wide[one.start : one.end] for one in found)


def test_chinese_sentences_with_latin_words_are_read_by_the_chinese_model(embedded: Extractor) -> None:
    texts = ["购买Microsoft Office请联系王芳", "iPhone 15 Pro Max在Apple Store上海南京东路店开售"]
    people, cities = embedded.extract(texts, ["person", "city"])
    assert ("王芳", "person") in [(one.text, one.label) for one in people]
    assert ("上海", "city") in [(one.text, one.label) for one in cities]


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "😀👍🏽👩‍👩‍👧", "0123456789 42 3.14", "\x00\x01\x07\x1b\x7f", "a" * 20_000, "1" * 20_000, "。，！？"],
)
def test_texts_without_names_have_no_entities(embedded: Extractor, text: str) -> None:
    assert embedded.extract(text, ["person", "city", "人名", "地名"]) == []


def test_it_does_not_need_pytorch() -> None:
    program = f"""
import sys
for name in ("torch", "transformers", "onnx", "safetensors", "huggingface_hub"):
    sys.modules[name] = None
import onoma
found = onoma.load().extract([{ENGLISH!r}, {CHINESE!r}], ["person"])
assert [len(entities) for entities in found] == [1, 1], found
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_it_is_small() -> None:
    files = [path for path in Path(EMBEDDED).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 64e6
    assert {path.suffix for path in files} == {".json", ".md", ".onnx"}  # never pickle
