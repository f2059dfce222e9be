"""The page of the service, as people use it: a real browser, the real service, the embedded model."""

from __future__ import annotations

import io
import json
import re
import shlex
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import onoma
from browser import axe_core, opened_browser, running_service
from onoma.data import read
from onoma.entities import Entity
from playwright.sync_api import Browser, Page, Request, Route, expect
from test_docs import check_command

pytestmark = pytest.mark.slow

TEXT = "Maria Silva flew from Oslo to New York with the dentist Ana Costa on Friday."
LABELS = ["person", "city", "date"]
NESTED = "The IL-2 receptor alpha promoter and the human p53 gene were studied in mice with lung cancer."
NESTED_LABELS = ["gene", "protein", "disease", "body part", "species"]
DISTRICT = "她住在上海市浦东新区，毕业于中国人民大学第一附属中学。"
DISTRICT_LABELS = ["城市", "地区", "学校"]
ASTRAL = "😀 欧阳喆和𠮷田太郎在上海见面 🎉，参观了复旦大学。"
CHINESE_LABELS = ["人名", "城市", "大学"]
Span = tuple[int, int, str]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_service() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as opened:
        yield opened


@pytest.fixture
def problems() -> list[str]:
    """Errors of scripts and messages of the browser, such as violations of the content security policy."""
    return []


