from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onoma
from onoma import Corpus, Document, Extractor, OnomaError
from onoma.config import ModelConfig
from onoma.evaluation.tuning import GRID, tune
from tiny import TYPES, corpus, documents

HIDDEN = {"band": 0.5, "city": 0.7, "person": 0.3}


@pytest.fixture(scope="module")
def unsure(tiny_model: Path) -> Extractor:
    """The tiny model with scores that are spread out between 0 and 1."""
    extractor = onoma.load(tiny_model, backend="torch", device="cpu")
    extractor.backend.config = replace(extractor.config, scale=0.2)
    return extractor


@pytest.fixture(scope="module")
def doubtful(unsure: Extractor) -> Corpus:
    """Jumbled words, in which the mentions are what the model finds with thresholds that tuning does not know.

    Some documents are annotated in part only, so that not all that is found counts.
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


def slow_f1(ner: Extractor, corpus: Corpus, threshold: dict[str, float]) -> float:
    return onoma.evaluate(ner, corpus, threshold=threshold).strict.micro.f1


def test_one_threshold_is_the_best_of_the_grid(unsure: Extractor, doubtful: Corpus) -> None:
    tuned = tune(unsure, doubtful)
    slow = {value: slow_f1(unsure, doubtful, dict.fromkeys(doubtful.labels, value)) for value in GRID}
    assert len(set(slow.values())) > 3  # or the test says nothing
    assert slow[tuned.config.threshold] == max(slow.values())
    summary = tuned.to_dict()
    assert summary["f1_after"] == pytest.approx(max(slow.values()))
    assert summary["f1_before"] == pytest.approx(onoma.evaluate(unsure, doubtful).strict.micro.f1)
    assert tuned.config.thresholds == {}


def test_thresholds_of_types_are_better_still(
    unsure: Extractor, doubtful: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.evaluation.tuning.ENOUGH_MENTIONS", 1)
    common, own = tune(unsure, doubtful), tune(unsure, doubtful, per_type=True)
    assert own.to_dict()["f1_after"] > common.to_dict()["f1_after"]
    assert own.to_dict()["f1_after"] > 0.98
    thresholds = {name: own.config.thresholds.get(name, own.config.threshold) for name in doubtful.labels}
    assert own.to_dict()["f1_after"] == pytest.approx(slow_f1(unsure, doubtful, thresholds))


def test_rare_types_keep_the_threshold_of_all(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.evaluation.tuning.ENOUGH_MENTIONS", 1000)
    assert tune(ner, corpus(), per_type=True).config.thresholds == {}


def test_documents_are_tuned_alike_in_one_chunk_and_in_several(unsure: Extractor, doubtful: Corpus) -> None:
    seen: list[int] = []
    whole = tune(unsure, doubtful, per_type=True)
    parts = tune(unsure, doubtful, per_type=True, batch_size=1, on_document=lambda: seen.append(1))
    assert len(seen) == len(doubtful) > 16
    assert parts.scores_after == whole.scores_after
    assert parts.config == whole.config


def test_thresholds_of_other_types_stay(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    config: ModelConfig = replace(ner.config, thresholds={"drug": 0.3, "city": 0.9})
    monkeypatch.setattr(ner.backend, "config", config)
    tuned = tune(ner, corpus())
    assert tuned.config.thresholds == {"drug": 0.3}
    assert np.round(tuned.before, 2).tolist() == pytest.approx([0.5, 0.9, 0.5])


def test_where_all_thresholds_are_equal_the_middle_is_taken(ner: Extractor) -> None:
    tuned = tune(ner, Corpus("nothing", [Document("We eat soup and bread every day .")], TYPES))
    assert tuned.config.threshold == 0.5


def test_a_corpus_without_documents_is_refused(ner: Extractor) -> None:
    with pytest.raises(OnomaError, match="no documents"):
        tune(ner, Corpus("empty", [], TYPES))
