"""Protocols: the recipes that they derive, what is left out, and means and spreads over runs."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from onoma import Document, OnomaError
from onoma.data import write
from onoma.training import protocols
from onoma.training.corpora import load_part
from onoma.training.outcomes import Outcome
from onoma.training.protocols import few_shot, joint, learning_curve, leave_out, load_few_shot, zero_shot
from onoma.training.recipe import Recipe, load_recipe
from onoma.training.run import train
from tiny import documents
from tiny_training import SUNER_OPTIONS, changed_recipe

torch.set_num_threads(1)
SYSTEMS: dict[str, dict[str, Any]] = {
    "binder": {},
    "suner": {"system": "suner", "options": SUNER_OPTIONS},
}
CORPORA = [{"path": "news/first"}, {"path": "news/second"}, {"path": "other/third"}]
SHORT = {"max_steps": 2, "eval_steps": 1, "checkpoints": False}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three corpora; the name of `third` is not that of its folder."""
    root, texts = tmp_path_factory.mktemp("corpora"), documents()
    for place, one in enumerate(CORPORA):
        for split, chosen in {"train": texts[place::4], "dev": texts[place::9], "test": texts[place + 1 :: 7]}.items():
            write(chosen, root / one["path"] / f"{split}.jsonl")
    (root / "other" / "third" / "meta.json").write_text('{"name": "tales"}', "utf-8")
    return root


def recipe_of(values: dict[str, Any], **changes: Any) -> Recipe:
    """A recipe for the three corpora."""
    changes["data"] = {"corpora": deepcopy(CORPORA), **changes.get("data", {})}
    return changed_recipe(values, **changes)


# --- recipes


def test_corpora_that_are_left_out_are_only_tested(recipe_values: dict[str, Any]) -> None:
    recipe = recipe_of(recipe_values)
    first, second, third = leave_out(recipe, ["second", "other/third"]).data.corpora
    assert (first.train, first.dev, first.test) == ("train", "dev", "test")
    assert (second.train, second.dev, second.test) == (third.train, third.dev, third.test) == (None, None, "test")
    assert recipe == recipe_of(recipe_values)  # the given recipe has not changed


def test_train_and_dev_data_must_remain(recipe_values: dict[str, Any]) -> None:
    with pytest.raises(OnomaError, match="nothing to train on"):
        leave_out(recipe_of(recipe_values), ["first", "second", "third"])
    without_dev = [{"path": "first", "dev": None}, {"path": "second"}]
    with pytest.raises(OnomaError, match="no dev data"):
        leave_out(recipe_of(recipe_values, data={"corpora": without_dev}), ["second"])


def test_unknown_and_ambiguous_corpora_are_refused(recipe_values: dict[str, Any]) -> None:
    with pytest.raises(OnomaError, match="no corpus 'fourth'; it has: first, second, third"):
        leave_out(recipe_of(recipe_values), ["fourth"])
    twins = recipe_of(recipe_values, data={"corpora": [{"path": "news/first"}, {"path": "other/first"}]})
    with pytest.raises(OnomaError, match="news/first or other/first"):
        leave_out(twins, ["first"])
    assert leave_out(twins, ["other/first"]).data.corpora[0].train == "train"


def test_few_shot_keeps_the_settings_of_the_corpus(recipe_values: dict[str, Any]) -> None:
    named = [{"path": "small", "train": "dev", "dev": None, "test": "train", "names": "natural", "limit": 7}]
    one = few_shot(recipe_of(recipe_values, data={"corpora": named}), "small", "model", sentences=5).data.corpora[0]
    assert (one.train, one.test, one.names, one.limit) == ("dev", "train", "natural", 5)
    left_out = [{"path": "small", "train": None, "dev": None, "test": None}]
    one = few_shot(recipe_of(recipe_values, data={"corpora": left_out}), "small", "model").data.corpora[0]
    assert (one.train, one.test, one.limit) == ("train", "test", 20)


