"""The benchmark of spellings with the tiny model: what is compared, and what is recorded."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import onoma
import spellings
from onoma import OnomaError
from onoma.data import write
from onoma.models.config import load_config
from spellings import SPELLINGS
from tiny import documents

MEAN = "ours/spellings/person-location-organization/tiny/same_entities_percent"
SYNONYMS = "ours/spellings/individual-place-institution/tiny/same_entities_percent"
TAGS = "ours/spellings/B-PER-B-LOC-B-ORG/tiny/same_entities_percent"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every English corpus with some sentences of the tiny model."""
    root = tmp_path_factory.mktemp("corpora")
    for name in SPELLINGS["en"].corpora:
        write(documents()[:8], root / "en" / name / "dev.jsonl")
    return root


@pytest.fixture(scope="module")
def english(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as one that reads labels in English, whatever their spelling."""
    folder = tmp_path_factory.mktemp("models") / "english"
    shutil.copytree(tiny_model, folder)
    replace(load_config(folder), language="en", types={}).save(folder)
    return folder


def measured(
    monkeypatch: pytest.MonkeyPatch, data: Path, model: Path, output: Path, sentences: int = 24
) -> dict[str, float]:
    words = ["--data", data, "--model", model, "--output", output, "--sentences", sentences]
    monkeypatch.setattr(sys, "argv", ["spellings.py", *map(str, words), "--name", "ours", "--language", "en"])
    spellings.main()
    rows = json.loads(output.read_text("utf-8"))
    assert all("24 sentences: first of dev of uner_en_ewt_devtest" in row["data"] for row in rows)
    return {row["metric"]: row["value"] for row in rows}


def test_each_set_and_their_mean_are_recorded(
    monkeypatch: pytest.MonkeyPatch, data: Path, english: Path, tmp_path: Path
) -> None:
    found = measured(monkeypatch, data, english, tmp_path / "records.json")
    assert len(found) == 1 + len(SPELLINGS["en"].sets)
    assert found[TAGS] == 100
    assert found[SYNONYMS] <= 100
    assert found.pop(MEAN) == pytest.approx(fmean(found.values()), abs=0.01)


def test_a_model_that_reads_labels_as_they_are_finds_something_else(
    monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, tmp_path: Path
) -> None:
    assert measured(monkeypatch, data, tiny_model, tmp_path / "records.json")[TAGS] < 100


def test_start_end_and_type_must_agree() -> None:
    plain = {(0, 0, 3, 0), (0, 9, 14, 1), (1, 0, 3, 0)}
    other = {(0, 0, 3, 0), (0, 9, 14, 2), (1, 0, 4, 0)}
    assert spellings.percent_same(plain, other) == pytest.approx(100 / 5)


def test_sets_are_different_labels_with_names_of_their_own() -> None:
    for one in SPELLINGS.values():
        sets = [one.plain, *one.sets]
        assert all(len(set(labels)) == 3 for labels in sets)
        assert all(first != second for first, second in combinations(map(spellings.slug, sets), 2))
    names = [one.prefix + spellings.slug(labels) for one in SPELLINGS.values() for labels in (one.plain, *one.sets)]
    assert len(names) == len(set(names))  # one model may read both languages


def test_what_is_missing_is_said(data: Path, english: Path, tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match="--sentences 6 or more"):
        spellings.read_texts(data / "en", SPELLINGS["en"].corpora, 5)
    with pytest.raises(OnomaError, match="conll2003"):
        spellings.read_texts(tmp_path, ["conll2003"], 5)
    with pytest.raises(OnomaError, match="was found in 1 sentences"):
        spellings.measure(onoma.load(english), SPELLINGS["en"], ["!"])
