"""Tuning of thresholds, compared with an evaluation of every threshold."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onoma
from onoma import Corpus, Document, EntityType, Extractor, OnomaError
from onoma.data.corpora import relabel
from onoma.evaluation.tuning import GRID, render_tuned, tune
from onoma.models.config import ModelConfig, load_config
from tiny import TYPES, corpus, documents

HIDDEN = {"band": 0.5, "city": 0.7, "person": 0.3}


@pytest.fixture(scope="module")
def unsure(tiny_model: Path) -> Extractor:
    """The tiny model with scores that are spread between 0 and 1."""
    extractor = onoma.load(tiny_model, backend="torch", device="cpu")
    extractor.runtime.config = replace(extractor.config, scale=0.2)
    return extractor


@pytest.fixture(scope="module")
def doubtful(unsure: Extractor) -> Corpus:
    """Random words, in which the gold mentions are what the model finds with thresholds that tuning does not know.

    Some documents are annotated for some of the labels only.
    """
    generator = np.random.default_rng(0)
    words = sorted({word for one in documents() for word in one.text.split()})
    texts = [" ".join(generator.choice(words, 12)) for _ in range(60)]
    found = unsure.annotate(map(Document, texts), TYPES, threshold=HIDDEN, overlap="nested")
    known = [None, frozenset(HIDDEN), None, frozenset({"city", "band"})] * 15
    corpus = [
        Document(one.text, tuple(e for e in one.entities if labels is None or e.label in labels), labels)
        for one, labels in zip(found, known, strict=True)
    ]
    return Corpus("doubtful", corpus, TYPES)


def evaluated_f1(ner: Extractor, corpus: Corpus, threshold: dict[str, float]) -> float:
    return onoma.evaluate(ner, corpus, threshold=threshold).strict.micro.f1


def test_the_common_threshold_is_the_best_of_the_grid(unsure: Extractor, doubtful: Corpus) -> None:
    tuned = tune(unsure, doubtful)
    slow = {value: evaluated_f1(unsure, doubtful, dict.fromkeys(doubtful.labels, value)) for value in GRID}
    assert len(set(slow.values())) > 3  # otherwise any threshold would pass
    assert slow[tuned.config.threshold] == max(slow.values())
    presets = tuned.config.presets
    assert presets["complete"] <= tuned.config.threshold <= presets["precise"]
    summary = tuned.to_dict()
    assert summary["presets"] == presets
    assert summary["f1_after"] == pytest.approx(max(slow.values()))
    assert summary["f1_before"] == pytest.approx(onoma.evaluate(unsure, doubtful).strict.micro.f1)
    assert tuned.config.thresholds == {}


def test_thresholds_per_type_are_better_than_a_common_one(
    unsure: Extractor, doubtful: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.evaluation.tuning.MIN_MENTIONS", 1)
    common, own = tune(unsure, doubtful), tune(unsure, doubtful, per_type=True)
    assert own.to_dict()["f1_after"] > common.to_dict()["f1_after"]
    assert own.to_dict()["f1_after"] > 0.98
    thresholds = {name: own.config.thresholds.get(name, own.config.threshold) for name in doubtful.labels}
    assert own.to_dict()["f1_after"] == pytest.approx(evaluated_f1(unsure, doubtful, thresholds))


def test_rare_types_keep_the_common_threshold(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.evaluation.tuning.MIN_MENTIONS", 1000)
    assert tune(ner, corpus(), per_type=True).config.thresholds == {}


def test_the_result_does_not_depend_on_batches_and_sections(
    unsure: Extractor, doubtful: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tune(unsure, doubtful, per_type=True)
    progress: list[int] = []
    monkeypatch.setattr("onoma.evaluation.candidates.SECTION_TOKENS", 100)
    parts = tune(unsure, doubtful, per_type=True, batch_size=1, on_progress=progress.append)
    assert len(progress) > 5
    assert progress == sorted(progress)
    assert progress[-1] == len(doubtful)
    assert parts.scores_after == whole.scores_after
    assert parts.config == whole.config


def test_thresholds_of_other_types_are_kept(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    config: ModelConfig = replace(ner.config, thresholds={"drug": 0.3, "city": 0.9})
    monkeypatch.setattr(ner.runtime, "config", config)
    tuned = tune(ner, corpus())
    assert tuned.config.thresholds == {"drug": 0.3}
    assert np.round(tuned.before, 2).tolist() == pytest.approx([0.5, 0.9, 0.5])


def test_of_equally_good_thresholds_the_middle_one_is_chosen(ner: Extractor) -> None:
    tuned = tune(ner, Corpus("nothing", [Document("We eat soup and bread every day .")], TYPES))
    assert tuned.config.threshold == 0.5


def test_a_corpus_without_documents_is_refused(ner: Extractor) -> None:
    with pytest.raises(OnomaError, match=r"has no documents\. Fix: "):
        tune(ner, Corpus("empty", [], TYPES))


def test_tuned_thresholds_hold_for_labels_that_are_translated(
    tiny_model: Path, doubtful: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.evaluation.tuning.MIN_MENTIONS", 1)
    chinese = {"band": "乐队", "city": "城市", "person": "人名"}
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    names = {chinese[one.name]: [one.name, one.description] for one in TYPES}
    (folder / "labels.json").write_text(json.dumps(names), "utf-8")
    replace(load_config(tiny_model), scale=0.2, language="en").save(folder)
    corpus = relabel(doubtful, {one.name: EntityType(chinese[one.name]) for one in TYPES})
    tuned = tune(onoma.load(folder, backend="torch", device="cpu"), corpus, per_type=True)
    assert set(tuned.labels) == set(chinese.values())
    assert tuned.config.thresholds
    assert set(tuned.config.thresholds) <= set(chinese)
    tuned.config.save(folder)
    report = onoma.evaluate(onoma.load(folder, backend="torch", device="cpu"), corpus)
    assert report.strict.micro.f1 == pytest.approx(tuned.to_dict()["f1_after"])


def test_the_table_has_thresholds_and_scores_before_and_after(unsure: Extractor, doubtful: Corpus) -> None:
    from rich.console import Console

    tuned = tune(unsure, doubtful)
    console = Console(width=120)
    with console.capture() as capture:
        console.print(render_tuned(tuned))
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capture.get().splitlines()]
    gold = sum(scores.gold for scores in tuned.scores_after)
    before, after = (f"{100 * tuned.to_dict()[key]:.2f}" for key in ("f1_before", "f1_after"))
    assert ["all (micro)", "", before, "", after, str(gold)] in lines
    cities = tuned.labels.index("city")
    old, new = tuned.scores_before[cities], tuned.scores_after[cities]
    threshold = f"{tuned.config.threshold:.2f}"
    assert ["city", "0.50", f"{100 * old.f1:.2f}", threshold, f"{100 * new.f1:.2f}", str(new.gold)] in lines
