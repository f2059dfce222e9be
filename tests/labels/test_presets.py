"""Thresholds in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.labels.presets import ODDS_FACTOR, preset_threshold

shares = st.floats(0.01, 0.99)


def odds(share: float) -> float:
    return share / (1 - share)


@given(shares)
def test_without_chosen_numbers_the_odds_are_multiplied_and_divided(default: float) -> None:
    precise, complete = (preset_threshold(word, None, default, {}) for word in ("precise", "complete"))
    assert odds(precise) == pytest.approx(ODDS_FACTOR * odds(default))
    assert odds(complete) == pytest.approx(odds(default) / ODDS_FACTOR)
    assert preset_threshold("balanced", None, default, {}) == default


@given(shares, shares, shares, shares)
def test_a_tuned_threshold_is_moved_by_the_same_factor_as_the_default(
    default: float, tuned: float, precise: float, complete: float
) -> None:
    chosen = {"precise": precise, "complete": complete}
    for word in ("precise", "complete"):
        assert preset_threshold(word, None, default, chosen) == chosen[word]
        moved = preset_threshold(word, tuned, default, chosen)
        assert odds(moved) / odds(tuned) == pytest.approx(odds(chosen[word]) / odds(default), rel=1e-6)
    assert preset_threshold("balanced", tuned, default, chosen) == tuned


@pytest.mark.parametrize("extreme", [0.0, 1.0])
def test_a_threshold_without_odds_stays(extreme: float) -> None:
    assert preset_threshold("precise", None, extreme, {}) == extreme
    assert preset_threshold("complete", extreme, 0.5, {}) == extreme
    assert preset_threshold("precise", None, extreme, {"precise": 0.7}) == 0.7
    assert 0 < preset_threshold("precise", 0.4, extreme, {"precise": 0.7}) < 1
