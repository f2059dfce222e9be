"""Analyses and studies: what they accept, what they refuse, and how they print."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from onoma import Corpus, EntityType, Extractor, OnomaError
from onoma.data import write
from onoma.data.corpora import relabel
from onoma.evaluation.analysis import analyse, study
from onoma.evaluation.pages import render_report
from onoma.evaluation.sources import as_sources
from tiny import corpus, documents

SMALL = Corpus("small", documents()[::9], corpus().types)
OTHER = relabel(SMALL, {one.name: EntityType(f"{one.name} 2") for one in SMALL.types})


@pytest.fixture
def closed(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> Extractor:
    """A model that knows persons and cities only."""
    monkeypatch.setattr(type(ner.runtime), "labels", frozenset({"person", "city"}))
    return ner


def test_models_and_corpora_may_be_paths(tiny_model: Path, tmp_path: Path) -> None:
    write(SMALL.documents, tmp_path / "tunes" / "test.jsonl")
    found = analyse(tiny_model, tmp_path / "tunes", "mine")
    assert (found.source.name, found.source.split, found.source.path) == ("tunes", "test", str(tmp_path / "tunes"))
    assert found.report.strict.micro.f1 == 1.0
    assert study({"mine": tiny_model}, [str(tmp_path / "tunes")]).models == ["mine"]


def test_what_cannot_be_analysed_is_an_error_of_onoma(ner: Extractor) -> None:
    for models, corpora in (({}, [SMALL]), ({"tiny": ner}, []), ({"tiny": ner}, SMALL), ({"tiny": 5}, [SMALL])):
        with pytest.raises(OnomaError):
            study(models, corpora)  # type: ignore[arg-type]
    for model, source in ((ner, 5), (ner, "no/such/corpus"), ("no/such/model", SMALL)):
        with pytest.raises(OnomaError):
            analyse(model, source)  # type: ignore[arg-type]


def test_they_print_in_one_line(ner: Extractor) -> None:
    found = study({"tiny": ner}, [SMALL])
    (analysis,) = found.analyses[0]
    assert repr(found) == "Study(models: tiny; corpora: small)"
    assert repr(analysis) == f"Analysis('tiny' on 'small', {len(SMALL)} documents, F1 100.00)"
    gold = len(analysis.comparison.gold)
    counts = f"gold: {gold}, predicted: {gold}, correct: {gold}"
    assert repr(analysis.comparison) == f"Comparison('small', {len(SMALL)} documents, {counts})"


def test_equal_names_are_told_apart_and_repeats_refused(tmp_path: Path) -> None:
    for folder in ("a/tunes", "b/tunes"):
        for split in ("train", "test"):
            write(SMALL.documents, tmp_path / folder / f"{split}.jsonl")
    first, second = (str(tmp_path / folder / "tunes") for folder in "ab")
    assert [one.name for one in as_sources([f"{first}:train", f"{first}:test"])] == ["tunes:train", "tunes:test"]
    assert [one.name for one in as_sources([first, second])] == [f"{first} (test)", f"{second} (test)"]
    assert [one.name for one in as_sources([SMALL, OTHER, Corpus("small", documents()[:9])])] == [
        "small (1)",
        "small (2)",
        "small (3)",
    ]
    for repeated in ([first, f"{first}/test.jsonl"], [SMALL, SMALL]):
        with pytest.raises(OnomaError, match="given twice"):
            as_sources(repeated)


def test_a_model_with_closed_types_is_asked_for_those_that_it_knows(
    closed: Extractor, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "onoma"):
        found = study({"closed": closed}, [SMALL, OTHER])
    ((analysis,),) = found.analyses
    assert analysis.unknown == ["band"]
    with pytest.raises(OnomaError, match="does not know the type band"):
        closed.extract("Tom", ["band"])
    bands = analysis.report.strict.types["band"]
    assert (bands.predicted, bands.recall) == (0, 0.0)
    assert analysis.report.strict.types["city"].recall == 1.0
    page = render_report(found)
    for words in ("does not know these types of small", "knows none of the types of small"):
        assert words in caplog.text
        assert words in page


def test_a_study_without_any_known_type_is_refused_before_a_model_runs(
    closed: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Extractor, "candidates", lambda *args, **rest: pytest.fail("the model ran"))
    with pytest.raises(OnomaError, match="knows none of the types"):
        study({"closed": closed}, [OTHER])


def test_thresholds_are_checked_before_a_model_runs(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Extractor, "candidates", lambda *args, **rest: pytest.fail("the model ran"))
    with pytest.raises(OnomaError, match="not among the labels"):
        study({"tiny": ner}, [SMALL, OTHER], threshold={"person": 0.3})
