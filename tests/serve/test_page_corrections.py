"""The page: corrections by mouse, touch and keyboard, and their offsets."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, Page, expect

from onoma import Extractor
from serve.page_driver import (
    ASTRAL,
    CHINESE_LABELS,
    LABELS,
    NESTED,
    NESTED_LABELS,
    TEXT,
    link,
    mentions,
    point_in_text,
    saved,
    select_text,
    set_threshold,
    show,
    shown,
    spans,
    wait_for_entities,
)

pytestmark = pytest.mark.slow


# --- corrections by mouse


def test_selected_text_becomes_an_entity(page: Page) -> None:
    show(page, TEXT, [*LABELS, "profession"])
    page.get_by_role("button", name="Remove profession").click()
    page.get_by_label("Add labels").fill("job")
    page.keyboard.press("Enter")
    wait_for_entities(page)
    before = set(shown(page))
    select_text(page, "entis", TEXT)  # whole words are taken
    page.get_by_role("menuitem", name="job").click()
    start = TEXT.index("dentist")
    assert (start, start + len("dentist"), "job") in shown(page)
    assert {one for one in shown(page) if one[2] != "job"} == {one for one in before if one[2] != "job"}
    expect(page.locator("#status")).to_have_text("Added “dentist” as job")


def test_a_double_click_labels_a_word(page: Page) -> None:
    show(page, TEXT, LABELS)
    page.mouse.dblclick(*point_in_text(page, TEXT.index("dentist") + 3))
    page.get_by_role("menuitem", name="person").click()
    assert "dentist" in mentions(page)


def test_a_selection_on_a_touch_screen_is_labelled(browser: Browser, address: str) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(link(address, TEXT, LABELS))
    wait_for_entities(page)
    page.touchscreen.tap(*point_in_text(page, TEXT.index("dentist") + 3))
    page.evaluate(
        """() => { const node = [...document.querySelector("#read p > span").childNodes]
                .find((one) => one.textContent.includes("dentist"));
            const start = node.textContent.indexOf("dentist");
            getSelection().setBaseAndExtent(node, start, node, start + 7) }"""
    )
    page.get_by_role("menuitem", name="date").tap()
    assert "dentist" in mentions(page)
    context.close()


def test_an_entity_is_relabelled_removed_and_restored(page: Page) -> None:
    show(page, TEXT, LABELS)
    before = shown(page)
    oslo = next(one for one in before if TEXT[one[0] : one[1]] == "Oslo")
    page.locator("mark", has_text="Oslo").click()
    page.locator("#scores").get_by_role("button", name="date").click()
    assert (*oslo[:2], "date") in shown(page)
    page.get_by_role("button", name=re.compile("^Remove Del")).click()
    assert not [one for one in shown(page) if one[:2] == oslo[:2]]
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Undo").click()
    assert shown(page) == before
    page.get_by_role("button", name="Redo").click()
    assert (*oslo[:2], "date") in shown(page)


def test_an_edge_is_dragged(page: Page) -> None:
    show(page, TEXT, LABELS)
    page.locator("mark", has_text="Ana Costa").click()
    handle = page.locator(".handle.start").bounding_box()
    assert handle is not None
    page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    page.mouse.down()
    page.mouse.move(*point_in_text(page, TEXT.index("dentist") + 1), steps=6)
    page.mouse.up()
    assert "dentist Ana Costa" in mentions(page)
    assert "Ana Costa" not in mentions(page)


def test_corrections_outlive_the_threshold_and_changes_of_the_text(page: Page) -> None:
    show(page, TEXT, LABELS)
    page.locator("mark", has_text="Oslo").click()
    page.keyboard.press("Delete")
    select_text(page, "dentist", TEXT)
    page.keyboard.press("1")
    for threshold in (0.02, 0.99):
        set_threshold(page, threshold)
        assert "dentist" in mentions(page)
        assert "Oslo" not in mentions(page)
    page.get_by_role("button", name="Edit text").click()
    page.locator("#input").fill("😀 Yesterday, " + TEXT)
    page.keyboard.press("Control+Enter")
    wait_for_entities(page)
    assert "dentist" in mentions(page)
    assert "Oslo" not in mentions(page)


def test_other_spans_in_the_same_place_can_be_chosen(page: Page) -> None:
    show(page, NESTED, NESTED_LABELS, overlap="nested", threshold="0.3")
    page.locator("mark", has_text="p53").last.click()
    choice = page.locator("#scores button:not([aria-pressed])").first
    wanted = str(choice.locator(".label").evaluate("one => one.firstChild.textContent"))
    choice.click()
    expect(page.locator("#details-title")).to_have_text(wanted)
    assert wanted in mentions(page)


# --- corrections by keyboard


def test_everything_can_be_corrected_with_the_keyboard(page: Page) -> None:
    show(page, TEXT, LABELS)
    page.locator("#read").focus()
    page.keyboard.press("Control+Home")
    for _ in range(10):  # "with the dentist" are words 9 to 11
        page.keyboard.press("Control+ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Control+Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    start = TEXT.index("dentist")
    assert (start, start + 7, "city") in shown(page)

    page.keyboard.press("Enter")  # the cursor is in the entity: its row in the list
    expect(page.locator("#list")).to_be_focused()
    page.keyboard.press("3")
    assert (start, start + 7, "date") in shown(page)
    page.keyboard.press("ArrowRight")
    assert "dentist Ana" in mentions(page)
    page.keyboard.press("Shift+ArrowLeft")
    assert "the dentist Ana" in mentions(page)
    page.keyboard.press("Alt+ArrowLeft")
    assert "the dentist An" in mentions(page)
    page.keyboard.press("Delete")
    assert "the dentist An" not in mentions(page)
    for _ in range(6):
        page.keyboard.press("Control+z")
    assert "dentist" not in mentions(page)
    assert "Ana Costa" in mentions(page)
    page.keyboard.press("Control+Shift+z")
    assert (start, start + 7, "city") in shown(page)


def test_the_list_is_read_with_arrows(page: Page) -> None:
    show(page, TEXT, LABELS)
    page.locator("#list").focus()
    for number, mention in enumerate(mentions(page)):
        if number:
            page.keyboard.press("ArrowDown")
        expect(page.locator("#details-title")).to_have_text(mention)
        active = page.locator("#list").get_attribute("aria-activedescendant")
        expect(page.locator(f"#{active} .mention")).to_have_text(mention)
    page.keyboard.press("Escape")
    expect(page.locator("#read")).to_be_focused()
    expect(page.locator("#details")).to_be_hidden()


def test_a_click_in_the_list_selects_what_was_clicked(page: Page) -> None:
    show(page, TEXT, LABELS)
    for mention in reversed(mentions(page)):
        page.locator("#list").get_by_role("option").filter(has_text=mention).click()
        expect(page.locator("#details-title")).to_have_text(mention)


def test_entities_are_visited_from_the_text(page: Page) -> None:
    show(page, TEXT, LABELS)
    page.locator("#read").focus()
    page.keyboard.press("Control+Home")
    visited = []
    for _ in mentions(page):
        page.keyboard.press("n")
        visited.append(page.locator("#details-title").text_content())
    assert visited == mentions(page)
    page.keyboard.press("p")
    expect(page.locator("#details-title")).to_have_text(mentions(page)[-2])


def test_labels_are_moved_and_removed_with_the_keyboard(page: Page) -> None:
    show(page, TEXT, LABELS)
    chips = page.locator("#chips .chip .label")
    page.locator("#chips .chip").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    assert chips.all_text_contents() == ["city", "person", "date"]
    expect(page.locator("#chips .chip").nth(1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Delete")
    assert chips.all_text_contents() == ["city", "person"]
    wait_for_entities(page)
    assert {label for *_, label in shown(page)} == {"city", "person"}


def test_focus_follows_the_order_of_the_page(page: Page) -> None:
    show(page, TEXT, LABELS)
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    page.locator("#skip").focus()
    order = ["skip"]
    for _ in range(22):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.name || document.activeElement.className"
            )
        )
    order = order[: order.index("list") + 1]
    wanted = [
        "skip",
        "share",
        "help",
        "theme",
        "new-label",
        "threshold",
        "preset",
        "overlap",
        "extract",
        "open",
        "edit",
        "read",
        "format",
        "copy",
        "download",
        "save-training",
        "copy-command",
        "list",
    ]
    assert [one for one in order if one in wanted] == wanted


# --- offsets


def test_offsets_count_code_points(page: Page, embedded: Extractor) -> None:
    show(page, ASTRAL, CHINESE_LABELS)
    assert shown(page) == spans(embedded.extract(ASTRAL, CHINESE_LABELS))
    assert {ASTRAL[start:end] for start, end, _ in shown(page)} >= {"𠮷田太郎", "复旦大学"}
    select_text(page, "见面", ASTRAL)
    page.keyboard.press("2")
    start = ASTRAL.index("见面")
    assert (start, start + 2, "城市") in shown(page)
    select_text(page, "🎉", ASTRAL)
    page.keyboard.press("3")
    place = ASTRAL.index("🎉")
    assert (place, place + 1, "大学") in shown(page)
    record = json.loads(saved(page, "Save corrections.jsonl"))
    assert record["text"] == ASTRAL
    assert {"start": start, "end": start + 2, "label": "城市"} in record["entities"]
    assert {ASTRAL[one["start"] : one["end"]] for one in record["entities"]} >= {"𠮷田太郎", "见面", "🎉"}


def test_the_cursor_steps_over_whole_characters(page: Page) -> None:
    text = "a👩‍👩‍👧𠮷é b"
    show(page, f"{text} {TEXT}", LABELS)
    page.locator("#read").focus()
    page.keyboard.press("Control+Home")
    selected = []
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
        selected.append(page.evaluate("getSelection().toString()"))
    assert selected == ["a", "a👩‍👩‍👧", "a👩‍👩‍👧𠮷", "a👩‍👩‍👧𠮷é"]
