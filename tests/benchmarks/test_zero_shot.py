"""The zero-shot benchmark on small sets: which texts are read, and what the records say about the model."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import zero_shot
from onoma import Document
from onoma.data import write
from onoma.models.config import Route, RoutedConfig, load_config
from suites import DEVELOPMENT_LIMIT, SPLITS, SUITES
from tiny import documents


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every set with some sentences of the tiny model, and the Chinese ones with some that it cannot read."""
    root = tmp_path_factory.mktemp("corpora")
    chinese = [Document.from_spans("王芳昨天飞往北京。", [(0, 2, "person")])]
    for suite, languages in SUITES.items():
        for language, name in [(language, name) for language, one in languages.items() for name in one.sets]:
            texts = documents()[:40] if language == "en" else documents()[:4] + chinese
            split = SPLITS.get(name, "dev" if suite == "development" else "test")
            write(texts, root / language / name / f"{split}.jsonl")
            names = {"person": {"zh": "人名", "en": "person"}} if language == "zh" else {"person": "person"}
            meta = json.dumps({"name": name, "language": language, "type_names": names})
            (root / language / name / "meta.json").write_text(meta, "utf-8")
    return root


@pytest.fixture(scope="module")
def routed(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model for Chinese and one for the rest."""
    folder = tmp_path_factory.mktemp("models") / "routed"
    for route in ("zh", "en"):
        shutil.copytree(tiny_model, folder / route)
        replace(load_config(folder / route), encoder=f"somebody/bert-{route}").save(folder / route)
    RoutedConfig((Route("zh", ("Han",)), Route("en"))).save(folder)
    return folder


def measured(monkeypatch: pytest.MonkeyPatch, data: Path, output: Path, *more: object) -> dict[str, Any]:
    words = ["zero_shot", "--data", data, "--output", output, "--name", "ours", *more]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    zero_shot.main()
    return {row["metric"]: row for row in json.loads(output.read_text("utf-8"))} if output.exists() else {}


def test_a_routed_model_is_recorded_by_the_encoder_of_each_language(
    monkeypatch: pytest.MonkeyPatch, data: Path, routed: Path, tmp_path: Path
) -> None:
    found = measured(monkeypatch, data, tmp_path / "records.json", "--model", routed)
    english = {f"ours/zero-shot/{name}/bert-en/f1" for name in (*SUITES["benchmarks"]["en"].sets, "average-of-seven")}
    sets = ("resume", "cluener", "ecommerce", "msra", "average-of-four")
    assert found.keys() == english | {f"ours/zero-shot/{name}/bert-zh/f1" for name in sets}
    assert all(found[name]["value"] > 90 for name in english)
    assert found["ours/zero-shot/cluener/bert-zh/f1"]["encoder"] == "bert-zh"
    assert "dev" in found["ours/zero-shot/average-of-four/bert-zh/f1"]["data"]


def test_one_language_alone(monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, tmp_path: Path) -> None:
    found = measured(monkeypatch, data, tmp_path / "records.json", "--model", tiny_model, "--language", "zh")
    assert {metric.split("/")[3] for metric in found} == {"tiny"}
    assert len(found) == 5


def test_a_part_of_the_sentences_is_shown_but_not_recorded(
    monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert measured(monkeypatch, data, tmp_path / "records.json", "--model", tiny_model, "--limit", 3) == {}
    shown = capsys.readouterr().out
    rows = {line.split("│")[1].strip(): line for line in shown.splitlines() if "│" in line}
    assert "62.0" in rows["NuNER-Zero-span"]
    assert "46.4" in rows["SUNER"]
    assert "43.8" in rows["SUNER"]
    assert shown.count("SUNER") == 1  # nobody has published figures for the Chinese sets


def test_the_development_suite_reads_the_dev_parts_and_has_one_number(
    monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, tmp_path: Path
) -> None:
    found = measured(monkeypatch, data, tmp_path / "records.json", "--model", tiny_model, "--suite", "development")
    sets = SUITES["development"]["en"].sets
    assert len(sets) >= 20
    average = found.pop("ours/development/average-en/tiny/f1")
    assert f"first {DEVELOPMENT_LIMIT} sentences of dev" in average["data"]
    assert {metric.split("/")[2] for metric in found} == {*sets, *SUITES["development"]["zh"].sets, "average-zh"}


def test_suites_have_no_corpus_in_common() -> None:
    for language in ("en", "zh"):
        sets = [name for suite in SUITES.values() if language in suite for name in suite[language].sets]
        assert len(sets) == len(set(sets))
