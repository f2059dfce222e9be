"""What people do on the page and what they see, for its tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from onoma.entities import Entity

TEXT = "Maria Silva flew from Oslo to New York with the dentist Ana Costa on Friday."
LABELS = ["person", "city", "date"]
NESTED = "The IL-2 receptor alpha promoter and the human p53 gene were studied in mice with lung cancer."
NESTED_LABELS = ["gene", "protein", "disease", "body part", "species"]
DISTRICT = "她住在上海市浦东新区，毕业于中国人民大学第一附属中学。"
DISTRICT_LABELS = ["城市", "地区", "学校"]
ASTRAL = "😀 欧阳喆和𠮷田太郎在上海见面 🎉，参观了复旦大学。"
CHINESE_LABELS = ["人名", "城市", "大学"]
Span = tuple[int, int, str]


def link(address: str, text: str, labels: Sequence[str], **settings: str) -> str:
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
