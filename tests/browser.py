"""A browser and a running service, for tests of the page."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright. Fix: pip install playwright")

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = "ONOMA_CHROMIUM"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
AXE_VERSION = "4.14.0"
ROOT = Path(__file__).parent.parent
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_START_SECONDS = 90


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
def running_service(*options: str) -> Iterator[str]:
    """`onoma serve` with the embedded model on a free port; gives its address and ends it afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "onoma", "serve", "--port", str(port), "--log-level", "warning", *options]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(process, address, log)
            yield address
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait_until_ready(process: subprocess.Popen[bytes], address: str, log: TextIO) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log.seek(0)
            raise RuntimeError(f"onoma serve ended: {log.read()[-2000:]}")
        try:
            urllib.request.urlopen(f"{address}/readyz", timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"onoma serve was not ready after {_START_SECONDS} s")
