from __future__ import annotations

import json
from pathlib import Path

import pytest

import onoma
from onoma import Corpus, Document, Extractor, OnomaError
from onoma.data import write
from onoma.evaluation.runs import open_corpus, run, score_file, usual_overlap
from tiny import TYPES, corpus, documents

FLAT = [one for one in documents() if "Players" not in one.text]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus with short labels, whose meta.json says what they mean."""
    short = {"band": "BND", "city": "CIT", "person": "PER"}
    for split, chosen in {"train": documents()[:3], "dev": documents()[3:9], "test": documents()[::7]}.items():
        write([one.relabel(short) for one in chosen], tmp_path / f"{split}.jsonl")
    names = {label: name for name, label in short.items()}
    (tmp_path / "meta.json").write_text(json.dumps({"name": "tunes", "types": list(names), "type_names": names}))
    return tmp_path


def test_a_model_is_perfect_on_what_it_has_learned(ner: Extractor) -> None:
    report = onoma.evaluate(ner, corpus())
    assert report.strict.micro.f1 == 1.0
    assert list(report.strict.types) == [one.name for one in TYPES]


def test_models_and_corpora_may_be_given_by_path(tiny_model: Path, folder: Path) -> None:
    report = onoma.evaluate(tiny_model, folder)
    assert (report.corpus, report.documents) == ("tunes", len(documents()[::7]))
    assert report.strict.micro.f1 == 1.0  # asked for by the words of meta.json


def test_types_are_asked_for_with_their_descriptions(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    stream = ner.stream
    monkeypatch.setattr(
        ner, "stream", lambda texts, labels, **rest: asked.append(labels) or stream(texts, labels, **rest)
    )
    onoma.evaluate(ner, Corpus("one", documents()[:1], TYPES))
    assert asked == [TYPES]


def test_threshold_and_overlap_are_passed_on(ner: Extractor) -> None:
    assert onoma.evaluate(ner, corpus(), threshold=1.0).strict.micro.predicted == 0
    assert onoma.evaluate(ner, corpus(), threshold={"city": 1.0}).strict.types["city"].predicted == 0
    assert onoma.evaluate(ner, corpus(), overlap="flat").strict.micro.recall < 1.0


def test_overlap_is_as_the_corpus_is() -> None:
    assert usual_overlap(Corpus("flat", FLAT)) == "flat"
    assert usual_overlap(corpus()) == "nested"
    twice = Document.from_spans("Paris", [(0, 5, "city"), (0, 5, "capital")])
    assert usual_overlap(Corpus("same span", [twice])) == "flat"


def test_a_run_knows_its_time_and_its_progress(ner: Extractor) -> None:
    seen = []
    outcome = run(ner, Corpus("few", FLAT[:5], TYPES), on_document=lambda: seen.append(1))
    assert len(seen) == 5
    assert outcome.seconds is not None
    assert outcome.documents_per_second == pytest.approx(5 / outcome.seconds)
    assert outcome.to_dict()["overlap"] == "flat"


def test_splits_and_names_of_a_corpus(folder: Path) -> None:
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


def test_names_of_the_inventory_come_with_descriptions(tmp_path: Path) -> None:
    write([Document.from_spans("Tom", [(0, 3, "PER")])], tmp_path / "test.jsonl")
    (tmp_path / "meta.json").write_text('{"name": "conll2003", "types": ["PER"]}')
    (one,) = open_corpus(tmp_path, names="inventory").types
    assert one.name == "person"
    assert one.description


def test_predictions_of_a_file_are_scored(tmp_path: Path) -> None:
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
    with pytest.raises(OnomaError, match="document 1 has another text"):
        score_file(tmp_path / "others.jsonl", gold)
    write(documents()[:3], tmp_path / "more.jsonl")
    with pytest.raises(OnomaError, match="predictions for 3"):
        score_file(tmp_path / "more.jsonl", gold)
