"""Plots of learning curves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from onoma import OnomaError
from onoma.evaluation.curves import Point, draw_curves, plot_curves, require_plot

CURVES = {
    "films": [Point(100, 60.0, 1.0), Point(20, 50.0, 2.0), Point(500, 66.0, 0.5)],
    "<meals & more>": [Point(20, 30.0), Point(100, 45.0)],
}


def test_a_figure_has_one_line_per_corpus_and_a_band_if_the_spread_is_known() -> None:
    (axes,) = draw_curves(CURVES).axes
    films, meals = axes.lines
    assert list(zip(*films.get_data(), strict=True)) == [(20, 50.0), (100, 60.0), (500, 66.0)]
    assert list(zip(*meals.get_data(), strict=True)) == [(20, 30.0), (100, 45.0)]
    (band,) = axes.collections
    edges = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert {(20, 48.0), (20, 52.0), (100, 59.0), (100, 61.0), (500, 65.5), (500, 66.5)} <= edges
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["20", "100", "500"]
    assert len(axes.get_xticks(minor=True)) == 0


def test_text_in_svg_files_stays_text_and_files_are_reproducible(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        plot_curves(CURVES, tmp_path / name)
    text = (tmp_path / "one.svg").read_text("utf-8")
    assert all(f">{words}<" in text for words in ("films", "training sentences", "strict F1 on test", "500"))
    assert "&lt;meals &amp; more&gt;" in text
    assert text == (tmp_path / "two.svg").read_text("utf-8")
    plot_curves(CURVES, tmp_path / "new" / "curve.PNG")
    assert (tmp_path / "new" / "curve.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["curve", "curve.docx"])
def test_unknown_file_formats_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"\.svg"):
        require_plot(tmp_path / name)


def test_the_error_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(OnomaError, match=r'pip install "onoma\[report\]"'):
        require_plot("curve.svg")
