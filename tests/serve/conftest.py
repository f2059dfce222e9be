from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import onoma
from onoma import Extractor
from serve.services import Running, in_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def embedded() -> Extractor:
    """The embedded model."""
    return onoma.load(threads=2)


@pytest.fixture(scope="session")
def service(embedded: Extractor) -> Iterator[Running]:
    """A service with the embedded model under two names."""
    with in_process({"embedded": embedded, "second": embedded}) as running:
        yield running


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of `onoma serve` with the embedded model."""
    from serve.browser import command_address

    with command_address() as running:
        yield running


@pytest.fixture(scope="module")  # while it is open, its event loop runs, and asyncio.run fails
def browser() -> Iterator[Browser]:
    """A browser, for tests of the page."""
    from serve.browser import opened_browser

    with opened_browser() as opened:
        yield opened


@pytest.fixture
def problems() -> list[str]:
    """Errors of scripts and messages of the browser, such as violations of the content security policy."""
    return []


@pytest.fixture
def page(browser: Browser, address: str, problems: list[str]) -> Iterator[Page]:
    """The page, opened; a test fails if a script of it does."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    opened = context.new_page()
    opened.set_default_timeout(10_000)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.goto(address)
    yield opened
    context.close()
    assert problems == []
