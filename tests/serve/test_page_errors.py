"""The page: errors say what is wrong and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from onoma import Extractor
from serve.browser import command_address
from serve.page_driver import LABELS, TEXT, link, set_threshold, show, shown, spans, wait_for_entities

pytestmark = pytest.mark.slow


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
    options = ("--model", "embedded", "--model", "second=embedded", "--max-candidate-characters", 100)
    with command_address(*options, environment={"ONOMA_API_KEY": KEY}) as running:
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
    browser: Browser, protected_address: str, embedded: Extractor
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
        assert shown(page) == spans(embedded.extract(text, LABELS, threshold=threshold))
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
    page.route(
        "**/v1/extract",
        answer_once(429, headers={"Retry-After": "1"}, json={"error": {"code": "busy", "message": "busy"}}),
    )
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
