"""BINDER's experiments: plans, records, rules for thresholds, kinds of errors, pictures."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from binder import ABLATIONS, GENIA_CHOICES, Figure, breakdown, derive_corpora, main_rule, plan, records
from binder_scores import ERROR_KINDS, error_kinds, score_run
from onoma import Corpus, Document, Entity
from onoma.data import load_splits
from onoma.evaluation.comparison import Comparison
from onoma.training import train
from onoma.training.recipe import Recipe, load_recipe
from papers import published_figure, read_papers
from plot_similarities import density, draw
from tiny_training import SHORT, changed_recipe


def arguments(name: str, **changes: Any) -> Namespace:
    usual = {"variants": None, "corpora": None, "settings": ["supervised", "paper-settings"], "genia": "long"}
    places = {"only": ["mpnet-base"], "small": "gte-small", "seeds": [0, 1], "data": "corpora", "runs": Path("runs")}
    return Namespace(plan=name, **(usual | places | changes))


def test_every_variant_has_its_run_and_joint_inference_needs_no_training() -> None:
    runs = dict(plan(arguments("ablations")))
    assert len(runs) == 2 * len(ABLATIONS)
    assert len({run.name for run in runs.values()}) == len(set(runs.values())) == 2 * (len(ABLATIONS) - 1)
    full, joint = (runs[Figure(name, "genia", "gte-small", 1)] for name in ("full", "joint-inference"))
    assert full == joint
    assert json.loads(full.scoring)["inferences"] == ["joint", "span"]


@pytest.mark.parametrize("name", ["supervised", "ablations", "genia-choice"])
def test_all_recipes_are_valid(name: str) -> None:
    for run in dict(plan(arguments(name))).values():
        recipe = load_recipe(Path(__file__).parents[2] / "recipes" / run.recipe, run.changes)
        assert recipe.training.threshold_from == "paper"
        recipe.system_options()


def test_the_choice_for_genia_never_reads_test() -> None:
    runs = dict(plan(arguments("genia-choice")))
    assert len(runs) == 2 * len(GENIA_CHOICES)
    assert all("data.corpora.0.test=null" in run.changes for run in runs.values())
    supervised = dict(plan(arguments("supervised", seeds=[0])))[Figure("supervised", "genia", "mpnet-base", 0)]
    assert set(GENIA_CHOICES["long"]) <= set(supervised.changes)


def scored(f1: float, correct: int) -> dict[str, Any]:
    """The scores of a run with 10 gold mentions and 10 predictions in each of 20 sentences."""
    one = {"f1": f1, "precision": f1, "recall": f1, "counts": [[10, 10, correct]] * 20}
    rules = {"learned": one, "common": one | {"f1": f1 + 1}, "per_type": one | {"f1": f1 + 2}}
    return {"dev": rules, "test": rules}


def test_records_have_means_rules_and_differences_from_the_full_model() -> None:
    found = {Figure("full", "genia", "gte-small", seed): scored(70 + seed, 7) for seed in (0, 1)}
    found |= {Figure("tuned-thresholds", "genia", "gte-small", seed): scored(60, 6) for seed in (1, 2)}
    for scores in list(found.values())[2:]:
        del scores["dev"]["learned"]
    written = {one.metric: one for one in records(found, "python x.py")}
    full = written["binder/full/genia/gte-small/f1"]
    assert (full.value, full.seeds, full.paper) == (70.5, (0, 1), 89.5)
    assert written["binder/full/genia/gte-small/f1_common"].value == 71.5
    assert written["binder/tuned-thresholds/genia/gte-small/f1"].value == 62  # a threshold for each type, tuned on dev
    difference = written["binder/tuned-thresholds/genia/gte-small/difference"]
    assert (difference.value, difference.seeds) == (pytest.approx(-10), (1,))  # the seed that both have
    assert written["binder/tuned-thresholds/genia/gte-small/p_value"].value < 0.01
    assert "binder/tuned-thresholds/genia/gte-small/f1_learned" not in written
    assert not any("full" in metric and "difference" in metric for metric in written)
    assert main_rule("supervised") == "common"


def test_published_figures_have_the_names_of_records() -> None:
    strict = {"micro": {"f1": 0.8}, "types": {"protein": {"f1": 0.7}, "cell line": {"f1": 0.6}}}
    report = dict.fromkeys(("strict", "start_only", "end_only", "loose"), strict)
    slices = {"mention_length": {}, "sentence_length": {}}
    found = breakdown({"report": {**report, "slices": slices}, "errors": {"end": 1, "missed": 2}})
    tables = [one for one in read_papers().papers["binder"].tables if one.name in ("Table 8", "Table 9")]
    patterns = {row.ours.format(column) for table in tables for row in table.rows for column in table.columns.values()}
    assert {f"binder/{place.replace('/', '/genia/*/')}" for place in found} <= patterns
    assert published_figure("binder/boundaries/genia/mpnet-base/start_f1_protein") == 86.1


def test_errors_are_counted_by_kind() -> None:
    text = "the human T cell line and GR gene x y"
    spans = {"cell": [(10, 16), (4, 21)], "gene": [(26, 33)]}
    gold = [(start, end, label) for label, places in spans.items() for start, end in places]
    corpus = Corpus("c", [Document.from_spans(text, gold)])
    kinds = {
        (10, 16, "cell"): None,
        (4, 16, "cell"): "modifier_added",
        (17, 21, "cell"): "modifier_missing",
        (10, 21, "cell"): "modifier_missing",
        (26, 28, "gene"): "end",
        (0, 9, "cell"): "overlap",
        (4, 21, "gene"): "type",
        (34, 35, "cell"): "spurious",
    }
    for (start, end, label), kind in kinds.items():
        found = error_kinds(Comparison.between(corpus, [[Entity(start, end, text[start:end], label)]]))
        expected = {one: int(one == kind) for one in ERROR_KINDS}
        assert {name: found[name] for name in ERROR_KINDS} == expected, (start, end, label)
    assert error_kinds(Comparison.between(corpus, [[]]))["missed"] == 3


@pytest.fixture(scope="module")
def run_folder(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a tiny BINDER."""
    folder = tmp_path_factory.mktemp("binder") / "run"
    recipe: Recipe = changed_recipe(recipe_values, training=SHORT | {"max_steps": 60})
    return train(recipe, output=folder, data=data_folder)


