"""Pictures: text stays text, colours follow the page, and any labels and counts can be drawn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from evaluation.strategies import scored
from onoma import Corpus, Document, Entity, Extractor
from onoma.evaluation import evaluate
from onoma.evaluation.analysis import analyse
from onoma.evaluation.plot_style import as_svg, plot_style, shorten
from onoma.evaluation.plots import draw_confusion, draw_error_kinds, draw_type_errors, draw_types


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
