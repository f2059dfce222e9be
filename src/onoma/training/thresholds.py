"""What is chosen on development data after training: calibrated scores and the default threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from onoma.backends.base import Backend
from onoma.backends.base import scores as to_scores
from onoma.training.calibration import calibration_error, fit_calibration
from onoma.training.development import DevelopmentSet

SCORES = np.arange(0.06, 0.96, 0.02).round(2)  # thresholds to choose from, of calibrated scores
SIMILARITIES = 1 / (1 + np.exp(-np.arange(2.0, 15.0)))  # and of similarities, as scores before calibration
CALIBRATION_FLOOR = -6.0  # margins below this are left out when scores are calibrated


def mean_scores(development: Sequence[DevelopmentSet], backend: Backend) -> dict[str, float]:
    """The mean over development sets, and the F1 of each where there are several."""
    each = {one.corpus.name: one.evaluate(backend) for one in development}
    mean = {name: float(np.mean([scores[name] for scores in each.values()])) for name in ("precision", "recall", "f1")}
    return mean if len(each) == 1 else mean | {f"{name}_f1": scores["f1"] for name, scores in each.items()}


def calibrate(
    backend: Backend, development: Sequence[DevelopmentSet], *, floor: float | None = None, choose: bool = False
) -> None:
    """Fit the score to the chance of being right, and set the default threshold.

    It is the score of a margin of 0, the paper's own rule, or with `choose` the one with the best mean F1 on the
    development data. Proposals with a score below `floor` are not looked at.
    """
    if floor is None:
        floor = float(to_scores(np.array([CALIBRATION_FLOOR], np.float32), backend.config)[0])
    pairs = [one.reported(one.propose(backend, floor), 0.0) for one in development]
    score, right = (np.concatenate(column) for column in zip(*pairs, strict=True))
    if not right.any() or right.all():
        return
    margin = np.log(score) - np.log1p(-np.minimum(score, 1 - 1e-7))
    scale, bias = fit_calibration(margin, right)
    at_zero = float(to_scores(np.zeros(1, np.float32), replace(backend.config, scale=scale, bias=bias))[0])
    backend.config = replace(backend.config, scale=scale, bias=bias, threshold=at_zero)
    if choose:
        backend.config = replace(backend.config, threshold=best_threshold(backend, development, SCORES))
    calibrated = to_scores(margin.astype(np.float32), backend.config)
    backend.config = replace(
        backend.config,
        options={**backend.config.options, "calibration_error": round(calibration_error(calibrated, right), 4)},
    )


def best_threshold(backend: Backend, development: Sequence[DevelopmentSet], grid: NDArray[np.float64]) -> float:
    """The threshold of a grid with the best mean dev F1."""
    found = [one.propose(backend, float(grid[0])) for one in development]
    means = [np.mean([one.scores(p, float(x))["f1"] for one, p in zip(development, found, strict=True)]) for x in grid]
    return float(grid[int(np.argmax(means))])