def test_tuned_rules_are_not_worse_on_dev_and_counts_agree_with_scores(run_folder: Path, data_folder: Path) -> None:
    found = score_run(run_folder, data_folder, inferences=("joint", "span"), similarities=True)
    for inference in ("joint", "span"):
        dev, test = found[inference]["dev"], found[inference]["test"]
        assert dev["learned"]["f1"] <= dev["common"]["f1"] + 1e-9
        assert dev["common"]["f1"] <= dev["per_type"]["f1"] + 1e-9
        for scores in (*dev.values(), *test.values()):
            gold, predicted, correct = np.array(scores["counts"]).sum(0)
            assert scores["f1"] == pytest.approx(200 * correct / (gold + predicted))
            assert scores["f1"] == pytest.approx(100 * scores["report"]["strict"]["micro"]["f1"])
    metrics = json.loads((run_folder.parent / "metrics.json").read_text("utf-8"))
    assert found["span"]["test"]["learned"]["f1"] == pytest.approx(metrics["test"]["small"]["f1"])
    similarities = found["similarities"]
    for counts in similarities["types"].values():
        assert sum(counts["entity"]) > 0
        assert sum(counts["non-entity"]) > sum(counts["entity"])
        places, heights = density(np.array(counts["entity"]), similarities["largest"])
        assert np.trapezoid(heights, places) == pytest.approx(1, abs=0.05)
    assert len(draw([similarities] * 3, list(similarities["types"])[:2], None).axes) == 6


def test_corpora_of_single_types_are_parts_of_others(tmp_path: Path) -> None:
    rows = {
        "bc5cdr": ["Chemical", "Disease"],
        "jnlpba": ["protein", "DNA", "cell_type", "cell_line", "RNA"],
    }
    for name, labels in rows.items():
        (tmp_path / "en" / name).mkdir(parents=True)
        tokens = [f"word{number}" for number in range(len(labels))]
        entities = [{"start": place, "end": place + 1, "type": label} for place, label in enumerate(labels)]
        line = json.dumps({"tokens": tokens, "entities": entities}) + "\n"
        for split in ("train", "dev", "test"):
            (tmp_path / "en" / name / f"{split}.jsonl").write_text(line, "utf-8")
    folder = derive_corpora(tmp_path, tmp_path / "made")
    found = {path.name: load_splits(path)["test"] for path in folder.iterdir()}
    assert found["bc5cdr_disease"].labels == ("disease",)
    assert [one.text for one in found["bc5cdr_disease"].documents[0].entities] == ["word1"]
    assert found["bc5cdr_chemical"].types[0].description
    assert found["jnlpba_merged"].labels == ("biomedical entity",)
    assert len(found["jnlpba_merged"].documents[0].entities) == 5