def test_few_shot_sets_everything_that_would_need_development_data(recipe_values: dict[str, Any]) -> None:
    many = {"gradient_accumulation_steps": 4, "threshold_from": "dev", "ema_decay": 0.9, "learning_rate": 0.01}
    recipe = recipe_of(
        recipe_values, training=many, seed=5, data={"size_cap": 3, "samples_per_epoch": 9, "sampling": 2.0}
    )
    run = few_shot(recipe, "first", "model", sentences=80, sample=2, steps=30)
    training = run.training
    assert training.max_steps == training.eval_steps == 45  # (80 / 20)^0.3 · 30
    assert (training.batch_size, training.gradient_accumulation_steps, training.threshold_from) == (8, 1, "paper")
    assert training.ema_decay == 0.0
    assert (training.learning_rate, run.start, run.seed) == (0.01, "model", 7)
    assert (run.data.size_cap, run.data.samples_per_epoch, run.data.sampling) == (None, None, "proportional")
    assert load_recipe(run.model_dump()) == run  # the written recipe can be trained again


def test_larger_samples_contain_smaller_ones_and_samples_differ(recipe_values: dict[str, Any], corpora: Path) -> None:
    def texts(sentences: int, sample: int, part: str = "train") -> set[str]:
        run = few_shot(recipe_of(recipe_values), "first", "model", sentences=sentences, sample=sample)
        (loaded,) = load_part(run.data, corpora, part)
        return {one.text for one in loaded}

    few, more = texts(5, 0), texts(20, 0)
    assert (len(few), len(more)) == (5, 20)
    assert few < more
    assert texts(5, 0, "dev") == few  # no other sentence is read
    assert texts(5, 1) != few


@pytest.mark.parametrize(
    "key", ["training.max_steps", "training.batch_size", "start", "stages.detection.learning_rate"]
)
def test_changes_of_values_that_the_protocol_sets_are_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=key):
        load_few_shot(tmp_path / "never-read.yaml", ["seed=1", f"{key}=3"])


# --- runs


