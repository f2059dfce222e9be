"""The embedded model, which is part of every installation."""

from __future__ import annotations

import subprocess
import sys
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
