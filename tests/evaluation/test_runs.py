"""Evaluation of models and of files with predictions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import onoma
from onoma import Corpus, Document, Extractor, OnomaError
from onoma.data import write
from onoma.data.corpora import relabel
from onoma.entities import EntityType
from onoma.evaluation.runs import load_models, open_corpus, run, score_file
from tiny import TYPES, corpus, documents

FLAT = [one for one in documents() if "Players" not in one.text]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus with short labels, for which meta.json has natural names."""
    short = {"band": "BND", "city": "CIT", "person": "PER"}
    types = {name: EntityType(label) for name, label in short.items()}
    for split, chosen in {"train": documents()[:3], "dev": documents()[3:9], "test": documents()[::7]}.items():
        write(relabel(Corpus(split, chosen, TYPES), types), tmp_path / f"{split}.jsonl")
    names = {label: name for name, label in short.items()}
    (tmp_path / "meta.json").write_text(json.dumps({"name": "tunes", "types": list(names), "type_names": names}))
    return tmp_path


def test_a_model_has_perfect_scores_on_its_training_data(ner: Extractor) -> None:
    report = onoma.evaluate(ner, corpus())
    assert report.strict.micro.f1 == 1.0
    assert list(report.strict.types) == [one.name for one in TYPES]


def test_models_and_corpora_may_be_given_by_path(tiny_model: Path, folder: Path) -> None:
    report = onoma.evaluate(tiny_model, folder)
    assert (report.corpus, report.documents) == ("tunes", len(documents()[::7]))
    assert report.strict.micro.f1 == 1.0  # the model is asked for the natural names in meta.json


def test_types_are_asked_for_with_their_descriptions(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    stream = ner.stream
    monkeypatch.setattr(
        ner, "stream", lambda texts, labels, **rest: asked.append(labels) or stream(texts, labels, **rest)
    )
    onoma.evaluate(ner, Corpus("one", documents()[:1], TYPES))
    assert asked == [TYPES]


def test_threshold_and_overlap_have_an_effect(ner: Extractor) -> None:
    assert onoma.evaluate(ner, corpus(), threshold=1.0).strict.micro.predicted == 0
    assert onoma.evaluate(ner, corpus(), threshold={"city": 1.0}).strict.types["city"].predicted == 0
    assert onoma.evaluate(ner, corpus(), overlap="flat").strict.micro.recall < 1.0


def test_a_run_reports_its_progress_and_measures_its_time(ner: Extractor) -> None:
    progress: list[int] = []
    outcome = run(ner, Corpus("few", FLAT[:5], TYPES), on_progress=progress.append)
    assert progress == [1, 2, 3, 4, 5]
    assert outcome.seconds is not None
    assert outcome.documents_per_second == pytest.approx(5 / outcome.seconds)
    assert outcome.to_dict()["overlap"] == "flat"


def test_a_corpus_is_opened_by_split_and_kind_of_names(folder: Path) -> None:
    assert len(open_corpus(folder)) == len(documents()[::7])
    assert len(open_corpus(folder, usual=("valid", "dev"))) == 6
    assert len(open_corpus(folder, "train", limit=2)) == 2
    assert len(open_corpus(f"{folder}:dev")) == 6
    assert len(open_corpus(folder / "train.jsonl")) == 3
    assert open_corpus(folder).labels == ("band", "city", "person")
    assert open_corpus(folder, names="labels").labels == ("BND", "CIT", "PER")
    with pytest.raises(OnomaError, match="several splits"):
        open_corpus(folder, usual=("valid",))
    with pytest.raises(OnomaError, match="no type for 3 labels"):
        open_corpus(folder, names="inventory")


def test_types_of_the_inventory_have_descriptions(tmp_path: Path) -> None:
    write([Document.from_spans("Tom", [(0, 3, "PER")])], tmp_path / "test.jsonl")
    (tmp_path / "meta.json").write_text('{"name": "conll2003", "types": ["PER"]}')
    (one,) = open_corpus(tmp_path, names="inventory").types
    assert one.name == "person"
    assert one.description


def test_predictions_in_a_file_are_scored(tmp_path: Path) -> None:
    gold = Corpus("few", documents()[:4], TYPES)
    write([*documents()[:3], Document(documents()[3].text)], tmp_path / "found.jsonl")
    outcome = score_file(tmp_path / "found.jsonl", gold)
    mentions = [len(one.entities) for one in documents()[:4]]
    assert outcome.report.strict.micro.recall == pytest.approx(sum(mentions[:3]) / sum(mentions))
    assert outcome.report.strict.micro.precision == 1.0
    first = Corpus("few", documents()[:2], TYPES)
    assert score_file(tmp_path / "found.jsonl", first, limit=2).report.strict.micro.f1 == 1.0


def test_predictions_for_other_documents_are_refused(tmp_path: Path) -> None:
    gold = Corpus("few", documents()[:2], TYPES)
    write(documents()[1:3], tmp_path / "others.jsonl")
    with pytest.raises(OnomaError, match=r"the text of document 1 differs from the corpus\. Fix: "):
        score_file(tmp_path / "others.jsonl", gold)
    write(documents()[:3], tmp_path / "more.jsonl")
    with pytest.raises(OnomaError, match="predictions for 3"):
        score_file(tmp_path / "more.jsonl", gold)


def test_models_have_short_names_that_tell_them_apart(tiny_model: Path, tmp_path: Path) -> None:
    copies = [shutil.copytree(tiny_model, tmp_path / name) for name in ("a/model", "b/onnx", "c/drugs", "d/drugs")]
    assert list(load_models([*map(str, copies), "embedded"])) == ["a", "b", str(copies[2]), str(copies[3]), "embedded"]
    with pytest.raises(OnomaError, match="named twice"):
        load_models(["embedded", "embedded"])