@pytest.fixture
def page(browser: Browser, address: str, problems: list[str]) -> Iterator[Page]:
    """The page, opened; a test fails if a script of it does."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", accept_downloads=True
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    opened = context.new_page()
    opened.set_default_timeout(10_000)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.goto(address)
    yield opened
    context.close()
    assert problems == []


@pytest.fixture(scope="module")
def ner() -> onoma.Extractor:
    return onoma.load()


def link(address: str, text: str, labels: Sequence[str], **settings: str) -> str:
    from urllib.parse import urlencode

    return f"{address}/#" + urlencode({"text": text, "labels": ",".join(labels), **settings})


def show(page: Page, text: str, labels: Sequence[str], **settings: str) -> None:
    """Open a link with a text and wait for its entities."""
    address = page.url.split("#")[0].rstrip("/")
    page.goto("about:blank")
    page.goto(link(address, text, labels, **settings))
    wait_for_entities(page)


def wait_for_entities(page: Page) -> None:
    expect(page.locator("#status")).to_contain_text("Found", timeout=30_000)


def shown(page: Page) -> list[Span]:
    """The entities in the list, with offsets."""
    rows = page.locator("#list [data-span]").evaluate_all(
        "rows => rows.map(row => [row.dataset.span, row.querySelector('.label').textContent])"
    )
    return [(*map(int, span.split("-")), label) for span, label in rows]  # type: ignore[misc]


def spans(entities: Sequence[Entity]) -> list[Span]:
    return [(one.start, one.end, one.label) for one in entities]


def mentions(page: Page) -> list[str]:
    return page.locator("#list .mention").all_text_contents()


def set_threshold(page: Page, value: float) -> None:
    page.locator("#threshold").fill(str(value))


def point_in_text(page: Page, index: int, edge: str = "left") -> tuple[float, float]:
    """Where a character of the shown text is in the window; `index` counts UTF-16 units."""
    rectangle = page.evaluate(
        """index => {
            const walker = document.createTreeWalker(document.querySelector("#read"), NodeFilter.SHOW_TEXT, {
                acceptNode: (node) => node.parentElement.closest(".lanes")
                    ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT });
            while (walker.nextNode()) {
                const node = walker.currentNode;
                if (index < node.length) {
                    const range = document.createRange();
                    range.setStart(node, index);
                    range.setEnd(node, index + 1);
                    const { left, right, top, bottom } = range.getBoundingClientRect();
                    return { left, right, middle: (top + bottom) / 2 };
                }
                index -= node.length;
            }
        }""",
        index,
    )
    return rectangle[edge] + (1 if edge == "left" else -1), rectangle["middle"]


def select_text(page: Page, text: str, within: str) -> None:
    """Select a part of the text with the mouse."""
    start = len(within[: within.index(text)].encode("utf-16-le")) // 2
    units = len(text.encode("utf-16-le")) // 2
    page.mouse.move(*point_in_text(page, start))
    page.mouse.down()
    page.mouse.move(*point_in_text(page, start + units - 1, "right"), steps=4)
    page.mouse.up()
    expect(page.get_by_role("menu")).to_be_visible()


def saved(page: Page, button: str) -> str:
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


# --- extraction and thresholds


def test_a_pasted_text_is_marked_as_the_library_would(page: Page, ner: onoma.Extractor) -> None:
    page.get_by_role("textbox", name="Text", exact=True).fill(TEXT)
    page.get_by_label("Add labels").fill("person, city，date")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    wait_for_entities(page)
    wanted = ner.extract(TEXT, LABELS)
    assert shown(page) == spans(wanted)
    assert mentions(page) == [one.text for one in wanted]
    assert page.locator("#read mark").all_text_contents() == [one.text for one in wanted]
    expect(page.locator("#status")).to_have_text(f"Found {len(wanted)} entities")


def test_the_slider_filters_without_a_request(page: Page, ner: onoma.Extractor) -> None:
    show(page, NESTED, NESTED_LABELS)
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request))
    for overlap in ("flat", "nested", "any"):
        page.locator("#overlap").get_by_text(overlap, exact=False).click()
        for threshold in (0.02, 0.1, 0.2, 0.4, 0.9):
            set_threshold(page, threshold)
            wanted = ner.extract(NESTED, NESTED_LABELS, threshold=threshold, overlap=overlap)  # type: ignore[arg-type]
            assert shown(page) == spans(wanted), (overlap, threshold)
    assert [one for one in sent if "/v1/" in one.url] == []
    expect(page.locator("#threshold-hint")).to_have_text("Set by you")


@pytest.mark.parametrize("preset", ["precise", "complete"])
def test_presets_are_those_of_the_model(page: Page, ner: onoma.Extractor, preset: Any) -> None:
    show(page, NESTED, NESTED_LABELS)
    page.get_by_text(preset.capitalize(), exact=True).click()
    wait_for_entities(page)
    expect(page.locator("#threshold-hint")).to_contain_text(preset)
    assert shown(page) == spans(ner.extract(NESTED, NESTED_LABELS, threshold=preset))


def test_a_text_in_two_languages_is_decoded_with_the_thresholds_of_both_models(
    page: Page, ner: onoma.Extractor
) -> None:
    text = f"{TEXT}\n林晓梅在北京和上海见过陈国栋教授。"
    show(page, text, LABELS)
    assert shown(page) == spans(ner.extract(text, LABELS))
    page.get_by_text("Nested", exact=True).click()
    assert shown(page) == spans(ner.extract(text, LABELS, overlap="nested"))


def test_descriptions_examples_and_thresholds_of_labels_are_used(page: Page, ner: onoma.Extractor) -> None:
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
    wanted = spans(ner.extract(text, [label]))
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
    show(page, f"{NESTED}\n\n{NESTED} {TEXT}", [*NESTED_LABELS, *LABELS], overlap=overlap, threshold="0.03")
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
    assert page.locator("#read").evaluate("one => [...one.querySelectorAll('p > span:first-child')].map(p => p.textContent).join('\\n')") == DISTRICT


def test_a_click_shows_the_scores_of_other_labels(page: Page, ner: onoma.Extractor) -> None:
    show(page, TEXT, [*LABELS, "profession"])
    page.locator("mark", has_text="Oslo").click()
    expect(page.locator("#details-title")).to_have_text("Oslo")
    expect(page.locator("#details-where")).to_have_text("Characters 22 to 26")
    rows = page.locator("#scores button[aria-pressed]").all_inner_texts()
    scores = {label: score for label, score in (row.split("\n") for row in rows)}
    assert scores.keys() == {*LABELS, "profession"}
    (oslo,) = [one for one in ner.extract(TEXT, [*LABELS, "profession"]) if one.text == "Oslo"]
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
    show(page, NESTED, NESTED_LABELS, overlap="nested")
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
        order.append(page.evaluate("document.activeElement.id || document.activeElement.name || document.activeElement.className"))
    order = order[: order.index("list") + 1]
    wanted = ["skip", "share", "help", "theme", "new-label", "threshold", "preset", "overlap", "extract", "open", "edit", "read", "format", "copy", "download", "save-training", "copy-command", "list"]
    assert [one for one in order if one in wanted] == wanted


# --- offsets


def test_offsets_count_code_points(page: Page, ner: onoma.Extractor) -> None:
    show(page, ASTRAL, CHINESE_LABELS)
    assert shown(page) == spans(ner.extract(ASTRAL, CHINESE_LABELS))
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


# --- saving


@pytest.mark.parametrize("text_and_labels", [(TEXT, LABELS), (ASTRAL, CHINESE_LABELS)], ids=["english", "chinese"])
@pytest.mark.parametrize("name", ["JSONL", "CoNLL"])
def test_files_are_read_by_the_library(
    page: Page, tmp_path: Path, ner: onoma.Extractor, name: str, text_and_labels: tuple[str, list[str]]
) -> None:
    text, labels = text_and_labels
    show(page, text, labels)
    page.get_by_label("Format").select_option(name)
    file = tmp_path / f"saved.{name.lower()}"
    file.write_text(saved(page, "Download"), encoding="utf-8")
    (document,) = read(file)
    assert document.text == text
    assert spans(document.entities) == spans(ner.extract(text, labels))


def test_json_and_html(page: Page, ner: onoma.Extractor) -> None:
    text = f"<b>{NESTED}</b> & more"
    show(page, text, NESTED_LABELS, overlap="nested")
    wanted = ner.extract(text, NESTED_LABELS, overlap="nested")
    page.get_by_label("Format").select_option("JSON")
    (record,) = json.loads(saved(page, "Download"))
    assert record["text"] == text
    assert [(one["text"], one["label"]) for one in record["entities"]] == [(one.text, one.label) for one in wanted]
    assert [one["score"] for one in record["entities"]] == pytest.approx([one.score for one in wanted], abs=2e-3)
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator("#status")).to_have_text("Copied the results")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == [record]
    page.get_by_label("Format").select_option("HTML")
    html = saved(page, "Download")
    assert html.count("<mark") == len(wanted) + len({one.label for one in wanted})
    saved_page = page.context.new_page()
    saved_page.set_content(html)
    saved_page.evaluate("document.querySelectorAll('article mark span').forEach(one => one.remove())")
    assert saved_page.locator("article p").text_content() == text


def test_conll_refuses_what_columns_cannot_hold(page: Page) -> None:
    show(page, DISTRICT, DISTRICT_LABELS, overlap="nested")
    page.get_by_label("Format").select_option("CoNLL")
    page.get_by_role("button", name="Download").click()
    expect(page.get_by_role("alert").first).to_contain_text("CoNLL columns cannot hold mentions that overlap")
    expect(page.get_by_role("alert").first).to_contain_text("Set overlap to flat, or save JSONL.")


def test_training_data_and_its_command(page: Page, tmp_path: Path) -> None:
    show(page, TEXT, LABELS)
    file = tmp_path / "corrections.jsonl"
    file.write_text(saved(page, "Save corrections.jsonl"), encoding="utf-8")
    (document,) = read(file)
    assert spans(document.entities) == shown(page)
    page.get_by_role("button", name="Copy command").click()
    expect(page.locator("#status")).to_have_text("Copied the command")
    training, serving = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert training == "onoma train --start embedded --data corrections.jsonl --output runs/corrections"
    assert serving == "onoma serve --model corrections=runs/corrections/onnx"
    for command in (training, serving):
        check_command(shlex.split(command)[1:])


# --- state in the address


def test_a_reload_and_a_link_show_the_same(page: Page) -> None:
    show(page, ASTRAL, CHINESE_LABELS)
    select_text(page, "见面", ASTRAL)
    page.keyboard.press("2")
    set_threshold(page, 0.3)
    page.locator("#overlap").get_by_text("Any").click()
    before = shown(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#status")).to_have_text("Copied the link")
    shared = page.evaluate("navigator.clipboard.readText()")
    page.reload()
    wait_for_entities(page)
    assert shown(page) == before
    page.goto("about:blank")
    page.goto(shared)
    wait_for_entities(page)
    assert shown(page) == before
    expect(page.locator("#threshold-value")).to_have_text("0.30")


def test_descriptions_are_kept_in_the_address(page: Page) -> None:
    labels = [{"name": "drug, dose", "description": "a medicine", "examples": ["take [[aspirin]]"], "threshold": 0.2}]
    show(page, TEXT, [json.dumps(labels)])
    page.reload()
    wait_for_entities(page)
    page.locator("#chips .chip").click()
    assert page.get_by_label("Name", exact=True).input_value() == "drug, dose"
    assert page.get_by_label("Description, if").input_value() == "a medicine"
    assert page.get_by_label("Examples, one per line").input_value() == "take [[aspirin]]"


def test_a_damaged_address_is_harmless(page: Page) -> None:
    address = page.url.split("#")[0]
    damaged = "labels=%5B1%2Cnull%2C%7B%7D%5D&threshold=x&overlap=y&corrections=%5B%5B%5B%5B0%2C99999%2C%22a%22%5D%5D%5D%5D&text=Tom"
    page.goto("about:blank")
    page.goto(f"{address}#{damaged}")
    expect(page.locator("#input")).to_have_value("Tom")


# --- files and several texts


def drop(page: Page, *files: tuple[str, bytes]) -> None:
    """Drop files onto the page."""
    transfer = page.evaluate_handle(
        """files => { const transfer = new DataTransfer();
            for (const [name, content] of files)
                transfer.items.add(new File([Uint8Array.from(content)], name));
            return transfer }""",
        [[name, list(content)] for name, content in files],
    )
    page.dispatch_event("#text-title", "dragover", {"dataTransfer": transfer})
    expect(page.locator("#drop")).to_be_visible()
    page.dispatch_event("#text-title", "drop", {"dataTransfer": transfer})


def docx(xml: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", xml)
    return content.getvalue()


WORD = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{}</w:body></w:document>'
PARAGRAPH = "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>{}</w:t></w:r><w:r><w:tab/><w:t>end</w:t></w:r></w:p>"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.txt", "Tom 😀\r\nParis".encode(), "Tom 😀\nParis"),
        ("b.txt", "马云".encode("utf-16"), "马云"),
        ("c.jsonl", b'{"text": "Tom"}\n\n', "Tom"),
        ("d.docx", docx(WORD.format(PARAGRAPH.format("Tom &amp; Ann") * 2)), "Tom & Ann\tend\nTom & Ann\tend"),
    ],
)
def test_dropped_files_are_opened(page: Page, name: str, content: bytes, text: str) -> None:
    drop(page, (name, content))
    expect(page.locator("#input")).to_have_value(text)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", b"%PDF-1.7", "PDF files cannot be read here. Save a.pdf as text first"),
        ("b.txt", b"\xff\xfa\x00", "b.txt is not encoded in UTF-8"),
        ("c.jsonl", b'{"text": "Tom"}\n{"text": 3}', 'c.jsonl, line 2: there is no "text"'),
        ("d.jsonl", b'{"text": "Tom", "entities": [{"start": 0, "end": 9, "label": "x"}]}', "does not lie in the text"),
        ("e.docx", b"PK\x03\x04 and nothing else", "e.docx is not a docx file, or is damaged"),
        ("f.docx", docx(WORD.format("<w:p>" + " " * 30_000_000)), "f.docx unpacks to more than 20 MB"),
        ("g.docx", docx("<not><well formed"), "g.docx is damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 9 else "",
)
def test_files_that_cannot_be_read_are_refused(
    page: Page, problems: list[str], name: str, content: bytes, message: str
) -> None:
    drop(page, (name, content))
    expect(page.get_by_role("alert").first).to_contain_text(message)
    problems[:] = [one for one in problems if "inline style" not in one]  # of the browser's own report on bad XML


def test_several_texts_are_read_checked_and_saved(page: Page, ner: onoma.Extractor) -> None:
    texts = [TEXT, "Tom lives in Paris.", "Nobody was there.", ASTRAL]
    page.get_by_label("Add labels").fill("person, city")
    page.keyboard.press("Enter")
    lines = "\n".join(json.dumps({"text": text}) for text in texts)
    drop(page, ("texts.jsonl", lines.encode()))
    expect(page.locator("#page-number")).to_have_text("1 of 4")
    wait_for_entities(page)
    page.locator("#read").focus()
    for number, text in enumerate(texts):
        expect(page.locator("#page-number")).to_have_text(f"{number + 1} of 4")
        assert shown(page) == spans(ner.extract(text, ["person", "city"])), text
        page.keyboard.press("j")
    page.get_by_role("button", name="Save corrections.jsonl").click()
    expect(page.get_by_role("alert").first).to_contain_text("No text is checked yet")
    page.locator("#read").focus()
    page.keyboard.press("k")
    page.keyboard.press("c")
    expect(page.get_by_label("Checked")).to_be_checked()
    page.get_by_role("button", name="Previous text").click()
    page.locator("mark", has_text="Tom").click()
    page.keyboard.press("Delete")
    records = [json.loads(line) for line in saved(page, "Save corrections.jsonl").splitlines()]
    assert [one["text"] for one in records] == texts[1:3]
    assert "Tom" not in [texts[1][one["start"] : one["end"]] for one in records[0]["entities"]]
    expect(page.locator("#train-hint")).to_contain_text("2 of 4 texts are checked")


def test_a_saved_file_is_opened_again_as_it_was(page: Page) -> None:
    entities = [{"start": 12, "end": 17, "label": "town"}]
    drop(page, ("saved.jsonl", json.dumps({"text": "Tom flew to Paris.", "entities": entities}).encode()))
    expect(page.locator("mark")).to_have_text("Paris")
    assert shown(page) == [(12, 17, "town")]
    assert json.loads(saved(page, "Save corrections.jsonl"))["entities"] == entities
    page.get_by_label("Add labels").fill("person")
    page.keyboard.press("Enter")
    wait_for_entities(page)
    assert shown(page) == [(12, 17, "town")], "what the model finds is not mixed with the annotation of a file"
    page.get_by_role("button", name="Show what the model finds as well").click()
    expect(page.locator("#list .mention")).to_have_text(["Tom", "Paris"])


def test_the_lines_of_a_text_become_texts(page: Page) -> None:
    page.locator("#input").fill(f"{TEXT}\n\n  Tom lives in Paris.\nNobody was there.\n")
    page.get_by_label("Add labels").fill("person, city")
    page.get_by_role("button", name="One text per line").click()  # the labels were not confirmed
    expect(page.locator("#page-number")).to_have_text("1 of 3")
    page.get_by_role("button", name="Extract").click()
    wait_for_entities(page)
    page.get_by_role("button", name="Next text").click()
    expect(page.locator("#read")).to_contain_text("Tom lives in Paris.")
    assert [label for *_, label in shown(page)] == ["person", "city"]


# --- errors


def test_missing_texts_and_labels_are_named(page: Page) -> None:
    alert = page.get_by_role("alert").first
    page.get_by_role("button", name="Extract").click()
    expect(alert).to_contain_text("There is no text. Paste one, drop a file, or try an example.")
    page.locator("#input").fill(TEXT)
    page.get_by_role("button", name="Extract").click()
    expect(alert).to_contain_text("There are no labels. Name what to look for")
    page.get_by_role("button", name="Close", exact=True).click()
    expect(alert).to_be_hidden()


def test_errors_of_the_service_say_what_to_do(page: Page, problems: list[str]) -> None:
    page.locator("#input").fill(TEXT)
    page.get_by_label("Add labels").fill("dose")
    page.keyboard.press("Enter")
    page.locator("#chips .chip").click()
    page.get_by_label("Examples, one per line").fill("take [[40 mg daily")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Extract").click()
    expect(page.get_by_role("alert").first).to_contain_text("has [[ without ]]. Mark each mention as [[mention]].")
    assert len(problems) == 1  # the browser logs the status
    problems.clear()


def test_limits_of_the_service_are_named(page: Page, problems: list[str]) -> None:
    page.get_by_label("Add labels").fill("person")
    page.keyboard.press("Enter")
    page.locator("#input").fill("Tom flew. " * 60_000)
    page.get_by_role("button", name="Extract").click()
    alert = page.get_by_role("alert").first
    expect(alert).to_contain_text("The texts have too many characters (600,000); at most 500,000 are allowed")
    expect(alert).to_contain_text("split long ones.")
    problems.clear()


KEY = "open-sesame"


@pytest.fixture(scope="module")
def protected_address() -> Iterator[str]:
    """A service with an API key, two models and a low limit for candidates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONOMA_API_KEY", KEY)
        options = ("--model", "embedded", "--model", "second=embedded", "--max-candidate-characters", "100")
        with running_service(*options) as running:
            yield running


