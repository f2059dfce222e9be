"""Colours: readers with any kind of colour vision can tell them apart, and see them on the page."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from onoma.evaluation.pages import TEMPLATES
from onoma.evaluation.pairs import ERROR_KINDS
from onoma.evaluation.plot_style import COLOURS, DASHES, HATCHES, MARKERS, VARIABLES
from onoma.evaluation.plots import KIND_COLOURS, KIND_HATCHES

Floats = NDArray[np.float64]

VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Matrices of Machado, Oliveira and Fernandes (2009) for linear RGB, severity 1."""
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])
WHITE = np.array([0.95047, 1.0, 1.08883])
CSS = (TEMPLATES / "report.css").read_text("utf-8")


def themes(name: str) -> tuple[str, str]:
    """The colour of a variable of the page in light and dark mode."""
    found = re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\)", CSS)
    assert found is not None
    return found[1], found[2]


def linear(colour: str) -> Floats:
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: Floats) -> Floats:
    t = XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: Floats, other: Floats) -> float:
    """CIEDE2000."""
    (light_1, a_1, b_1), (light_2, a_2, b_2) = one, other
    chroma = (np.hypot(a_1, b_1) + np.hypot(a_2, b_2)) / 2
    g = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    c_1, c_2 = np.hypot(g * a_1, b_1), np.hypot(g * a_2, b_2)
    h_1, h_2 = (np.degrees(np.arctan2(b, g * a)) % 360 for a, b in ((a_1, b_1), (a_2, b_2)))
    turn = (h_2 - h_1 + 180) % 360 - 180
    hue = 2 * np.sqrt(c_1 * c_2) * np.sin(np.radians(turn / 2))
    mean_l, mean_c = (light_1 + light_2) / 2, (c_1 + c_2) / 2
    mean_h = (h_1 + turn / 2) % 360
    waves = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.2, 4, -63))
    t = 1 + sum(size * np.cos(np.radians(times * mean_h + shift)) for size, times, shift in waves)
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    around = np.radians(60 * np.exp(-(((mean_h - 275) / 25) ** 2)))
    rotation = -2 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7)) * np.sin(around)
    x, y, z = (light_2 - light_1) / s_l, (c_2 - c_1) / s_c, hue / s_h
    return float(np.sqrt(x * x + y * y + z * z + rotation * y * z))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of the Web Content Accessibility Guidelines."""
    low, high = sorted(float(XYZ[1] @ linear(colour)) + 0.05 for colour in (one, other))
    return high / low


def test_the_simulation_knows_colours_that_are_hard_to_tell_apart() -> None:
    assert difference(np.array([50, 2.6772, -79.7751]), np.array([50, 0, -82.7485])) == pytest.approx(2.0425, abs=1e-4)
    orange, olive = (lab(np.array(VISION["protanopia"]) @ linear(one)) for one in ("#e69f00", "#b8a90b"))
    assert difference(orange, olive) < 5


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_any_two_colours_can_be_told_apart(theme: int, vision: str) -> None:
    colours = [themes(VARIABLES[one])[theme] for one in COLOURS]
    seen = [lab(np.array(VISION[vision]) @ linear(one)) for one in colours]
    assert min(difference(*pair) for pair in combinations(seen, 2)) > 12


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_contrast_to_the_page(theme: int) -> None:
    assert min(contrast(themes(VARIABLES[one])[theme], themes("card")[theme]) for one in COLOURS) >= 3


def test_pictures_without_a_page_have_the_colours_of_the_light_theme() -> None:
    assert [themes(VARIABLES[one])[0] for one in COLOURS] == list(COLOURS)


def test_colours_are_not_the_only_difference() -> None:
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(set(HATCHES)) == len(COLOURS)
    assert len(set(map(str, DASHES))) >= 4
    assert len(set(KIND_COLOURS.values())) == len(set(KIND_HATCHES.values())) == len(ERROR_KINDS)
