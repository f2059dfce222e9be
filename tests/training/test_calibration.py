"""Calibration: scores as probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.test_candidates import FixedRuntime
from onoma import Corpus, Document, EntityType
from onoma.decoding.proposals import Proposals
from onoma.evaluation.candidates import EvaluationSet
from onoma.inputs.batches import Batch
from onoma.labels.presets import log_odds
from onoma.models.config import ModelConfig
from onoma.systems.base import scores_of
from onoma.training.calibration import (
    calibrate,
    calibration_error,
    fit_calibration,
    shift_default_threshold,
    shift_scores,
)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("scale", "bias"), [(1.0, 0.0), (0.4, -1.5), (2.5, 0.8)])
def test_a_known_sigmoid_is_recovered(scale: float, bias: float) -> None:
    generator = np.random.default_rng(0)
    margin = generator.normal(0, 3, 40_000)
    right = generator.random(len(margin)) < sigmoid(scale * margin + bias)
    found = fit_calibration(margin, right)
    assert found == pytest.approx((scale, bias), abs=0.08)
    assert calibration_error(sigmoid(found[0] * margin + found[1]), right) < 0.01


def test_the_fit_has_the_highest_likelihood() -> None:
    generator = np.random.default_rng(1)
    margin = generator.normal(1, 2, 500)
    right = generator.random(500) < sigmoid(0.7 * margin - 0.2)

    def likelihood(scale: float, bias: float) -> float:
        probability = sigmoid(scale * margin + bias)
        return float(np.log(np.where(right, probability, 1 - probability)).sum())

    scale, bias = fit_calibration(margin, right)
    best = likelihood(scale, bias)
    for change in (-0.05, 0.05):
        assert likelihood(scale + change, bias) < best
        assert likelihood(scale, bias + change) < best


def test_the_fit_of_separable_margins_is_finite() -> None:
    margin = np.array([-5.0, -4.0, -3.0, 2.0, 3.0, 9.0])
    scale, bias = fit_calibration(margin, margin > 0)
    assert 0 < scale < 100
    assert np.isfinite(bias)
    scores = sigmoid(scale * margin + bias)
    assert scores[:3].max() < 0.5 < scores[3:].min()
    assert scores.max() < 0.999  # six cases are not enough for certainty


@given(st.integers(0, 1000), st.sampled_from(["all", "none", "against", "one", "large"]))
def test_the_score_always_increases_with_the_margin(seed: int, case: str) -> None:
    generator = np.random.default_rng(seed)
    margin = generator.normal(0, 40 if case == "large" else 4, 1 if case == "one" else 60)
    right = {
        "all": np.ones(len(margin), bool),
        "none": np.zeros(len(margin), bool),
        "against": margin < 0,
    }.get(case, margin > 1)
    scale, bias = fit_calibration(margin, right)
    assert scale > 0
    assert np.isfinite([scale, bias]).all()


def test_calibration_error_is_the_gap_between_score_and_share() -> None:
    score = np.array([0.05, 0.15, 0.15, 0.95, 1.0])
    right = np.array([False, True, False, True, False])
    # bins: {0.05}: |0.05 - 0|; {0.15, 0.15}: |0.3 - 1|; {0.95, 1.0}: |1.95 - 1|.
    assert calibration_error(score, right) == pytest.approx((0.05 + 0.7 + 0.95) / 5)
    assert calibration_error(np.array([1.0, 1.0]), np.array([True, True])) == 0.0
    assert calibration_error(np.zeros(0), np.zeros(0, bool)) == 0.0


@pytest.mark.parametrize("choose_threshold", [True, False])
def test_broad_labels_that_are_not_reported_do_not_spoil_the_fit(choose_threshold: bool) -> None:
    """Poets are annotated as poets alone; "person" fits them as well, with a higher score."""
    texts = [f"{name} sang" for name in ("aa", "bb", "cc", "dd")]
    documents = [Document.from_spans(text, [(0, 2, "poet" if text < "cc" else "person")]) for text in texts]
    corpus = Corpus("poets", documents, (EntityType("person"), EntityType("poet")))
    as_poet = [(0, 0, 0, 0.99), (0, 0, 1, 0.9), (1, 1, 0, 0.2), (1, 1, 1, 0.1)]
    as_person = [(0, 0, 0, 0.95), (0, 0, 1, 0.15), (1, 1, 0, 0.96)]  # the last one is wrong, whatever is reported
    proposals = {text: as_poet if text < "cc" else as_person for text in texts}
    runtimes = [
        FixedRuntime(proposals, ModelConfig("fixed"), given_breadths=breadths) for breadths in (None, (2.0, -1.0))
    ]
    for runtime in runtimes:
        calibrate(runtime, [EvaluationSet(corpus, runtime)], choose_threshold=choose_threshold)
    without, with_breadths = (runtime.config for runtime in runtimes)
    assert without.breadth_weight == 0
    assert with_breadths.breadth_weight == 0.04  # log(0.99) - log(0.9) is 0.095, and breadths differ by 3
    assert with_breadths.scale > 3 * without.scale


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), st.integers(0, 1000))
def test_shifted_scores_make_the_same_decisions(threshold: float, target: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    presets = {"precise": min(0.99, threshold + 0.1), "complete": threshold / 2}
    config = ModelConfig("fixed", scale=0.7, bias=-1.2, threshold=threshold, thresholds={"a": 0.3}, presets=presets)
    shifted = shift_scores(config, target)
    margin = generator.normal(0, 3, 200).astype(np.float32)
    before, after = scores_of(margin, config), scores_of(margin, shifted)
    assert shifted.threshold == target
    pairs = [
        (threshold, target),
        (config.thresholds["a"], shifted.thresholds["a"]),
        *((value, shifted.presets[name]) for name, value in presets.items()),
    ]
    for old, new in pairs:
        clear = np.abs(after - new) > 2e-4
        assert ((before >= old) == (after >= new))[clear].all()


class CalibratedRuntime(FixedRuntime):
    """Its given scores are those of a margin without scale and bias."""

    def propose(self, batch: Batch, query: Any, floor: float) -> Proposals:
        found = super().propose(batch, query, 0.0)
        margin = np.array([log_odds(float(one)) for one in found.score], np.float32)
        return found._replace(score=scores_of(margin, self.config)).above(floor)


def test_the_weight_of_breadths_is_chosen_for_the_shifted_scores() -> None:
    document = Document.from_spans("aa sang", [(0, 2, "poet")])
    corpus = Corpus("poets", [document], (EntityType("person"), EntityType("poet")))
    proposals = {"aa sang": [(0, 0, 0, 0.99), (0, 0, 1, 0.9)]}
    config = ModelConfig("fixed", threshold=0.5, breadth_weight=0.04)
    runtime = CalibratedRuntime(proposals, config, given_breadths=(2.0, -1.0))
    sets = [EvaluationSet(corpus, runtime)]
    assert sets[0].evaluate(runtime)["f1"] == 100  # log(0.99) - log(0.9) is 0.095, and breadths differ by 3
    shift_default_threshold(runtime, sets, 0.05)
    assert runtime.config.threshold == 0.05
    assert runtime.config.breadth_weight == 0.5  # the odds are a 19th; now the logarithms differ by 0.96
    assert sets[0].evaluate(runtime)["f1"] == 100
