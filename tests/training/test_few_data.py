"""Fine-tuning with few data and without a recipe."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import onoma
from onoma import DataError, Document
from onoma.data import write
from onoma.models.export import export
from onoma.training.few_data import FineTuned, few_data_recipe, fine_tune
from tiny import document

ANIMALS = ("cat", "dog", "owl", "fox")
QUICK = ("training.max_steps=30", "training.learning_rate=3e-3", "training.frozen_layers=0")


def animals() -> list[Document]:
    """Sentences with a type that the tiny model does not know."""
    patterns = ("[animal|{}] flew to Paris .", "We eat soup , says [animal|{}] .", "Nobody has seen [animal|{}] .")
    return [document(pattern.format(one)) for pattern in patterns for one in ANIMALS]


@pytest.fixture(scope="module")
def start(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tiny_model, tmp_path_factory.mktemp("few") / "start", int8=True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "animals.jsonl"
    write(animals(), path)
    return path


@pytest.fixture(scope="module")
def tuned(start: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> FineTuned:
    return fine_tune(corpus, output=tmp_path_factory.mktemp("run"), start=str(start), changes=QUICK)


def found(model: Path) -> int:
    """How many animals a model finds."""
    texts = [one.text for one in animals()]
    entities = onoma.load(model).extract(texts, ["animal"])
    return sum(
        [one.text for one in some] == [gold.entities[0].text] for some, gold in zip(entities, animals(), strict=True)
    )


def test_an_exported_model_learns_a_new_type_and_is_exported_again(tuned: FineTuned, start: Path) -> None:
    assert found(start) < 6
    assert found(tuned.model) > 9
    assert found(tuned.onnx) > 9
    assert not (tuned.onnx / "model.safetensors").exists()
    assert tuned.labels == ("animal",)


def test_a_fifth_is_held_out_to_tell_what_was_gained(tuned: FineTuned) -> None:
    assert (tuned.documents, tuned.held_out) == (12, 2)
    assert tuned.after["f1"] > tuned.before["f1"]
    assert tuned.metrics["dev"] == {}
    assert tuned.metrics["examples"]["windows"] == 12  # the final model is trained on all of them
    assert "| check | animals |" in (tuned.model / "README.md").read_text("utf-8")


def test_a_finished_run_is_not_repeated(tuned: FineTuned, start: Path, corpus: Path) -> None:
    runs: list[str] = []
    again = fine_tune(corpus, output=tuned.model.parent, start=str(start), changes=QUICK, on_run=runs.append)
    assert again == tuned


def test_a_dev_split_is_used_if_there_is_one(start: Path, tmp_path: Path) -> None:
    write(animals()[:9], tmp_path / "animals" / "train.conll")
    write(animals()[9:], tmp_path / "animals" / "valid.jsonl")
    done = fine_tune(tmp_path / "animals", output=tmp_path / "run", start=str(start), changes=QUICK)
    assert (done.documents, done.held_out) == (9, 0)
    assert done.metrics["dev"]["animals"] == done.after
    assert not (tmp_path / "run" / "check").exists()


@pytest.mark.parametrize(("documents", "least"), [(20, 60), (200, 120)])
def test_more_documents_are_trained_for_more_steps(documents: int, least: int, start: Path, tmp_path: Path) -> None:
    write((animals() * 20)[:documents], tmp_path / "mine.jsonl")
    recipe = few_data_recipe(tmp_path / "mine.jsonl", str(start))
    assert recipe.training.max_steps >= least
    assert recipe.data.corpora[0].train == "mine"


def test_data_that_cannot_be_trained_on_is_refused(start: Path, tmp_path: Path) -> None:
    write(animals()[:3], tmp_path / "few.jsonl")
    with pytest.raises(DataError, match="3 documents are too few"):
        few_data_recipe(tmp_path / "few.jsonl", str(start))
    write(animals()[:1] * 6, tmp_path / "copies.jsonl")
    with pytest.raises(DataError, match=r"nothing to use as dev.*Fix: annotate texts that differ"):
        fine_tune(tmp_path / "copies.jsonl", start=str(start), output=tmp_path / "run")
    for name in ("one", "two"):
        write(animals(), tmp_path / "several" / f"{name}.jsonl")
    with pytest.raises(DataError, match=r"there is no split 'train', only one, two.*Fix: name the file to train on"):
        few_data_recipe(tmp_path / "several", str(start))
    with pytest.raises(DataError, match="no such file"):
        few_data_recipe(tmp_path / "missing", str(start))


def test_the_command_prints_gains_and_how_to_use_the_model(
    command: Callable, start: Path, corpus: Path, tmp_path: Path
) -> None:
    changes = [word for change in QUICK for word in ("--set", change)]
    asked = ("train", "--start", start, "--data", corpus, "--output", tmp_path / "run", *changes)
    outcome = command(*asked)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "check: trained on 10 documents, tested on 2 others"
    assert lines[1].startswith("f1 of the check: ")
    assert lines[-1] == f'use it: onoma extract TEXT --model {tmp_path / "run" / "onnx"} --labels "animal"'
    again = json.loads(command(*asked, "--json").out)
    assert again["onnx"] == str(tmp_path / "run" / "onnx")
    assert again["after"]["f1"] > again["before"]["f1"]


def test_without_a_recipe_and_a_start_the_command_says_what_to_give(command: Callable) -> None:
    outcome = command("train")
    assert outcome.code == 2
    assert "onoma train --start embedded --data CORPUS" in outcome.err
