"""The examples of the README and of the documentation run as they stand and print what they show."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md"))
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = "#>"


def run_python(source: str, page: Path, line: int, namespace: dict[str, Any]) -> tuple[str, str]:
    """What a block prints, and what it says that it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + source, page, "exec"), namespace)
    shown = [row.removeprefix(SHOWN).removeprefix(" ") for row in source.splitlines() if row.startswith(SHOWN)]
    return printed.getvalue(), "".join(f"{row}\n" for row in shown)


def run_console(source: str) -> tuple[str, str]:
    """What a command (the first line) prints, and what the block says that it prints."""
    prompt, _, shown = source.partition("\n")
    program, *arguments = shlex.split(prompt.removeprefix("$ "))
    assert program == "onoma"
    command = [sys.executable, "-m", "onoma", *arguments]
    environment = os.environ | {"COLUMNS": "80", "PYTHONUTF8": "1"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=True)
    return done.stdout, shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "example"}
    for block in BLOCK.finditer(text):
        language, source = block.groups()
        line = text[: block.start()].count("\n") + 1
        printed, shown = run_console(source) if language == "console" else run_python(source, page, line, namespace)
        assert [row.rstrip() for row in printed.splitlines()] == shown.splitlines(), f"{page.name}, line {line}"


def test_the_readme_has_an_example_of_every_feature() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    without = [part for part in text.split("\n## ")[1:] if not BLOCK.search(part)]
    assert [part.partition("\n")[0] for part in without] == ["Install", "More"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, section in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} points to {target}"
        if section:
            titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert section in [title.lower().replace(" ", "-") for title in titles], f"{page.name} points to #{section}"
