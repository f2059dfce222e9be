"""The embedded model, which is part of every installation."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onoma
from onoma import Extractor
from onoma.decoding.overlap import Overlap
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
    text = "The Liberal Party thanked Volvo and the Red Cross."
    found = embedded.extract(text, ["organization", "political party"])
    assert [(one.text, one.label) for one in found] == [
        ("Liberal Party", "political party"),
        ("Volvo", "organization"),
        ("Red Cross", "organization"),
    ]


@pytest.mark.parametrize("text", ["Titanic was directed by James Cameron.", "李安执导了电影《卧虎藏龙》。"])
def test_traditional_labels_find_what_simplified_ones_find(embedded: Extractor, text: str) -> None:
    simplified, traditional = ["电影", "导演", "杂项"], ["電影", "導演", "雜項"]
    names = dict(zip(traditional, simplified, strict=True))
    found = embedded.extract(text, traditional)
    assert len(found) == 2
    assert [replace(one, label=names[one.label]) for one in found] == embedded.extract(text, simplified)


MIXED = "The CEO of 腾讯, 马化腾, met Tim Cook in 深圳."


def test_names_of_both_scripts_are_found_in_one_sentence(embedded: Extractor) -> None:
    found = embedded.extract(MIXED, ["person", "company", "city"])
    assert [(one.text, one.label) for one in found] == [
        ("腾讯", "company"),
        ("马化腾", "person"),
        ("Tim Cook", "person"),
        ("深圳", "city"),
    ]


def test_sentences_of_a_text_are_read_by_the_model_for_their_script(embedded: Extractor) -> None:
    text = f"{CHINESE}{ENGLISH} 王芳住在上海。"
    apart = [embedded.extract(one, ["person", "city"]) for one in (CHINESE, ENGLISH, "王芳住在上海。")]
    found = embedded.extract(text, ["person", "city"])
    assert [(one.text, one.label) for one in found] == [(one.text, one.label) for each in apart for one in each]
    assert all(text[one.start : one.end] == one.text for one in found)


def test_a_text_in_one_script_is_read_as_by_its_model_alone(embedded: Extractor) -> None:
    for text, name in ((ENGLISH, "en"), (CHINESE, "zh")):
        alone = onoma.load(EMBEDDED / name).extract(text, ["person", "city"])
        assert embedded.extract(text, ["person", "city"]) == alone


pieces = st.sampled_from(
    [
        "Maria Silva ",
        "flew to Oslo. ",
        "She met ",
        "王芳",
        "在上海。",
        "马云在杭州创立了公司。",
        "iPhone ",
        "\n",
        "3, ",
        "，",
        "(腾讯) ",
    ]
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(pieces, max_size=12).map("".join), max_size=5), st.sampled_from(["flat", "nested", "any"]))
def test_other_texts_and_their_order_have_no_influence_on_mixed_text(
    embedded: Extractor, texts: list[str], overlap: Overlap
) -> None:
    labels = ["person", "city", "公司"]
    together = embedded.extract(texts, labels, overlap=overlap)
    backwards = embedded.extract(texts[::-1], labels, overlap=overlap)[::-1]
    for text, found, again in zip(texts, together, backwards, strict=True):
        alone = embedded.extract(text, labels, overlap=overlap)
        for other in (found, again):
            assert [(one.start, one.end, one.label) for one in other] == [
                (one.start, one.end, one.label) for one in alone
            ]
            assert [one.score for one in other] == pytest.approx([one.score for one in alone], abs=0.02)
        assert all(text[one.start : one.end] == one.text for one in found)
        assert [one.start for one in found] == sorted(one.start for one in found)


def test_a_long_mixed_text_comes_in_sections(embedded: Extractor) -> None:
    text = f"{MIXED} " * 900
    sections = list(embedded.stream_sections([text], ["person"]))
    ends = [section.end for section in sections]
    assert len(sections) > 1
    assert (sorted(ends), ends[-1]) == (ends, len(text))
    assert [section.is_last for section in sections] == [False] * (len(sections) - 1) + [True]
    found = [one for section in sections for one in section.entities]
    assert [(one.start, one.text) for one in found] == [
        (number * (len(MIXED) + 1) + MIXED.index(name), name)
        for number in range(900)
        for name in ("马化腾", "Tim Cook")
    ]


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, MIXED])
def test_words_for_thresholds_report_more_or_less(embedded: Extractor, text: str) -> None:
    labels = ["person", "city", "company", "date", "sport"]
    precise, balanced, complete = (
        [(one.start, one.score) for one in embedded.extract(text, labels, threshold=word, overlap="any")]
        for word in ("precise", "balanced", "complete")
    )
    assert set(precise) <= set(balanced) <= set(complete)
    assert balanced == [(one.start, one.score) for one in embedded.extract(text, labels, overlap="any")]
    assert len(embedded.extract(text * 3, labels, threshold="complete", overlap="any")) >= len(complete)


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