def test_a_key_is_asked_for_and_models_can_be_chosen(browser: Browser, protected_address: str) -> None:
    page = browser.new_page()
    page.goto(link(protected_address, TEXT, LABELS))
    dialog = page.get_by_role("dialog", name="API key")
    dialog.get_by_label("Key").fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("The service did not accept this key.")
    page.keyboard.press("Escape")
    expect(page.get_by_role("alert").first).to_contain_text("The service needs an API key. Press Extract to enter it.")
    page.get_by_role("button", name="Extract").click()
    dialog.get_by_label("Key").fill(KEY)
    page.keyboard.press("Enter")
    wait_for_entities(page)
    page.reload()
    dialog.get_by_label("Key").fill(KEY)  # it is not stored
    page.keyboard.press("Enter")
    wait_for_entities(page)
    with page.expect_request("**/v1/extract") as request:
        page.get_by_label("Model").select_option("second")
    assert json.loads(request.value.post_data or "")["model"] == "second"
    page.context.close()


def test_a_text_that_is_too_long_for_candidates_is_read_again_for_each_threshold(
    browser: Browser, protected_address: str, ner: onoma.Extractor
) -> None:
    page, text = browser.new_page(), f"{TEXT}\n{TEXT}"
    page.goto(link(protected_address, text, LABELS))
    page.get_by_role("textbox", name="Key").fill(KEY)
    page.keyboard.press("Enter")
    wait_for_entities(page)
    for threshold in (0.05, 0.6):
        with page.expect_response("**/v1/extract"):
            set_threshold(page, threshold)
        wait_for_entities(page)
        assert shown(page) == spans(ner.extract(text, LABELS, threshold=threshold))
    page.context.close()


