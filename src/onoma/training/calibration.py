"""Calibration: scores that can be read as the chance of being right, fitted on development data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fit_calibration(margin: NDArray[np.floating], right: NDArray[np.bool_], steps: int = 50) -> tuple[float, float]:
    """Scale and bias of P(right) = sigmoid(scale · margin + bias), by Newton's method on the log-likelihood.

    As Platt did, the chances to reach are not quite 1 and 0 but (n + 1) / (n + 2) for n right ones and
    1 / (m + 2) for m wrong ones; so margins that separate the two do not make every score 1 or 0. A weak prior
    (scale 1 and bias 0, each with variance 100) keeps the fit finite whatever the margins are.
    """
    x = np.stack([np.asarray(margin, float), np.ones(len(margin))], axis=1)
    n = int(np.count_nonzero(right))
    y = np.where(right, (n + 1) / (n + 2), 1 / (len(margin) - n + 2))
    middle = weights = np.array([1.0, 0.0])
    prior = 1e-2

    def likelihood(weights: NDArray[np.float64]) -> float:
        z = x @ weights
        return float((y * z - np.logaddexp(0.0, z)).sum() - prior / 2 * np.square(weights - middle).sum())

    for _ in range(steps):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (y - p) - prior * (weights - middle)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + prior * np.eye(2)
        change = np.linalg.solve(hessian, gradient)
        while likelihood(weights + change) < likelihood(weights) and np.abs(change).max() > 1e-9:
            change = change / 2  # a whole step can go far beyond the top
        weights = weights + change
        if np.abs(change).max() < 1e-8:
            break
    return max(float(weights[0]), 1e-3), float(weights[1])


def calibration_error(score: NDArray[np.floating], right: NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error: the mean gap between score and share of right ones, over equal bins of score."""
    place = np.minimum((np.asarray(score) * bins).astype(int), bins - 1)
    counts = np.bincount(place, minlength=bins)
    gaps = np.abs(np.bincount(place, score, bins) - np.bincount(place, np.asarray(right, float), bins))
    return float(gaps.sum() / max(counts.sum(), 1))
