"""The benchmark of PUnifiedNER: its plan, its scores and its records."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import punifiedner
from onoma import Corpus, Document, EntityType
from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.punifiedner.prompts import PromptTokenizer
from onoma.training.recipe import load_recipe
from onoma.training.run import train
from punifiedner import CORPORA, DECODINGS, ON_DEMAND, OPTIONS, Figure, ceiling, figures, records, run_of, score
from tiny_t5 import punifiedner_recipe, save_t5, t5_tokenizer

torch.set_num_threads(1)
ROOT = Path(__file__).parents[2]
EVERYTHING = Namespace(
    seeds=[0, 1], languages=["en", "zh"], only=["flan-t5-small", "t5-bert-zh"], settings=None, corpora=None
)


def test_every_setting_is_planned_once_per_seed_after_its_adaptation() -> None:
    planned = list(figures(EVERYTHING))
    assert len(planned) == len(set(planned))
    assert {one.setting for one in planned} == {"adapt", *OPTIONS}
    runs = {figure: run_of(figure) for figure in planned}
    names = [run.name for run in runs.values()]
    assert len(names) == len(set(names))
    for figure, run in runs.items():
        assert run.after is None or names.index(run.after) < names.index(run.name)
        alone = figure.setting == "adapt" or "no-adaptation" in figure.setting or figure.setting.startswith("rate-")
        assert (run.after is None) == alone


@pytest.mark.parametrize("figure", [one for one in figures(EVERYTHING) if not one.seed], ids=lambda one: one.name)
def test_all_recipes_are_valid_and_never_train_on_test(figure: Figure) -> None:
    run = run_of(figure)
    recipe = load_recipe(ROOT / "recipes" / run.recipe, run.changes)
    assert recipe.stage_names() == (("adapt",) if figure.setting == "adapt" else ("joint",))
    for one in recipe.data.corpora:
        tested = "dev" if one.path == "zh/cluener" else "test"
        assert tested not in (one.train, one.dev)
        assert one.test is None


def test_single_corpora_and_settings_can_be_chosen() -> None:
    chosen = Namespace(
        seeds=[0], languages=["en"], only=["flan-t5-small"], settings=["single", "joint"], corpora=["genia"]
    )
    assert [(one.setting, one.corpus) for one in figures(chosen)] == [
        ("adapt", "en"),
        ("joint", "en"),
        ("single", "genia"),
    ]


def scored(value: float) -> dict[str, Any]:
    return {"f1": value, "string_f1": value + 1, "invented": 0.0}


def test_records_are_means_over_seeds_and_averages_over_corpora() -> None:
    found: dict[Figure, dict[str, Any]] = {Figure("adapt", "zh", "t5-bert-zh", 0): {"best_dev_loss": 2.5}}
    for seed in (0, 1):
        ways = {
            way: {name: scored(70.0 + seed + place) for place, name in enumerate(CORPORA["zh"])}
            for way in ("", ON_DEMAND)
        }
        found[Figure("joint", "zh", "t5-bert-zh", seed)] = {"scored": ways, "best_dev_f1": 80.0 + seed}
    for place, name in enumerate(CORPORA["zh"][:-1]):
        found[Figure("single", name, "t5-bert-zh", 0)] = {"scored": {"": {name: scored(60.0 + place)}}}
    written = {one.metric: one for one in records(found, "python x.py")}
    assert written["punifiedner/adapt/zh/t5-bert-zh/dev_loss"].value == 2.5
    assert written["punifiedner/joint/average-zh/t5-bert-zh/f1"].value == 72.5
    assert written["punifiedner/joint/average-zh/t5-bert-zh/dev_f1"].value == 80.5
    assert written["punifiedner/joint-on-demand/resume/t5-bert-zh/f1"].seeds == (0, 1)
    resume = written["punifiedner/joint/resume/t5-bert-zh/string_f1"]
    assert (resume.value, resume.paper, resume.spread) == (71.5, 97.18, 0.71)
    assert "punifiedner/single/average-zh/t5-bert-zh/f1" not in written  # a corpus is missing
    assert written["punifiedner/single/cluener/t5-bert-zh/f1"].value == 61.0


def test_right_answers_lose_only_what_strings_cannot_say() -> None:
    prompts = PromptTokenizer(WordTokenizer(t5_tokenizer(["Rome"])))
    types = (EntityType("city"), EntityType("university"))
    clear = [Document.from_spans("Rome has the University of Rome", [(0, 4, "city"), (13, 31, "university")])]
    assert ceiling(Corpus("clear", clear, types), prompts) == 1.0
    unclear = [Document.from_spans("Rome is not Rome", [(0, 4, "city")])]
    assert ceiling(Corpus("unclear", unclear, types), prompts) == pytest.approx(2 / 3)


@pytest.fixture(scope="module")
def model(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("punifiedner")
    recipe = punifiedner_recipe(
        recipe_values,
        save_t5(folder / "t5"),
        options={"stages": "joint", "prompts": "dataset+random", "max_answer_tokens": 30},
        training={"max_steps": 120, "eval_steps": 120, "learning_rate": 5e-3, "checkpoints": False},
    )
    return train(recipe, output=folder / "run", data=data_folder)


def test_a_model_is_scored_in_all_ways(
    model: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "en").symlink_to(data_folder)
    monkeypatch.setitem(CORPORA, "en", ("small",))
    figure = Figure("joint", "en", "flan-t5-small", 0)
    scoring = json.loads(run_of(figure).scoring)
    found = score(model, tmp_path, **scoring)
    assert score(model, tmp_path / "nowhere", **scoring) == found  # only read
    assert found.keys() == {*DECODINGS, ON_DEMAND}
    assert found[""]["small"]["f1"] > 80
    assert found[""]["small"]["invented"] == found["-beam"]["small"]["invented"] == 0
    assert found[ON_DEMAND]["small"]["f1"] > 60
    (loaded,) = {
        one.metric
        for one in records({figure: {"scored": found, "best_dev_f1": 90.0}}, "x")
        if one.metric.endswith("average-en/flan-t5-small/f1") and "/joint/" in one.metric
    }
    assert loaded == "punifiedner/joint/average-en/flan-t5-small/f1"
    assert punifiedner.with_options(model, {"beams": 2}).config.options["beams"] == 2
