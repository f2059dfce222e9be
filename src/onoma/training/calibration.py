"""Calibration: scores that can be read as the probability of being right, fitted on development data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onoma.evaluation.candidates import Candidates, EvaluationSet, best_breadth_weight, best_presets, best_threshold
from onoma.evaluation.columns import Integers
from onoma.labels.presets import log_odds
from onoma.models.config import ModelConfig
from onoma.systems.base import scores_of

SCORE_GRID = [round(0.02 * step, 2) for step in range(3, 48)]
"""Thresholds to choose from, of calibrated scores."""
LOWEST_MARGIN = -6.0
"""Proposals with smaller margins are not used for the fit."""


def calibrate(
    runtime: Any, sets: Sequence[EvaluationSet], *, floor: float | None = None, choose_threshold: bool = False
) -> None:
    """Fit the score of a runtime's model to the probability of being right, and set the default threshold.

    The default threshold is the score of a margin of 0, which is the paper's own decision, or with `choose_threshold`
    the one with the best mean F1 on the development data; the thresholds for "precise" and "complete" are then chosen
    there as well. The weight of breadths, if the model has them, is chosen with it: before the fit, which depends on
    what is reported, and again for the new scores. Proposals with a score below `floor` are not used.
    """
    config = runtime.config
    if floor is None:
        floor = float(scores_of(np.array([LOWEST_MARGIN], np.float32), config)[0])
    found = [one.candidates(runtime, floor) for one in sets]
    rows = _fitted_rows(found, SCORE_GRID if choose_threshold else [config.threshold])
    score = np.concatenate([one.proposals.score[chosen] for one, chosen in zip(found, rows, strict=True)])
    right = np.concatenate([one.correct[chosen] for one, chosen in zip(found, rows, strict=True)])
    if not right.any() or right.all():
        return
    margin = (np.log(score) - np.log1p(-np.minimum(score, 1 - 1e-7)) - config.bias) / config.scale
    scale, bias = fit_calibration(margin, right)
    config = replace(config, scale=scale, bias=bias)
    calibrated = scores_of(margin.astype(np.float32), config)
    runtime.config = replace(
        config,
        threshold=float(scores_of(np.zeros(1, np.float32), config)[0]),
        presets={},
        calibration_error=round(calibration_error(calibrated, right), 4),
    )
    if choose_threshold or found[0].breadths is not None:
        _choose_threshold(runtime, sets, SCORE_GRID if choose_threshold else [runtime.config.threshold])


def shift_scores(config: ModelConfig, threshold: float) -> ModelConfig:
    """The same spans with other scores: all odds times the factor that gives the default threshold a new value.

    The threshold with the best F1 is a low probability (half of that F1) where a model is often wrong, as with types
    that it was not trained on. Shifted scores have it at 0.5, for instance; they are no longer the share of right ones
    on the data of the fit, so there is no calibration error. The choice between the labels of one span depends on
    scores, so the weight of breadths must be chosen anew.

    >>> config = ModelConfig("binder", threshold=0.2, bias=-1.0, presets={"precise": 0.5})
    >>> shifted = shift_scores(config, 0.5)
    >>> shifted.threshold, round(shifted.bias, 3), round(shifted.presets["precise"], 3)
    (0.5, 0.386, 0.8)
    """
    shift = log_odds(threshold) - log_odds(config.threshold)

    def shifted(scores: dict[str, float]) -> dict[str, float]:
        return {name: round(1 / (1 + math.exp(-log_odds(score) - shift)), 4) for name, score in scores.items()}

    return replace(
        config,
        bias=config.bias + shift,
        threshold=threshold,
        thresholds=shifted(config.thresholds),
        presets=shifted(config.presets),
        calibration_error=None,
    )


def shift_default_threshold(runtime: Any, sets: Sequence[EvaluationSet], threshold: float) -> None:
    """Shift the scores of a model, and choose the weight of breadths again, whose effect depends on scores."""
    runtime.config = shift_scores(runtime.config, threshold)
    found = [one.candidates(runtime, threshold) for one in sets]
    if found and found[0].breadths is not None:
        runtime.config = replace(runtime.config, breadth_weight=best_breadth_weight(found, [threshold])[1])


def _choose_threshold(runtime: Any, sets: Sequence[EvaluationSet], grid: Sequence[float]) -> None:
    """Set the best threshold of a grid, with it the best weight of breadths if the model has them, and the presets."""
    candidates = [one.candidates(runtime, grid[0]) for one in sets]
    threshold, weight = (best_threshold(candidates, grid), 0.0)
    if candidates[0].breadths is not None:
        threshold, weight = best_breadth_weight(candidates, grid)
        candidates = [replace(one, breadth_weight=weight) for one in candidates]
    presets = best_presets(candidates, grid, threshold) if len(grid) > 1 else {}
    runtime.config = replace(runtime.config, threshold=threshold, breadth_weight=weight, presets=presets)


def _fitted_rows(candidates: Sequence[Candidates], grid: Sequence[float]) -> list[Integers]:
    """The rows of each corpus whose scores are fitted: one for each span that overlaps no better one.

    With breadths, it has the label that is reported at the best threshold of a grid, or the best label of a span that
    does not reach it: there, narrow labels with very low scores would be preferred to broad ones that are right.
    """
    rows = [replace(one, breadth_weight=0.0).reported(0.0) for one in candidates]
    if candidates[0].breadths is None:
        return rows
    threshold, weight = best_breadth_weight(candidates, grid)
    return [
        np.concatenate(
            [replace(one, breadth_weight=weight).reported(threshold), own[one.proposals.score[own] < threshold]]
        )
        for one, own in zip(candidates, rows, strict=True)
    ]


def fit_calibration(margin: NDArray[np.floating], right: NDArray[np.bool_], steps: int = 50) -> tuple[float, float]:
    """Scale and bias of P(right) = sigmoid(scale · margin + bias), by Newton's method on the log-likelihood.

    As in Platt's method, the targets are not 1 and 0 but (n + 1) / (n + 2) for n right ones and 1 / (m + 2) for m
    wrong ones, so that separable margins do not make every score 1 or 0. A weak prior (scale 1 and bias 0, each with
    variance 100) keeps the fit finite for all margins.
    """
    x = np.stack([np.asarray(margin, float), np.ones(len(margin))], axis=1)
    n = int(np.count_nonzero(right))
    y = np.where(right, (n + 1) / (n + 2), 1 / (len(margin) - n + 2))
    prior_mean = weights = np.array([1.0, 0.0])
    prior = 1e-2

    def log_likelihood(weights: NDArray[np.float64]) -> float:
        z = x @ weights
        return float((y * z - np.logaddexp(0.0, z)).sum() - prior / 2 * np.square(weights - prior_mean).sum())

    for _ in range(steps):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (y - p) - prior * (weights - prior_mean)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + prior * np.eye(2)
        change = np.linalg.solve(hessian, gradient)
        while log_likelihood(weights + change) < log_likelihood(weights) and np.abs(change).max() > 1e-9:
            change = change / 2  # a full step can overshoot the maximum
        weights = weights + change
        if np.abs(change).max() < 1e-8:
            break
    return max(float(weights[0]), 1e-3), float(weights[1])


def calibration_error(score: NDArray[np.floating], right: NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error: the mean gap between score and share of right ones, over equal bins of the score."""
    place = np.minimum((np.asarray(score) * bins).astype(int), bins - 1)
    counts = np.bincount(place, minlength=bins)
    gaps = np.abs(np.bincount(place, score, bins) - np.bincount(place, np.asarray(right, float), bins))
    return float(gaps.sum() / max(counts.sum(), 1))
