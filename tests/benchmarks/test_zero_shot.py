"""The zero-shot benchmark on small sets: which texts are read, and what the records say about the model."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import zero_shot
from onoma import Document
from onoma.data import write
from onoma.errors import OnomaError
from onoma.models.config import Route, RoutedConfig, load_config
from suites import DEVELOPMENT_LIMIT, SPLITS, SUITES
from tables import render
from tiny import documents
from uie_stand_in import save_uie


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


@pytest.fixture(scope="module")
def stricter(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with a threshold that few mentions reach, in place of one of another seed."""
    folder = tmp_path_factory.mktemp("models") / "stricter"
    shutil.copytree(tiny_model, folder)
    replace(load_config(folder), threshold=0.999).save(folder)
    return folder


@pytest.fixture(scope="module")
def uie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A UIE that takes 王芳, and nothing else, for whatever it is asked for."""
    return save_uie(tmp_path_factory.mktemp("models") / "uie-nano-zh", first="王", last="芳")


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


def test_several_seeds_are_recorded_by_mean_and_spread(
    monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, stricter: Path, tmp_path: Path
) -> None:
    chinese = ("--language", "zh")
    each = [
        measured(monkeypatch, data, tmp_path / f"{model.name}.json", "--model", model, *chinese)
        for model in (tiny_model, stricter)
    ]
    both = ("--model", tiny_model, "--model", stricter, "--seeds", 3, 5)
    found = measured(monkeypatch, data, tmp_path / "both.json", *both, *chinese)
    assert found.keys() == each[0].keys()
    for metric, row in found.items():
        values = [one[metric]["value"] for one in each]
        assert row["value"] == pytest.approx(fmean(values), abs=0.011)
        assert row["spread"] == pytest.approx(stdev(values), abs=0.011)
        assert row["seeds"] == [3, 5]
        assert one_seed(each[0][metric])
    assert any(row["spread"] > 1 for row in found.values())
    assert "±" in render(found.values())


def one_seed(row: dict[str, Any]) -> bool:
    return row["seeds"] == [] and row["spread"] is None


def test_the_table_shows_mean_and_deviation_of_seeds(
    monkeypatch: pytest.MonkeyPatch,
    data: Path,
    tiny_model: Path,
    stricter: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    both = ("--model", tiny_model, "--model", stricter, "--seeds", 0, 1, "--limit", 3)
    measured(monkeypatch, data, tmp_path / "none.json", *both)
    rows = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert all(line.count("±") == line.count("│") - 2 for line in rows if "ours" in line)
    assert not any("±" in line for line in rows if "ours" not in line)


@pytest.mark.parametrize("seeds", [(), (0,), (0, 1, 2), (1, 1)])
def test_each_of_several_models_needs_a_seed(
    monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, stricter: Path, tmp_path: Path, seeds: Sequence[int]
) -> None:
    numbers = ("--seeds", *seeds) if seeds else ()
    with pytest.raises(OnomaError, match=r"number of models: 2, seeds: .* Fix: give each model its own seed"):
        measured(monkeypatch, data, tmp_path / "no.json", "--model", tiny_model, "--model", stricter, *numbers)


def test_models_of_several_encoders_are_not_seeds(
    monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, routed: Path, tmp_path: Path
) -> None:
    both = ("--model", tiny_model, "--model", routed, "--seeds", 0, 1)
    with pytest.raises(OnomaError, match=r"several encoders \(bert-en, tiny\)"):
        measured(monkeypatch, data, tmp_path / "no.json", *both)


def test_uie_reads_the_chinese_corpora_too(
    monkeypatch: pytest.MonkeyPatch,
    data: Path,
    tiny_model: Path,
    uie: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--model", tiny_model, "--uie", uie)
    alone = measured(monkeypatch, data, tmp_path / "alone.json", "--model", tiny_model)
    found = measured(monkeypatch, data, tmp_path / "both.json", *words)
    assert {metric: found[metric]["value"] for metric in alone} == {one: row["value"] for one, row in alone.items()}
    added = {metric: row for metric, row in found.items() if metric not in alone}
    sets = SUITES["benchmarks"]["zh"].sets
    assert set(added) == {f"uie-nano/zero-shot/{name}/uie-nano-zh/f1" for name in (*sets, "average-of-four")}
    gold = 1 + sum(len(document.entities) for document in documents()[:4])
    expected = 200 / (gold + 2)  # it says of one person that this is a person, and that it is a city
    assert [row["value"] for row in added.values()] == pytest.approx([expected] * 5, abs=0.01)
    assert all(row["encoder"] == "uie-nano-zh" and one_seed(row) for row in added.values())
    assert "not known" in added["uie-nano/zero-shot/msra/uie-nano-zh/f1"]["data"]
    rows = [line.split("│")[1].strip() for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert rows[-2:] == ["ours", "uie-nano"]
    page = render(found.values())
    assert page.index("## uie-nano\n") < page.index("### zero-shot", page.index("## uie-nano\n"))


def test_uie_beside_models_of_several_seeds_on_the_development_suite(
    monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, stricter: Path, uie: Path, tmp_path: Path
) -> None:
    words = ("--model", tiny_model, "--model", stricter, "--seeds", 0, 1, "--uie", uie)
    words += ("--suite", "development", "--language", "zh")
    found = measured(monkeypatch, data, tmp_path / "records.json", *words)
    assert found["ours/development/average-zh/tiny/f1"]["seeds"] == [0, 1]
    assert one_seed(found["uie-nano/development/average-zh/uie-nano-zh/f1"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "no-such-model"), "there is no model folder 'no-such-model'"),
        (("--uie", "no-such-uie"), "no-such-uie: there is no model.onnx and no vocab.txt of UIE"),
        (("--uie", "no-such-uie", "--language", "en"), "no Chinese corpora were chosen"),
        (("--suite", "wide", "--language", "zh"), "the suite wide has no corpora in zh. Fix: --language en"),
        (("--limit", 0), "--limit is 0"),
    ],
)
def test_bad_options_are_one_error(
    monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path, words: Sequence[object], message: str
) -> None:
    monkeypatch.setattr(zero_shot, "measure", unreachable)
    with pytest.raises(OnomaError, match=message):
        measured(monkeypatch, data, tmp_path / "no.json", *words)


def unreachable(*arguments: object) -> None:
    raise AssertionError("nothing may be measured")


@pytest.mark.parametrize(
    ("split", "message"), [(None, "there is no such file or folder"), ("extra", "there is no split test")]
)
def test_a_missing_corpus_is_an_error_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, data: Path, tiny_model: Path, tmp_path: Path, split: str | None, message: str
) -> None:
    shutil.copytree(data, tmp_path / "corpora")
    last = tmp_path / "corpora" / "zh" / "msra"
    shutil.rmtree(last)
    if split:
        write(documents(), last / f"{split}.jsonl")
    monkeypatch.setattr(zero_shot, "measure", unreachable)
    with pytest.raises(OnomaError, match=f"msra: {message}"):
        measured(monkeypatch, tmp_path / "corpora", tmp_path / "no.json", "--model", tiny_model)
