"""The report in a browser: filters, themes, small screens and accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onoma import Corpus, Document, Extractor
from onoma.evaluation.analysis import Study, analyse, study
from onoma.evaluation.pages import write_report
from serve.browser import axe_core, opened_browser
from tiny import corpus, documents

pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright. Fix: pip install playwright")
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.slow

WRONG = (
    Document.from_spans("Tom likes soup .", [(10, 14, "city")]),
    Document.from_spans("Tom flew to <b>Paris</b> .", [(0, 3, "city")]),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(ner: Extractor, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report with errors of several kinds and types."""
    path = tmp_path_factory.mktemp("reports") / "report.html"
    own = Corpus("small", [*documents()[::9], *WRONG], corpus().types)
    write_report(study({"tiny": ner}, [own, Corpus("rest", [*documents()[1:4], *WRONG])]), path)
    return Path(path).as_uri()


def test_errors_are_filtered_by_kind_type_and_text(browser: Browser, address: str) -> None:
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    form = page.locator("#corpus-1-examples form.filters")
    items = page.locator("#corpus-1-examples ol.errors li:visible")
    total = items.count()
    assert total >= 2
    expect(form.locator("output")).to_have_text(f"{total} of {total}")
    form.locator("[name=kind]").select_option("missed")
    assert set(items.evaluate_all("all => all.map((one) => one.dataset.kind)")) == {"missed"}
    form.locator("[name=type]").select_option("city")
    form.locator("[name=text]").fill("SOUP")
    expect(items).to_have_count(1)
    form.locator("[name=text]").fill("no such text")
    expect(form.locator("output")).to_have_text(f"0 of {total}")
    assert problems == []


def test_words_of_tables_stay_whole_on_paper_and_small_screens(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 900})
    page.goto(address)
    heights = """all => all.filter((one) => one.offsetParent && !one.textContent.includes(" "))
      .map((one) => one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight))"""
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        lines = page.locator("tbody th").evaluate_all(heights)
        assert lines
        assert max(lines) < 2
    page.emulate_media(media="screen")
    assert page.evaluate("[...document.querySelectorAll('.wide')].some((one) => one.scrollWidth > one.clientWidth)")


def test_errors_are_filtered_by_model_and_shown_in_parts(browser: Browser, ner: Extractor, tmp_path: Path) -> None:
    own = Corpus("small", [*documents()[::3], *WRONG], corpus().types)
    rows = [analyse(ner, own, name, threshold=value) for name, value in (("usual", None), ("strict", 0.9999))]
    write_report(Study([rows]), tmp_path / "report.html")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    items, form = page.locator("ol.errors li:visible"), page.locator("form.filters")
    assert set(items.evaluate_all("all => all.map((one) => one.dataset.model)")) == {"usual"}
    form.locator("[name=model]").select_option("strict")
    form.locator("[name=found]").select_option("usual")
    total = len(rows[1].errors)
    expect(items).to_have_count(20)
    assert total > 40
    page.locator("button.more").click()
    expect(items).to_have_count(40)
    assert all(items.evaluate_all("all => all.map((one) => one.textContent.includes('found by usual'))"))
    form.locator("[name=found]").select_option("none")
    expect(form.locator("output")).to_contain_text(f"of {sum(len(one.errors) for one in rows)}")


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen_and_axe_finds_nothing(
    browser: Browser, address: str, theme: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate(axe_core())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert [(one["id"], [node["html"] for node in one["nodes"]][:2]) for one in found["violations"]] == []
