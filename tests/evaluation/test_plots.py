"""Pictures: text stays text, colours follow the page, and any labels and counts can be drawn."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings

from evaluation.strategies import scored
from onoma import Corpus, Document, Entity, Extractor
from onoma.evaluation import evaluate
from onoma.evaluation.analysis import analyse
from onoma.evaluation.plot_style import as_svg, plot_style, shorten
from onoma.evaluation.plots import draw_confusion, draw_error_kinds, draw_slices, draw_type_errors, draw_types
from onoma.evaluation.render import most_confused
from onoma.evaluation.score_plots import draw_distributions, draw_projection
from onoma.evaluation.scored import ScoreDistribution
from onoma.evaluation.scores import Scores
from onoma.evaluation.vectors import Projection


def test_pictures_keep_text_as_text_and_follow_the_colours_of_the_page(ner: Extractor) -> None:
    chinese = Corpus("zh", [Document.from_spans("Tom flew to Paris .", [(0, 3, "地缘政治实体"), (12, 17, "city")])])
    with plot_style():
        svg = as_svg(draw_types({"tiny": analyse(ner, chinese).report}), "types")
    assert "地缘政治实体 (1)" in svg
    assert "var(--ink, " in svg
    assert "font-family" not in svg
    assert all(name.startswith("types-") for name in re.findall(r'\bid="([^"]+)"', svg))
    assert "url(#types-" in svg


@pytest.mark.parametrize(("name", "short"), [("city", "city"), ("a\nb", "a b"), ("城" * 20, "城" * 12 + "…")])
def test_long_names_are_cut_by_their_width(name: str, short: str) -> None:
    assert shorten(name) == short


def test_labels_are_not_read_as_mathematics_or_markup() -> None:
    text, labels = "Tom Ann", ("$\\frac{x$ <b>", "a $ b $ c")
    corpus = Corpus("odd", [Document.from_spans(text, [(0, 3, labels[0]), (4, 7, labels[1])])])
    report = evaluate(corpus, [[Entity(0, 3, "Tom", labels[1])]])
    with plot_style():
        svg = as_svg(draw_confusion(report), "confusion")
    assert "$\\frac{x$ &lt;b&gt;" in svg
    assert "a $ b $ c" in svg


def test_a_density_of_equal_counts_is_flat_up_to_its_ends() -> None:
    with plot_style():
        (axes,) = draw_distributions({"city": ScoreDistribution((3,) * 56, (5,) * 56, 0, (0.3, 0.4))}).axes
    density = axes.lines[0].get_ydata()
    assert density == pytest.approx(density[0])
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["gold mentions", "other spans", "thresholds used"]


def test_bars_of_slices_have_the_number_of_gold_mentions() -> None:
    with plot_style():
        (axes,) = draw_slices({"1": Scores.one_to_one(1234, 9, 9), "2+": Scores.one_to_one(7, 7, 1)}, "words").axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1\n(1,234)", "2+\n(7)"]


def test_types_with_a_colour_are_drawn_over_the_others() -> None:
    labels = tuple(f"type {number}" for number in range(40))
    with plot_style():
        (axes,) = draw_projection(Projection(np.zeros((40, 2), np.float32), labels, (0.5, 0.5))).axes
    *named, others = axes.collections
    assert "other types" in others.get_label()
    assert others.get_zorder() < min(one.get_zorder() for one in named)


def test_many_types_are_ordered_by_frequency() -> None:
    text = " ".join(["Tom"] * 60)
    spans = [(4 * place, 4 * place + 3, f"type {min(place % 12, 11):02d}") for place in range(60)]
    spans += [(4 * place, 4 * place + 3, "type 99") for place in range(60)]
    report = evaluate(Corpus("many", [Document.from_spans(text, spans)]), [[]])
    assert most_confused(report, 20)[0][0] == "type 99"
    assert most_confused(report, 3)[0] == ["type 00", "type 01", "type 99"]


@settings(max_examples=12)
@given(scored())
def test_any_report_can_be_drawn(case: tuple[Corpus, list[list[Entity]]]) -> None:
    report = evaluate(*case)
    if not report.strict.types:
        return
    with plot_style():
        drawn = [draw_types({"a": report, "b": report}), draw_confusion(report)]
        if report.error_kinds.errors:
            drawn += [draw_error_kinds({"a": report}), draw_type_errors(report)]
        assert all(as_svg(figure, "x").startswith("<svg") for figure in drawn)
