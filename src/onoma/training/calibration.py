"""Calibration: scores that can be read as the chance of being right, fitted on development data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fit_calibration(margin: NDArray[np.floating], right: NDArray[np.bool_], steps: int = 50) -> tuple[float, float]:
    """Scale and bias of P(right) = sigmoid(scale · margin + bias), by Newton's method on the log-likelihood.

    A weak prior (one right proposal at +∞, one wrong at -∞, in effect) keeps the fit finite when the
    margins separate right from wrong.
    """
    x = np.stack([np.asarray(margin, float), np.ones(len(margin))], axis=1)
    y = np.asarray(right, float)
    weights = np.array([1.0, 0.0])
    prior = 1e-2 * np.eye(2)
    for _ in range(steps):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (y - p) - prior @ (weights - [1.0, 0.0])
        hessian = (x * (p * (1 - p))[:, None]).T @ x + prior
        change = np.linalg.solve(hessian, gradient)
        weights = weights + np.clip(change, -2, 2)
        if np.abs(change).max() < 1e-8:
            break
    return max(float(weights[0]), 1e-3), float(weights[1])


def calibration_error(score: NDArray[np.floating], right: NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error: the mean gap between score and share of right ones, over equal bins of score."""
    place = np.minimum((np.asarray(score) * bins).astype(int), bins - 1)
    counts = np.bincount(place, minlength=bins)
    gaps = np.abs(np.bincount(place, score, bins) - np.bincount(place, np.asarray(right, float), bins))
    return float(gaps.sum() / max(counts.sum(), 1))
