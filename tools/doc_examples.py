"""Run the examples of README.md and docs/, and write what they print into the pages:

    python tools/doc_examples.py [PAGE...]

A change of the embedded model changes scores and sometimes mentions that examples show. Python blocks show what they
print in lines that begin with `#>`, console blocks below each command. Outputs that are still right are left as they
are: numbers of blocks with the mark `approx` may differ by 0.05. Read the changes before you commit them: a sentence
around an example may not be true any more. Pages in docs/lab tell what was tried with former versions and are not run.

The tests also run the lines of bash blocks, with the files of doc_files.py; only `pip install` is left out. Blocks with
the mark `not-run: REASON` are not run; the reason is one of REASONS.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if page.parent != DOCS / "lab")]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+")
SHOWN = "#>"
APPROXIMATE = "approx"
"""Mark of blocks that show scores: with weights in int8, these differ between processors."""
TOLERANCE = 0.05
NOT_RUN = "not-run: "
"""Mark of blocks that are not run; a reason follows."""
REASONS = {
    "installs packages",
    "trains a model",
    "needs a model that PyTorch runs",
    "needs corpora",
    "needs a cluster",
    "needs Docker",
    "starts a service",
    "needs a running service",
    "takes minutes",
    "measures the machine",
}
COLUMNS = "80"


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    mark: str
    source: str
    start: int  # of the source in the page
    line: int

    @property
    def is_run(self) -> bool:
        """Whether it is an example that can be run anywhere."""
        return not self.mark.startswith(NOT_RUN)


class Example(NamedTuple):
    """A part of a block that prints something."""

    code: str
    shown: str  # the text after the code that shows what it prints


def blocks(text: str, *languages: str) -> Iterator[Block]:
    """The blocks of a page in some languages."""
    for match in BLOCK.finditer(text):
        language, mark, source = match.groups()
        if language in languages:
            yield Block(language, mark.strip(), source, match.start(3), text[: match.start()].count("\n") + 1)


def examples(block: Block) -> list[Example]:
    """The parts of a block: their texts together are the block, after the `$ ` of commands."""
    if block.language == "console":
        commands = re.split(r"^\$ ", block.source, flags=re.MULTILINE)[1:]
        return [Example(code, shown) for code, _, shown in (one.partition("\n") for one in commands)]
    parts = re.split(rf"((?:^{SHOWN}.*\n)+)", block.source, flags=re.MULTILINE)
    return [Example(code, shown) for code, shown in zip(parts[::2], [*parts[1::2], ""], strict=True) if code or shown]


def run(block: Block, example: Example, page: Path, namespace: dict[str, Any]) -> str:
    """What an example prints."""
    if block.language == "console":
        return run_command(example.code)
    printed = io.StringIO()
    lines = block.line + block.source[: block.source.index(example.code)].count("\n")
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * lines + example.code, page, "exec"), namespace)
    return printed.getvalue()


def run_lines(block: Block) -> None:
    """Run the lines of a bash block; commands of `onoma` in this process, without starting Python for each."""
    for line in block.source.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["onoma"] and words[1] != "corpus" and not re.search(r" [|>] |\*", line):
            run_here(words)
        elif words and words[:2] != ["pip", "install"]:
            run_command(f"set -o pipefail; {line}")


def run_here(words: list[str]) -> None:
    """Run a command of `onoma` in this process."""
    from onoma.cli import main

    before, errors = sys.argv, io.StringIO()
    sys.argv = words
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            main()
    except SystemExit as stopped:
        if stopped.code:
            raise RuntimeError(f"{shlex.join(words)}\n{errors.getvalue()}") from stopped
    finally:
        sys.argv = before


def run_command(command: str) -> str:
    """What a command prints in a shell."""
    python = shlex.quote(sys.executable)
    shell = f'onoma() {{ {python} -m onoma "$@"; }}\npython() {{ {python} "$@"; }}\n{command}'
    environment = os.environ | {"COLUMNS": COLUMNS, "PYTHONUTF8": "1"}
    done = subprocess.run(["bash", "-c", shell], capture_output=True, encoding="utf-8", env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}\n{done.stderr}")
    return done.stdout


def is_shown(block: Block, example: Example, printed: str) -> bool:
    """Whether a page shows what an example prints."""
    shown = "\n".join(row.removeprefix(SHOWN).removeprefix(" ") for row in example.shown.splitlines())
    tolerance = TOLERANCE if block.mark == APPROXIMATE else 0.0
    return is_same(printed, example.shown if block.language == "console" else shown, tolerance)


def is_same(printed: str, shown: str, tolerance: float) -> bool:
    """Whether outputs agree; with a tolerance, decimal numbers may differ by that much."""
    got, wanted = ([row.rstrip() for row in text.rstrip().splitlines()] for text in (printed, shown))
    if not tolerance or got == wanted:
        return got == wanted
    if [NUMBER.sub("0.0", row) for row in got] != [NUMBER.sub("0.0", row) for row in wanted]:
        return False
    pairs = zip(NUMBER.findall("\n".join(got)), NUMBER.findall("\n".join(wanted)), strict=True)
    return all(abs(float(one) - float(other)) <= tolerance + 1e-9 for one, other in pairs)


@contextlib.contextmanager
def example_folder() -> Iterator[None]:
    """Works in a new folder with the files that examples read."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "recipes"):
            shutil.copytree(ROOT / name, Path(folder) / name)
        os.chdir(folder)
        os.environ["COLUMNS"] = COLUMNS
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS")
            if columns is not None:
                os.environ["COLUMNS"] = columns


def refreshed(text: str, page: Path) -> str:
    """The text of a page with what its examples print now."""
    namespace: dict[str, Any] = {"__name__": "example"}
    pieces, place = [], 0
    for block in blocks(text, "python", "console"):
        if not block.is_run:
            continue
        source = ""
        for example in examples(block):
            printed = run(block, example, page, namespace)
            shown = example.shown if is_shown(block, example, printed) else as_shown(block, printed)
            source += f"$ {example.code}\n{shown}" if block.language == "console" else f"{example.code}{shown}"
        pieces += [text[place : block.start], source]
        place = block.start + len(block.source)
    return "".join([*pieces, text[place:]])


def as_shown(block: Block, printed: str) -> str:
    """An output as a page shows it."""
    rows = [row.rstrip() for row in printed.rstrip().splitlines()]
    return "".join(f"{row}\n" if block.language == "console" else f"{SHOWN} {row}".rstrip() + "\n" for row in rows)


def main() -> None:
    """Run the examples of pages and write what has changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="by default all")
    for page in [one.resolve() for one in parser.parse_args().pages] or PAGES:
        before = page.read_text(encoding="utf-8")
        with example_folder():
            after = refreshed(before, page)
        if after != before:
            page.write_text(after, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {'changed' if after != before else 'right'}", flush=True)


if __name__ == "__main__":
    main()