@pytest.fixture(scope="module")
def starts(recipe_values: dict[str, Any], corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of two runs, to start from."""
    folder = tmp_path_factory.mktemp("starts")
    settings = {"max_steps": 40, "eval_steps": 40, "checkpoints": False}
    for system, changes in SYSTEMS.items():
        train(
            leave_out(recipe_of(recipe_values | changes, training=settings), ["third"]),
            output=folder / system,
            data=corpora,
        )
    return {system: folder / system for system in SYSTEMS}


def test_joint_tests_every_corpus_and_takes_the_mean(
    recipe_values: dict[str, Any], corpora: Path, tmp_path: Path
) -> None:
    outcome = joint(recipe_of(recipe_values, training=SHORT, seed=3), output=tmp_path, data=corpora)
    assert (outcome.protocol, outcome.seeds, outcome.system) == ("joint", (3,), "binder")
    metrics = json.loads((tmp_path / "metrics.json").read_text("utf-8"))
    for one in outcome.values:
        assert metrics[one.split][one.corpus] == {"precision": one.precision, "recall": one.recall, "f1": one.f1}
    assert [(one.corpus, one.split) for one in outcome.values] == [
        (name, split) for split in ("dev", "test") for name in ("first", "second", "tales")
    ]
    for mean in outcome.means():
        assert mean["f1"] == pytest.approx(fmean(one["f1"] for one in metrics[mean["split"]].values()))


def test_zero_shot_does_not_read_the_corpora_that_are_left_out(
    recipe_values: dict[str, Any], corpora: Path, tmp_path: Path
) -> None:
    outcome = zero_shot(recipe_of(recipe_values, training=SHORT), ["third", "second"], output=tmp_path, data=corpora)
    assert [(one.corpus, one.split) for one in outcome.values] == [("tales", "test"), ("second", "test")]
    metrics = json.loads((tmp_path / "metrics.json").read_text("utf-8"))
    assert set(metrics["dev"]) == {"first"}
    assert metrics["examples"]["windows"] <= len(list((corpora / "news/first/train.jsonl").open()))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_few_sentences_improve_the_model(
    system: str, recipe_values: dict[str, Any], corpora: Path, starts: dict[str, Path], tmp_path: Path
) -> None:
    recipe = recipe_of(recipe_values | SYSTEMS[system], training={"learning_rate": 2e-3})
    reported: list[str] = []
    outcome = learning_curve(
        recipe,
        ["third"],
        starts[system],
        output=tmp_path,
        data=corpora,
        sizes=[8],
        samples=2,
        steps=25,
        on_run=reported.append,
    )
    (value,) = outcome.values
    runs = [tmp_path / "tales" / f"8-{sample}" for sample in (0, 1)]
    f1 = [json.loads((run / "metrics.json").read_text("utf-8"))["test"]["tales"]["f1"] for run in runs]
    assert value.samples == tuple(f1)
    assert (value.f1, value.spread) == (pytest.approx(fmean(f1)), pytest.approx(stdev(f1)))
    before = json.loads((starts[system] / "metrics.json").read_text("utf-8"))["test"]["tales"]["f1"]
    assert value.f1 > before
    assert reported == [f"tales: 8 sentences, sample {number} of 2" for number in (1, 2)]
    assert (outcome.protocol, outcome.seeds) == ("few-shot", (0, 1))
    assert not any((run / "model").exists() for run in runs)
    assert load_recipe(runs[1] / "recipe.yaml").start == str(starts[system] / "model")  # it can be trained again


def test_an_interrupted_curve_continues(
    recipe_values: dict[str, Any],
    corpora: Path,
    starts: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained: list[str] = []

    def run(recipe: Recipe, *, output: Path, data: Path) -> None:
        """Training in which the F1 is the number of sentences; the fifth run is interrupted."""
        if not (output / "metrics.json").is_file():
            trained.append(output.relative_to(tmp_path).as_posix())
            if len(trained) == 5:
                raise KeyboardInterrupt
            (output / "model").mkdir(parents=True)
            one = recipe.data.corpora[0]
            scores = dict.fromkeys(("precision", "recall", "f1"), float((one.limit or 0) + one.sample_seed))
            (output / "metrics.json").write_text(json.dumps({"test": {"first": scores, "tales": scores}}), "utf-8")

    monkeypatch.setattr(protocols, "train", run)

    def curve(**options: Any) -> Outcome:
        start, asked = starts["binder"], ["first", "third", "first"]
        return learning_curve(
            recipe_of(recipe_values), asked, start, output=tmp_path, data=corpora, sizes=[12, 4], samples=2, **options
        )

    with pytest.raises(KeyboardInterrupt):
        curve()
    outcome = curve()
    expected = [f"{name}/{size}-{sample}" for name in ("first", "tales") for size in (4, 12) for sample in (0, 1)]
    assert trained == [*expected[:5], *expected[4:]]
    assert outcome.protocol == "curve"
    points = {
        name: [(4, 4.5, pytest.approx(0.5**0.5)), (12, 12.5, pytest.approx(0.5**0.5))] for name in ("first", "tales")
    }
    assert outcome.curves() == points
    assert not list(tmp_path.rglob("model"))
    curve(keep_models=True)  # they were removed, so all are trained again
    assert trained[9:] == expected
    curve()
    assert len(list(tmp_path.rglob("model"))) == len(expected)  # models that were kept are not removed


def test_errors_are_reported_before_training(
    recipe_values: dict[str, Any],
    corpora: Path,
    starts: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocols, "train", lambda *_, **__: pytest.fail("nothing should be trained"))
    places = {"output": tmp_path / "run", "data": corpora}
    recipe, start = recipe_of(recipe_values), starts["binder"]
    with pytest.raises(OnomaError, match="model of suner, but the recipe trains binder"):
        learning_curve(recipe, ["first"], starts["suner"], **places)
    with pytest.raises(OnomaError, match="there is no model folder"):
        learning_curve(recipe, ["first"], tmp_path / "nowhere", **places)
    with pytest.raises(OnomaError, match="500 are asked for"):
        learning_curve(recipe, ["first"], start, **places)
    write([Document("Nothing .")], corpora / "untested" / "train.jsonl")
    recipe = recipe_of(recipe_values, data={"corpora": [*CORPORA, {"path": "untested"}]})
    with pytest.raises(OnomaError, match="untested has no split 'test'"):
        learning_curve(recipe, ["untested"], start, **places)
    with pytest.raises(OnomaError, match="untested has no split 'test'"):
        zero_shot(recipe, ["untested"], **places)