def answer_once(status: int, **options: Any) -> Callable[[Route], None]:
    """Answer the first request with an error, and hand on all others."""
    answered: list[bool] = []

    def handle(route: Route) -> None:
        if answered:
            route.continue_()
        else:
            answered.append(True)
            route.fulfill(status=status, **options)

    return handle


def test_a_busy_service_is_asked_again(page: Page, problems: list[str]) -> None:
    page.route("**/v1/extract", answer_once(429, headers={"Retry-After": "1"}, json={"error": {"code": "busy", "message": "busy"}}))
    show(page, TEXT, LABELS)
    assert len(shown(page)) > 3
    problems.clear()


def test_a_service_that_is_gone_is_named(page: Page, problems: list[str]) -> None:
    show(page, TEXT, LABELS)
    page.route("**/v1/extract", lambda route: route.abort())
    page.get_by_role("button", name="Extract").click()
    alert = page.get_by_role("alert").first
    expect(alert).to_contain_text("The service does not answer. Check that `onoma serve` is still running")
    page.unroute("**/v1/extract")
    page.get_by_role("button", name="Extract").click()
    wait_for_entities(page)
    expect(alert).to_be_hidden()
    problems.clear()


def test_reading_can_be_stopped(page: Page) -> None:
    page.route("**/v1/extract", lambda route: None)  # never answered
    page.locator("#input").fill(TEXT)
    page.get_by_label("Add labels").fill("person")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Extract").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Extract").first).to_be_visible()
    expect(page.locator("#notice")).to_contain_text("has not been read yet")


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
