"""The benchmark of SUNER: its plans, its records, its baseline and its plot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import biaffine
import onoma
import significance
from experiments import METRICS_FILE, SCORES_FILE, Run
from onoma.training.protocols import few_shot
from onoma.training.recipe import load_recipe
from onoma.training.run import train
from plot_suner_curve import curve_points
from suner import JOINT, OF_PAPER, PLANS, Figure, choose, forget_lost_models, records, training_windows
from tiny_training import changed_recipe, metrics_of

torch.set_num_threads(1)
ROOT = Path(__file__).parents[2]
ENCODER = "mpnet-base"


def planned(plan: str, seeds: list[int], settings: list[str] | None = None) -> dict[Figure, Run]:
    return choose(PLANS[plan](ENCODER, seeds), settings)


# --- plans


@pytest.mark.parametrize("plan", PLANS)
def test_runs_have_names_of_their_own_and_follow_those_that_they_need(plan: str) -> None:
    runs = list(planned(plan, [0, 1]).values())
    names = [run.name for run in runs]
    assert len(names) == len(set(names))
    for run in runs:
        assert run.after is None or names.index(run.after) < names.index(run.name)
        assert run.keep_model == (run.name in {one.after for one in runs})


@pytest.mark.parametrize("plan", PLANS)
def test_all_recipes_are_valid_and_never_train_on_test(plan: str) -> None:
    for run in planned(plan, [0]).values():
        recipe = load_recipe(ROOT / "recipes" / run.recipe, run.changes)
        if run.few_shot is not None:
            few = run.few_shot
            recipe = few_shot(recipe, few.corpus, "model", sentences=few.sentences, sample=few.sample)
        assert recipe.data.corpora
        for one in recipe.data.corpora:
            assert "test" not in (one.train, one.dev)


def test_only_wanted_runs_and_those_that_they_need_are_chosen() -> None:
    wanted = planned("markers", [0, 1], ["no-mask"])
    assert [(one.setting, one.seed) for one in wanted] == [
        ("joint", 0),
        ("joint", 1),
        ("no-mask", 0),
        ("no-mask", 1),
    ]
    assert {one.system for one in planned("joint", [0], ["biaffine", "suner-fused"])} == {"biaffine", "suner-fused"}
    assert {one.setting for one in planned("curve", [0], ["left-out"])} == {
        "left-out",
        *(f"left-out-{size}-shot" for size in (20, 50, 100, 200, 500)),
    }


def test_each_corpus_is_left_out_by_itself() -> None:
    for figure, run in planned("left-out", [0], ["left-out"]).items():
        if run.few_shot is not None:
            continue
        corpora = load_recipe(ROOT / "recipes" / run.recipe, run.changes).data.corpora
        assert [Path(one.path).name for one in corpora if one.train is None] == [figure.corpus]
        assert [Path(one.path).name for one in corpora if one.test is not None] == [figure.corpus]


def test_identities_are_not_tested() -> None:
    for figure, run in planned("identity", [0]).items():
        corpora = load_recipe(ROOT / "recipes" / run.recipe, run.changes).data.corpora
        assert figure.setting == "joint" or all(one.test is None for one in corpora)


def test_the_cost_of_a_run_is_the_number_of_windows_that_it_trains_on(data_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "en").symlink_to(data_folder)
    windows = len((data_folder / "small" / "train.jsonl").read_text("utf-8").splitlines())
    changes = ("data.corpora=[{path: en/small}]", "data.names=labels", "training.batch_size=1", "training.epochs=3")
    run = Run("one", ENCODER, "suner/joint.yaml", changes)
    assert training_windows(run, tmp_path) == 2 * 3 * windows
    assert training_windows(Run("two", ENCODER, "suner/joint.yaml", changes, after="one"), tmp_path) == 3 * windows


def test_a_lost_model_that_is_needed_is_trained_again(tmp_path: Path) -> None:
    first, second = Run("first", ENCODER, "r"), Run("second", ENCODER, "r", after="first")
    (tmp_path / "first" / "model").mkdir(parents=True)
    done = tmp_path / "first" / SCORES_FILE
    done.write_text("{}")
    forget_lost_models([first, second], tmp_path)
    assert done.is_file()
    (tmp_path / "first" / "model").rmdir()
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / METRICS_FILE).write_text("{}")
    forget_lost_models([first, second], tmp_path)
    assert done.is_file()  # nothing is left to do
    (tmp_path / "second" / METRICS_FILE).unlink()
    forget_lost_models([first, second], tmp_path)
    assert not done.exists()


# --- records


def measured(f1: float, corpora: tuple[str, ...], correct: int) -> dict[str, Any]:
    """The metrics of a run that finds `correct` of the two mentions of every third document."""
    scores = {corpus: {"f1": f1 + place} for place, corpus in enumerate(corpora)}
    rows = [[2, 2, correct if number % 3 else 1] for number in range(30)]
    return {"test": scores, "dev": scores, "scored": dict.fromkeys(corpora, rows)}


def test_records_are_means_over_seeds_and_corpora_with_a_paired_bootstrap() -> None:
    found: dict[Figure, dict[str, Any]] = {}
    for seed in (0, 1):
        found[Figure("suner", "joint", ENCODER, seed)] = measured(80.0 + seed, JOINT, 2)
        found[Figure("suner-one-stage", "joint", ENCODER, seed)] = measured(70.0, JOINT, 1)
        for corpus in JOINT[:2]:
            found[Figure("binder", "alone", ENCODER, seed, corpus)] = measured(75.0, (corpus,), 2)
    found[Figure("suner", "identity-paired-both", ENCODER, 0)] = {"test": {}, "dev": {"genia": {"f1": 50.0}}}
    found[Figure("suner", "50-shot", ENCODER, 0, "mit_restaurant")] = {
        "test": {"mit_restaurant": {"f1": 60.0}},
        "dev": {"mit_restaurant": {"f1": 99.0}},
    }
    written = {one.metric: one for one in records(found, "python x.py")}
    conll = written[f"suner/joint/conll2003/{ENCODER}/f1"]
    assert (conll.value, conll.spread, conll.seeds, conll.paper) == (80.5, 0.71, (0, 1), 93.34)
    assert written[f"suner/joint/average/{ENCODER}/dev_f1"].value == 84.0
    worse = written[f"suner-one-stage/joint/genia/{ENCODER}/f1-vs-suner"]
    assert worse.value == pytest.approx(-100 / 3, abs=0.01)
    assert written[f"suner-one-stage/joint/average/{ENCODER}/f1-vs-suner"].value == worse.value
    assert written[f"suner-one-stage/joint/average/{ENCODER}/p-vs-suner"].value < 0.01
    assert written[f"binder/alone/genia/{ENCODER}/p-vs-suner"].value == 1.0
    assert f"binder/alone/average/{ENCODER}/f1" not in written  # six corpora are missing
    assert f"binder/alone/average/{ENCODER}/f1-vs-suner" not in written
    assert written[f"suner/identity-paired-both/genia/{ENCODER}/dev_f1"].value == 50.0
    assert f"suner/50-shot/mit_restaurant/{ENCODER}/dev_f1" not in written  # these are training sentences


def test_averages_of_the_papers_setting_are_over_its_corpora() -> None:
    found = {Figure("suner", setting, ENCODER, 0): measured(80.0, OF_PAPER, 2) for setting in ("paper", "joint-four")}
    written = {one.metric: one for one in records(found, "python x.py")}
    assert written[f"suner/paper/average/{ENCODER}/f1"].value == 81.5
    assert written[f"suner/paper/average/{ENCODER}/p-vs-joint-four"].value == 1.0
    assert f"suner/joint-four/average/{ENCODER}/p-vs-joint-four" not in written


# --- the biaffine classifier


@pytest.fixture(scope="module")
def model(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A biaffine classifier that was trained on the small corpus."""
    training = {"max_steps": 120, "eval_steps": 40, "learning_rate": 3e-3, "checkpoints": False}
    recipe = changed_recipe({**recipe_values, "system": biaffine.NAME, "options": {"size": 24}}, training=training)
    return train(recipe, output=tmp_path_factory.mktemp("biaffine"), data=data_folder)


