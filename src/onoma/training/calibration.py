"""Calibration: scores that can be read as the probability of being right, fitted on development data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onoma.evaluation.candidates import EvaluationSet, best_presets, best_threshold
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
    there as well. Proposals with a score below `floor` are not used.
    """
    if floor is None:
        floor = float(scores_of(np.array([LOWEST_MARGIN], np.float32), runtime.config)[0])
    found = [one.candidates(runtime, floor) for one in sets]
    rows = [one.reported(0.0) for one in found]
    score = np.concatenate([one.proposals.score[chosen] for one, chosen in zip(found, rows, strict=True)])
    right = np.concatenate([one.correct[chosen] for one, chosen in zip(found, rows, strict=True)])
    if not right.any() or right.all():
        return
    margin = (np.log(score) - np.log1p(-np.minimum(score, 1 - 1e-7)) - runtime.config.bias) / runtime.config.scale
    scale, bias = fit_calibration(margin, right)
    config = replace(runtime.config, scale=scale, bias=bias)
    calibrated = scores_of(margin.astype(np.float32), config)
    runtime.config = replace(
        config,
        threshold=float(scores_of(np.zeros(1, np.float32), config)[0]),
        presets={},
        calibration_error=round(calibration_error(calibrated, right), 4),
    )
    if choose_threshold:
        candidates = [one.candidates(runtime, SCORE_GRID[0]) for one in sets]
        threshold = best_threshold(candidates, SCORE_GRID)
        presets = best_presets(candidates, SCORE_GRID, threshold)
        runtime.config = replace(runtime.config, threshold=threshold, presets=presets)


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
