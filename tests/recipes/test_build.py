"""The scripts that rebuild the embedded model: what they do after training."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

import onoma
from onoma import Corpus
from onoma.data import write
from onoma.decoding.proposals import Proposals
from onoma.errors import OnomaError
from onoma.evaluation.candidates import Candidates
from onoma.models.config import CATCH_ALL_LABELS, ModelConfig, Route, RoutedConfig, load_config
from onoma.training.recipe import load_recipe
from tiny import documents

FOLDER = Path(__file__).parents[2] / "recipes" / "embedded"


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("build", monkeypatch)


@pytest.fixture
def calibrate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("calibrate", monkeypatch)


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)  # as for a script that is run
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora of the two recipes below: one is trained on, the other is for development."""
    root = tmp_path_factory.mktemp("corpora")
    news = [replace(one, entities=one.entities if number % 5 else ()) for number, one in enumerate(documents()[20:80])]
    for name, split, chosen in (("letters", "train", documents()[:20]), ("news", "dev", news)):
        write(Corpus(name, chosen), root / name / f"{split}.jsonl")
    (root / "letters" / "meta.json").write_text('{"name": "letters", "license": "CC0"}')
    return root


@pytest.fixture
def halves(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The halves of the script with small recipes."""
    letters = {"path": "letters", "dev": None, "test": None}
    news = {"path": "news", "train": None, "test": None}
    values = {"system": "binder", "encoder": "tiny", "data": {"corpora": [letters, news], "names": "labels"}}
    changed = {}
    for language, half in build.HALVES.items():
        recipe = tmp_path / half.recipe
        recipe.with_suffix(".yaml").write_text(yaml.safe_dump(values))
        changed[language] = replace(half, recipe=str(recipe))
    monkeypatch.setattr(build, "HALVES", changed)
    return changed


def finished_runs(build: ModuleType, halves: dict[str, Any], model: Path, data: Path, folder: Path) -> dict[str, Path]:
    """Runs whose training is over, finished by the script."""
    for language, half in halves.items():
        shutil.copytree(model, folder / language / "model", dirs_exist_ok=True)
        build.finish(half, folder / language, data, base=False)
    return {language: folder / language / "int8" for language in halves}


def test_a_trained_model_is_exported_and_its_scores_are_fitted(
    build: ModuleType, halves: dict[str, Any], tiny_model: Path, data: Path, tmp_path: Path
) -> None:
    models = finished_runs(build, halves, tiny_model, data, tmp_path)
    for language, foreign in (("en", "人名"), ("zh", "person")):
        config = load_config(models[language])
        assert isinstance(config, ModelConfig)
        assert (config.types, config.catch_all, config.language) == ({}, CATCH_ALL_LABELS, language)
        assert config.encoder == build.HUB[halves[language].small]
        assert config.threshold == 0.5
        assert config.presets["complete"] <= 0.5 <= config.presets["precise"]
        assert foreign in json.loads((models[language] / "labels.json").read_text("utf-8"))
    report = json.loads((tmp_path / "en" / "calibration.json").read_text())
    assert report["mean_f1"] == report["f1"]["news"] > 50
    (tmp_path / "en" / "int8" / "config.json").unlink()
    build.finish(halves["en"], tmp_path / "en", data, base=False)
    assert not (tmp_path / "en" / "int8" / "config.json").exists()  # what is finished is not repeated


def test_two_models_become_one_folder(
    build: ModuleType, halves: dict[str, Any], tiny_model: Path, data: Path, tmp_path: Path
) -> None:
    models = finished_runs(build, halves, tiny_model, data, tmp_path / "runs")
    output = tmp_path / "made" / "default"
    output.mkdir(parents=True)
    card = "the card\n<!-- corpora: en -->\nold\n<!-- end -->\nits end\n"
    (output / "README.md").write_text(card, encoding="utf-8")
    for _ in range(2):  # the second time in place of the first
        build.write_models(models, output)
        build.write_corpora(output / "README.md", data, ["en"])
    assert sorted(path.name for path in output.parent.iterdir()) == ["default"]
    table = "| corpus | licence | documents |\n|---|---|---:|\n| letters | CC0 | 20 |"
    assert (output / "README.md").read_text("utf-8") == card.replace("\nold\n", f"\n\n{table}\n\n")
    assert not list(output.glob("*/README.md"))
    assert not list(output.glob("*/*.safetensors"))
    assert load_config(output) == RoutedConfig((Route("zh", ("Han",)), Route("en")))
    (found,) = onoma.load(output).extract("Tom flew to Paris .", ["city"])
    assert found.text == "Paris"


def test_tables_of_languages_that_were_not_built_are_kept(build: ModuleType, data: Path, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text("<!-- corpora: en -->\nold\n<!-- end -->\n", encoding="utf-8")
    build.write_corpora(card, data, ["zh"])
    assert "\nold\n" in card.read_text("utf-8")


def test_one_model_is_continued_only_beside_the_other(
    build: ModuleType, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--data", data, "--continue", "embedded", "--languages", "en", "--output", tmp_path / "new")
    monkeypatch.setattr(sys, "argv", ["build.py", *map(str, options)])
    with pytest.raises(OnomaError, match=r"new has no model for zh\. Fix: give a folder with both as --output"):
        build.main()


def test_catch_all_labels_get_a_higher_threshold_only_where_it_helps(calibrate: ModuleType) -> None:
    config = ModelConfig("binder", threshold=0.5, presets={"precise": 0.8, "complete": 0.3})
    for wrong, changed in ((True, True), (False, False)):
        candidates = scored_candidates([("Person", 0.9, True), ("misc", 0.9, True), ("misc", 0.6, not wrong)])
        found = calibrate.with_catch_all_thresholds(config, [candidates])
        assert found.thresholds == (dict.fromkeys(CATCH_ALL_LABELS, 0.8) if changed else {})
        assert calibrate.f1(candidates, found) == 1.0
    others = scored_candidates([("Person", 0.9, True), ("city", 0.6, False)])
    assert calibrate.with_catch_all_thresholds(config, [others]) == config


def test_the_weight_of_breadths_counts_groups_of_corpora_alike(calibrate: ModuleType) -> None:
    """Broad labels are right in two corpora of one group, narrow ones in the only corpus of the other."""

    class Found:
        def __init__(self, narrow: bool) -> None:
            self.narrow = narrow

        def candidates(self, runtime: Any, floor: float) -> Candidates:
            words = [("person", 0.9, not self.narrow), ("poet", 0.85, self.narrow)]
            breadths = np.array([1.0, -1.0], np.float32)
            found = scored_candidates(words)
            same_span = found.proposals._replace(first=np.zeros(2, np.int64), last=np.zeros(2, np.int64))
            return replace(found, proposals=same_span, breadths=breadths)

    runtime = SimpleNamespace(config=ModelConfig("binder", threshold=0.5, breadth_weight=0.5))
    broad, narrow = Found(narrow=False), Found(narrow=True)
    weights = [
        calibrate.with_breadth_weight(runtime, *groups).breadth_weight
        for groups in ([[broad]], [[narrow]], [[broad, broad, narrow], [narrow]], [[broad, broad], [broad, narrow]])
    ]
    assert weights == [0.0, 0.03, 0.03, 0.0]  # log(0.9) - log(0.85) is 0.057, and breadths differ by 2


def test_every_corpus_of_broad_and_narrow_labels_is_complete(calibrate: ModuleType) -> None:
    for language in ("en", "zh"):
        corpora = calibrate.label_choice_corpora(language)
        assert len(corpora) == 12
        for corpus in corpora:
            names = {one.name for one in corpus.types}
            assert len(corpus) == 20
            assert all(document.annotated == names for document in corpus)
            assert {one.label for document in corpus for one in document.entities} == names


def scored_candidates(rows: list[tuple[str, float, bool]]) -> Candidates:
    """Single words in a row, with a label, a score, and whether they are mentions."""
    labels = tuple(dict.fromkeys(label for label, _, _ in rows))
    place, kind = np.arange(len(rows)), np.array([labels.index(label) for label, _, _ in rows])
    correct = np.array([right for _, _, right in rows])
    return Candidates(
        labels,
        Proposals(np.zeros_like(place), place, place, kind, np.array([score for _, score, _ in rows], np.float32)),
        np.zeros(len(rows), np.int64),
        correct,
        np.ones(len(rows), np.bool_),
        np.bincount(kind[correct], minlength=len(labels)),
        "flat",
    )


def test_the_embedded_models_are_asked_for_any_types(build: ModuleType) -> None:
    default = Path(onoma.__file__).parent / "models" / "default"
    assert load_config(default) == RoutedConfig(build.ROUTES)
    for language in build.HALVES:
        config = load_config(default / language)
        assert isinstance(config, ModelConfig)
        assert (config.types, config.catch_all) == ({}, CATCH_ALL_LABELS)


@pytest.mark.parametrize("language", ["english", "chinese"])
def test_the_recipes_train_on_no_benchmark(language: str) -> None:
    recipe = load_recipe(FOLDER / f"{language}.yaml")
    used = {Path(one.path).name for one in recipe.data.corpora}
    tested = {"crossner", "mit_movie", "mit_restaurant", "resume", "cluener", "ecommerce", "msra", "wikiann"}
    assert not any(name.startswith(tuple(tested)) for name in used)
    own = [one for one in recipe.data.corpora if "onoma_written" in one.path]
    assert own
    assert all(Path(one.path).is_dir() for one in own)


def test_changes_of_the_script_are_keys_of_recipes(build: ModuleType) -> None:
    recipe = load_recipe(FOLDER / "english.yaml", build.TEACHER_CHANGES)
    assert recipe.training.learning_rate == 5e-5
