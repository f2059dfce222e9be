"""Make the screenshots of the page: python docs/screenshots.py http://127.0.0.1:8000 (a running `onoma serve`)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent / "images" / "serve"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MOST_BYTES = 200_000


class Shot(NamedTuple):
    """A picture: an example of the page, in a theme, with one entity selected if `mention` is given."""

    name: str
    example: str
    theme: str
    mention: str | None = None
    size: tuple[int, int] = (1280, 960)


SHOTS = (
    Shot("english-light", "News", "light", "University of Bergen"),
    Shot("english-dark", "Biology", "dark", "IL-2 receptor alpha promoter"),
    Shot("chinese-light", "新闻", "light", "上海市浦东新区"),
    Shot("chinese-dark", "新闻", "dark"),
    Shot("rare-characters", "生僻字 😀", "light", "𠮷田太郎"),
    Shot("phone", "Medicine", "light", None, (390, 844)),
)


def show_example(page: Page, shot: Shot) -> None:
    """Choose an example, wait for its entities and select one."""
    page.get_by_role("button", name=shot.example, exact=True).click()
    page.get_by_role("status").get_by_text("Found").wait_for()
    if shot.mention is not None:
        page.locator("#list").get_by_role("option").filter(has_text=shot.mention).first.click()
    if shot.size[0] < 600:
        page.evaluate("document.querySelector('.text-card').scrollIntoView()")
    page.evaluate("document.querySelector('#status').textContent = ''")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The chromium of the machine."""
    path = os.environ.get("ONOMA_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no chromium was found. Fix: apt-get install chromium (Debian), or set ONOMA_CHROMIUM to its path")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def shrink(file: Path) -> None:
    """Write a picture with 256 colours; one that is too large for the repository is an error."""
    Image.open(file).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    size = file.stat().st_size
    print(f"{file} ({size:,} bytes)")
    if size > MOST_BYTES:
        sys.exit(f"{file} is too large for the repository. Fix: make its window smaller")


def main(address: str) -> None:
    """Write all pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with open_browser() as browser:
        for shot in SHOTS:
            width, height = shot.size
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=shot.theme)
            page.goto(address)
            show_example(page, shot)
            file = IMAGES / f"{shot.name}.png"
            page.screenshot(path=file)
            page.close()
            shrink(file)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__))
