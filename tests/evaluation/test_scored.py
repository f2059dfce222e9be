"""Scored spans: calibration, threshold curves and distributions."""

from __future__ import annotations

import numpy as np
import pytest

import onoma
from onoma import Corpus, Document, EntityType, Extractor
from onoma.evaluation import Comparison
from onoma.evaluation.runs import run
from onoma.evaluation.scored import (
    CALIBRATED_FROM,
    THRESHOLDS,
    ScoredSpans,
    ThresholdCurve,
    calibration,
    score_distributions,
    score_spans,
    threshold_curves,
)
from onoma.evaluation.scores import Scores
from onoma.evaluation.strict import strict
from tiny import corpus, documents

MIXED = Corpus(
    "mixed",
    [
        Document.from_spans("Maria Silva flew to Oslo.", [(0, 11, "person"), (20, 24, "city")]),
        Document.from_spans("马云在杭州见了 Maria Silva 。", [(0, 2, "person"), (3, 5, "city"), (8, 19, "person")]),
        Document("It rains."),
    ],
)


@pytest.fixture(scope="module")
def tiny_spans(ner: Extractor) -> tuple[Corpus, ScoredSpans]:
    chosen = Corpus("tiny", documents()[::7], corpus().types)
    return chosen, score_spans(ner, chosen)[0]


def test_the_entities_are_those_of_extraction(ner: Extractor) -> None:
    chosen, done = Corpus("tiny", documents()[::7], corpus().types), list[int]()
    _, predicted = score_spans(ner, chosen, on_progress=done.append)
    assert predicted == list(run(ner, chosen).predicted)
    assert done[-1] == len(chosen)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_scores_at_a_threshold_are_those_of_a_run_with_it(ner: Extractor, threshold: float) -> None:
    chosen = Corpus("tiny", documents()[::7], corpus().types)
    found = score_spans(ner, chosen)[0].type_scores(threshold)
    scores = strict(Comparison.between(chosen, run(ner, chosen, threshold=threshold).predicted))
    assert {label: one for label, one in found.items() if one.gold or one.predicted} == dict(scores.types)


@pytest.mark.parametrize("threshold", [0.05, 0.3])
def test_texts_that_several_models_read_are_decoded_as_in_extraction(threshold: float) -> None:
    ner = onoma.load()
    spans, predicted = score_spans(ner, MIXED)
    assert predicted == ner.extract([one.text for one in MIXED], MIXED.types)
    scores = strict(Comparison.between(MIXED, run(ner, MIXED, threshold=threshold).predicted)).micro
    assert Scores.total(spans.type_scores(threshold).values()) == scores


def test_calibration_equals_a_slow_computation(tiny_spans: tuple[Corpus, ScoredSpans]) -> None:
    spans = tiny_spans[1]
    found = calibration(spans)
    assert found is not None
    rows = list(zip(spans.score.tolist(), spans.correct.tolist(), strict=True))
    bins = [[row for row in rows if low / 10 <= row[0] < low / 10 + 0.1 + (low == 9)] for low in range(10)]
    slow = [(np.mean([s for s, _ in one]), np.mean([c for _, c in one]), len(one)) for one in bins if one]
    assert [(one.score, one.share, one.spans) for one in found.bins] == [pytest.approx(one, rel=1e-4) for one in slow]
    counted = [one for one in slow if one[0] >= CALIBRATED_FROM]
    error = sum(n * abs(score - share) for score, share, n in counted) / sum(n for *_, n in counted)
    assert found.error == pytest.approx(error, rel=1e-4)
    for one in found.bins:
        low, high = one.interval()
        assert -1e-9 <= low <= one.share + 1e-9
        assert one.share - 1e-9 <= high <= 1 + 1e-9


def test_threshold_curves_fall_in_recall_and_mark_the_threshold_of_the_model(
    ner: Extractor, tiny_spans: tuple[Corpus, ScoredSpans]
) -> None:
    curves = threshold_curves(tiny_spans[1])
    assert curves is not None
    assert curves.micro.used == pytest.approx((ner.config.threshold,), abs=1e-4)
    assert set(curves.types) == {"band", "city", "person"}
    predicted = [one.predicted for one in curves.micro.scores]
    assert predicted == sorted(predicted, reverse=True)
    best = max(one.f1 for one in curves.micro.scores)
    assert curves.micro.best is not None
    assert curves.micro.scores[THRESHOLDS.index(curves.micro.best)].f1 == best


def test_the_best_threshold_is_the_middle_one_or_none() -> None:
    good, bad = Scores.one_to_one(2, 2, 2), Scores.one_to_one(2, 2, 1)
    plateau = [good if 0.2 <= value <= 0.4 else bad for value in THRESHOLDS]
    assert ThresholdCurve(tuple(plateau), ()).best == 0.3
    assert ThresholdCurve(tuple(Scores.one_to_one(2, 1, 0) for _ in THRESHOLDS), ()).best is None


def test_all_thresholds_of_a_folder_of_several_models_are_kept() -> None:
    spans, _ = score_spans(onoma.load(), MIXED)
    curves = threshold_curves(spans)
    assert curves is not None
    assert curves.micro.used == curves.types["city"].used
    given = threshold_curves(score_spans(onoma.load(), MIXED, threshold=0.6)[0])
    assert given is not None
    assert given.micro.used == (0.6,)


def test_distributions_have_all_gold_mentions(tiny_spans: tuple[Corpus, ScoredSpans]) -> None:
    found = score_distributions(tiny_spans[1])
    assert found is not None
    gold = strict(Comparison.between(tiny_spans[0], [[] for _ in tiny_spans[0]])).types
    assert {label: sum(one.entity) + one.unseen for label, one in found.items()} == {
        label: one.gold for label, one in gold.items()
    }
    city = found["city"]
    middle = [np.average(np.arange(len(counts)), weights=counts) for counts in (city.entity, city.other)]
    assert middle[0] > middle[1] + 5  # cities have higher scores than other spans


def test_types_that_are_not_annotated_are_neither_right_nor_wrong(ner: Extractor) -> None:
    document = Document.from_spans("Tom flew to Paris .", [(0, 3, "person")], annotated=["person"])
    spans, _ = score_spans(ner, Corpus("part", [document], (EntityType("person"), EntityType("city"))))
    assert spans.type_scores(0.3)["city"] == Scores(0, 0, 0, 0)
    assert spans.distribution[spans.labels.index("city")].sum() == 0


@pytest.mark.parametrize("empty", [Corpus("none", []), Corpus("plain", [Document("Tom sings")])], ids=["none", "plain"])
def test_a_corpus_without_mentions_has_no_curves(ner: Extractor, empty: Corpus) -> None:
    spans, predicted = score_spans(ner, empty)
    assert predicted == [[] for _ in empty]
    assert calibration(spans) is threshold_curves(spans) is score_distributions(spans) is None
