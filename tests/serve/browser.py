"""A browser, and what tests of the page need besides."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright. Fix: pip install playwright")

from playwright.sync_api import Browser, sync_playwright

from serve.services import as_command

CHROMIUM = "ONOMA_CHROMIUM"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
AXE_VERSION = "4.14.0"
ROOT = Path(__file__).parents[2]
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str:
    """The path of a browser; without one, the test is skipped with a message that says how to get one."""
    found = os.environ.get(CHROMIUM) or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(f"no chromium was found. Fix: apt-get install chromium (Debian), or set {CHROMIUM} to its path")
    return found


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """A browser without windows."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


def axe_core() -> str:
    """The source of axe-core, fetched from npm once; without npm, the test is skipped."""
    file = ROOT / "build" / f"axe-core-{AXE_VERSION}.js"
    if not file.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("axe-core comes from npm, which was not found. Fix: apt-get install npm (Debian)")
        file.parent.mkdir(exist_ok=True)
        package = f"axe-core@{AXE_VERSION}"
        fetched = subprocess.run([npm, "pack", package, "--silent"], cwd=file.parent, capture_output=True, text=True)
        if fetched.returncode:
            pytest.skip(f"npm could not fetch {package}: {fetched.stderr.strip()[-300:]}")
        with tarfile.open(file.parent / f"axe-core-{AXE_VERSION}.tgz") as archive:
            member = archive.extractfile("package/axe.min.js")
            assert member is not None
            file.write_bytes(member.read())
    return file.read_text(encoding="utf-8")


@contextmanager
def command_address(*options: object, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of `onoma serve`, whose log is read, so that it never waits for a reader."""
    with as_command(*options, environment=environment) as running:
        assert running.process is not None
        threading.Thread(target=deque, args=(running.process.stderr, 0), daemon=True).start()
        yield running.url