def test_the_biaffine_classifier_is_trained_and_tested_as_a_system(model: Path, data_folder: Path) -> None:
    metrics = metrics_of(model.parent)
    assert metrics["test"]["small"]["f1"] > 80
    report = onoma.evaluate(model, data_folder / "small")
    assert 100 * report.strict.micro.f1 == pytest.approx(metrics["test"]["small"]["f1"])
    found = onoma.load(model).extract("In Rome it rains , says Omar Haddad .", ["city", "person"])
    assert all(one.label in ("city", "person") for one in found)
    with pytest.raises(onoma.OnomaError, match="not exported"):
        biaffine.SYSTEM.export(torch.nn.Identity(), model, int8=False)


def test_the_mentions_of_a_run_are_counted(model: Path, data_folder: Path) -> None:
    rows = np.array(significance.count_mentions(model, data_folder)["small"])
    gold, predicted, correct = rows.sum(0).tolist()
    f1 = 100 * 2 * correct / (gold + predicted)
    assert f1 == pytest.approx(metrics_of(model.parent)["test"]["small"]["f1"])


# --- the plot


def test_the_learning_curve_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [
        {"metric": f"{system}/{setting}/{corpus}/{ENCODER}/f1", "value": 50.0 + size / 20, "spread": 1.0}
        for corpus in ("mit_restaurant", "mit_movie_eng")
        for system, setting, size in (
            ("suner", "zero-shot", 0),
            ("suner", "20-shot", 20),
            ("suner", "200-shot", 200),
            ("biaffine", "50-shot", 50),
            ("suner", "joint", 500),
        )
    ]
    points = curve_points({row["metric"]: row for row in rows}, "suner", "", "zero-shot", "mit_movie_eng", ENCODER)
    assert points == [(0, 50.0, 1.0), (20, 51.0, 1.0), (200, 60.0, 1.0)]
    stored, picture = tmp_path / "records.json", tmp_path / "images" / "curve.svg"
    stored.write_text(json.dumps(rows), "utf-8")
    script = [sys.executable, ROOT / "benchmarks" / "plot_suner_curve.py", "--records", stored, "--output", picture]
    subprocess.run(script, check=True, capture_output=True)
    assert "<svg" in picture.read_text("utf-8")
