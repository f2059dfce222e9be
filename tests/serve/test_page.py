"""The page: extraction, thresholds, display, safety and accessibility, with the embedded model."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect

import onoma
from onoma import Extractor
from serve.browser import axe_core
from serve.page_driver import (
    DISTRICT,
    DISTRICT_LABELS,
    LABELS,
    NESTED,
    NESTED_LABELS,
    TEXT,
    mentions,
    select_text,
    set_threshold,
    show,
    shown,
    spans,
    wait_for_entities,
)

pytestmark = pytest.mark.slow


# --- extraction and thresholds


def test_a_pasted_text_is_marked_as_the_library_would(page: Page, embedded: Extractor) -> None:
    page.get_by_role("textbox", name="Text", exact=True).fill(TEXT)
    page.get_by_label("Add labels").fill("person, city，date")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    wait_for_entities(page)
    wanted = embedded.extract(TEXT, LABELS)
    assert shown(page) == spans(wanted)
    assert mentions(page) == [one.text for one in wanted]
    assert page.locator("#read mark").all_text_contents() == [one.text for one in wanted]
    expect(page.locator("#status")).to_have_text(f"Found {len(wanted)} entities")


def test_the_slider_filters_without_a_request(page: Page, embedded: Extractor) -> None:
    show(page, NESTED, NESTED_LABELS)
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request))
    for overlap in ("flat", "nested", "any"):
        page.locator("#overlap").get_by_text(overlap, exact=False).click()
        for threshold in (0.02, 0.1, 0.2, 0.4, 0.9):
            set_threshold(page, threshold)
            wanted = embedded.extract(NESTED, NESTED_LABELS, threshold=threshold, overlap=overlap)  # type: ignore[arg-type]
            assert shown(page) == spans(wanted), (overlap, threshold)
    assert [one for one in sent if "/v1/" in one.url] == []
    expect(page.locator("#threshold-hint")).to_have_text("Set by you")


@pytest.mark.parametrize("preset", ["precise", "complete"])
def test_presets_are_those_of_the_model(page: Page, embedded: Extractor, preset: Any) -> None:
    show(page, NESTED, NESTED_LABELS)
    page.get_by_text(preset.capitalize(), exact=True).click()
    wait_for_entities(page)
    expect(page.locator("#threshold-hint")).to_contain_text(preset)
    assert shown(page) == spans(embedded.extract(NESTED, NESTED_LABELS, threshold=preset))


def test_a_text_in_two_languages_is_decoded_with_the_thresholds_of_both_models(page: Page, embedded: Extractor) -> None:
    text = f"{TEXT}\n林晓梅在北京和上海见过陈国栋教授。"
    show(page, text, LABELS)
    assert shown(page) == spans(embedded.extract(text, LABELS))
    page.get_by_text("Nested", exact=True).click()
    assert shown(page) == spans(embedded.extract(text, LABELS, overlap="nested"))


def test_descriptions_examples_and_thresholds_of_labels_are_used(page: Page, embedded: Extractor) -> None:
    text = "The doctor prescribed 75 mg of clopidogrel and 3 capsules of vitamin D for six weeks."
    page.get_by_role("textbox", name="Text", exact=True).fill(text)
    page.get_by_label("Add labels").fill("x1")
    page.keyboard.press("Enter")
    page.locator("#chips").get_by_role("button", name="x1").first.click()
    page.get_by_label("Description, if").fill("an amount of a medicine")
    examples = ["Take [[40 mg]] daily.", "She was given [[two tablets]] at night.", "He swallowed [[5 drops]]."]
    page.get_by_label("Examples, one per line").fill("\n".join(examples))
    page.get_by_label("Threshold of its own").fill("0.3")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Extract").click()
    wait_for_entities(page)
    label = onoma.EntityType("x1", "an amount of a medicine", tuple(examples), 0.3)
    wanted = spans(embedded.extract(text, [label]))
    assert shown(page) == wanted != []
    set_threshold(page, 0.9)  # the threshold of the label stays
    assert shown(page) == wanted


def test_the_example_texts_have_entities(page: Page) -> None:
    for name in page.locator("#examples button").all_text_contents():
        page.get_by_role("button", name=name, exact=True).click()
        wait_for_entities(page)
        assert len(shown(page)) >= 4, name
        page.get_by_role("button", name="Edit text").click()


# --- display


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("overlap", ["nested", "any"])
def test_bars_and_names_cover_neither_each_other_nor_the_text(page: Page, overlap: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    show(page, f"{NESTED}\n\n{NESTED} {TEXT}", [*NESTED_LABELS, *LABELS], overlap=overlap, threshold="0.1")
    boxes = page.evaluate(
        """() => {
            const box = (one) => { const { left, right, top, bottom } = one.getBoundingClientRect();
                return { left, right, top, bottom } };
            const bars = [...document.querySelectorAll(".bar")].map((bar) => {
                const { left, right, top } = bar.getBoundingClientRect();
                return { left, right, top, bottom: top + 3 } });
            const range = document.createRange();
            const words = [...document.querySelectorAll("#read p > span:first-child")].flatMap((content) => {
                range.selectNodeContents(content);
                return [...range.getClientRects()].filter((one) => one.width > 0)
                    .map(({ left, right, top, bottom }) => ({ left, right, top: top + 3, bottom: bottom - 1 })) });
            return { bars, names: [...document.querySelectorAll(".name")].map(box), words };
        }"""
    )
    assert len(boxes["bars"]) > 12

    def apart(one: dict[str, float], other: dict[str, float]) -> bool:
        return (
            one["right"] <= other["left"] + 1
            or other["right"] <= one["left"] + 1
            or one["bottom"] <= other["top"] + 1
            or other["bottom"] <= one["top"] + 1
        )

    drawn = boxes["bars"] + boxes["names"]
    for number, one in enumerate(drawn):
        assert all(apart(one, other) for other in drawn[number + 1 :])
        assert all(apart(one, word) for word in boxes["words"])


def test_a_nested_entity_is_a_mark_inside_a_mark(page: Page) -> None:
    show(page, DISTRICT, DISTRICT_LABELS, overlap="nested")
    assert page.locator("mark mark").count() >= 1
    inner, outer = page.locator("mark mark").first, page.locator("mark:has(mark)").first
    assert inner.text_content() in str(outer.text_content())
    assert (
        page.locator("#read").evaluate(
            "one => [...one.querySelectorAll('p > span:first-child')].map(p => p.textContent).join('\\n')"
        )
        == DISTRICT
    )


def test_a_click_shows_the_scores_of_other_labels(page: Page, embedded: Extractor) -> None:
    show(page, TEXT, [*LABELS, "profession"])
    page.locator("mark", has_text="Oslo").click()
    expect(page.locator("#details-title")).to_have_text("Oslo")
    expect(page.locator("#details-where")).to_have_text("Characters 22 to 26")
    rows = page.locator("#scores button[aria-pressed]").all_inner_texts()
    scores = dict(row.split("\n") for row in rows)
    assert scores.keys() == {*LABELS, "profession"}
    (oslo,) = [one for one in embedded.extract(TEXT, [*LABELS, "profession"]) if one.text == "Oslo"]
    assert float(scores["city"]) == pytest.approx(oslo.score, abs=0.01)
    others = [float(score.removeprefix("< ")) for label, score in scores.items() if label != "city"]
    assert max(others) < oslo.score


def test_light_and_dark(browser: Browser, address: str) -> None:
    def brightness(page: Page) -> float:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(float, re.findall(r"[\d.]+", colour)[:3]))

    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(address)
    switch = page.get_by_role("button", name="Dark")
    assert brightness(page) < 150
    expect(switch).to_have_attribute("aria-pressed", "true")
    switch.click()
    assert brightness(page) > 600
    page.reload()
    assert brightness(page) > 600, "the choice is kept"
    context.close()


def test_bars_follow_the_size_of_the_window(page: Page) -> None:
    show(page, f"{TEXT} {TEXT}", LABELS)
    page.get_by_role("button", name="Edit text").click()
    page.set_viewport_size({"width": 700, "height": 900})  # nothing can be measured now
    page.keyboard.press("Control+Enter")
    wait_for_entities(page)
    for width in (700, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        left = "elements => elements.map(one => one.getClientRects()[0].left)"
        marks, names = page.locator("#read mark").evaluate_all(left), page.locator("#read .name").evaluate_all(left)
        assert names == pytest.approx(marks, abs=3)


def test_a_phone_needs_no_horizontal_scrolling(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    show(page, TEXT + " " + "https://example.org/" + "a" * 200, LABELS)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("mark").last.click()
    expect(page.locator("#details")).to_be_in_viewport()
    mark, details = page.locator("mark").last.bounding_box(), page.locator("#details").bounding_box()
    assert mark is not None
    assert details is not None
    assert 0 <= mark["y"] <= details["y"] - mark["height"], "the details do not cover what they are about"


# --- safety and accessibility


def test_markup_in_texts_labels_and_links_stays_text(page: Page) -> None:
    attack = "<img src=x onerror=alert(1)> Tom flew to Paris."
    show(page, attack, ["person", "<script>alert(1)</script>"])
    assert page.locator("#read img").count() == 0
    assert page.locator("#chips script").count() == 0
    expect(page.locator("#chips .label").last).to_have_text("<script>alert(1)</script>")


def test_nothing_is_loaded_from_elsewhere(page: Page, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    show(page, TEXT, LABELS)
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith((address, "about:", "data:", "blob:"))] == []


def check_accessibility(page: Page, state: str) -> None:
    page.evaluate(axe_core())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    problems = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found["violations"]]
    assert problems == [], state


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    check_accessibility(page, "empty")
    show(page, DISTRICT, DISTRICT_LABELS, overlap="nested")
    check_accessibility(page, "entities")
    page.locator("mark").first.click()
    check_accessibility(page, "details")
    select_text(page, "她住", DISTRICT)
    check_accessibility(page, "menu")
    page.keyboard.press("Escape")
    page.locator("#chips .chip").first.click()
    check_accessibility(page, "label dialog")
    page.get_by_role("button", name="Cancel").click()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Shortcuts")).to_be_visible()
    check_accessibility(page, "help")
    page.get_by_role("button", name="Close", exact=True).last.click()
    page.get_by_label("Format").select_option("CoNLL")
    page.get_by_role("button", name="Download").click()
    check_accessibility(page, "error")
