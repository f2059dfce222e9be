"""Thresholds in words: "precise", "balanced" and "complete", whose numbers each model has for itself.

- balanced: the default of the model, or the threshold that was tuned for the type. Best F1 on development data.
- precise: higher. Best F0.5 on development data, which counts precision more than recall.
- complete: lower. Best F2 on development data, which counts recall more than precision.

A model for which no such numbers were chosen has them from a rule: the odds of its default threshold, t / (1 - t),
multiplied by 2.5 for "precise" and divided by 2.5 for "complete". If scores are probabilities, the best threshold for
F_β is F_β / (1 + β²) (Lipton et al., 2014), and for F1 between 0.4 and 0.8 the odds of neighbouring ones then differ by
factors of 2 to 4. A type with a tuned threshold is moved by the same factor of the odds as the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from onoma.entities import Preset

BETAS: dict[Preset, float] = {"precise": 0.5, "complete": 2.0}
"""Of the F score that is best at the threshold; "balanced" stands for F1."""
ODDS_FACTOR = 2.5


def preset_threshold(preset: Preset, tuned: float | None, default: float, chosen: Mapping[str, float]) -> float:
    """The number that a word stands for.

    Args:
        tuned: the threshold that was tuned for a type, if there is one.
        default: the default threshold of the model.
        chosen: the thresholds that were chosen for "precise" and "complete" on development data, if they were.

    >>> [round(preset_threshold(word, None, 0.3, {}), 3) for word in ("precise", "balanced", "complete")]
    [0.517, 0.3, 0.146]
    """
    base = default if tuned is None else tuned
    if preset == "balanced":
        return base
    if base == default and preset in chosen:
        return chosen[preset]
    if not 0.0 < base < 1.0:  # it has no odds
        return base
    return 1.0 / (1.0 + math.exp(-log_odds(base) - _step(preset, default, chosen)))


def _step(preset: Preset, default: float, chosen: Mapping[str, float]) -> float:
    """How far a word moves a threshold, in log odds."""
    if preset in chosen and 0.0 < default < 1.0 and 0.0 < chosen[preset] < 1.0:
        return log_odds(chosen[preset]) - log_odds(default)
    return math.log(ODDS_FACTOR) if preset == "precise" else -math.log(ODDS_FACTOR)


def log_odds(share: float) -> float:
    """The logit of a share between 0 and 1."""
    return math.log(share) - math.log1p(-share)
