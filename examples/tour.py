"""A tour of Onoma on its own sample documents, with the embedded model: `make run`. Nothing is downloaded."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import onoma
from onoma import data
from onoma.text import cut_windows, segment, sentence_starts

EXAMPLES = Path(__file__).parent.resolve()
STORIES = EXAMPLES / "stories.jsonl"
PRIZES = EXAMPLES / "prizes.txt"
LABELS = "scientist, university, city, award, year"
LETTER = (
    "Dear Ms Adeyemi, our Oslo office will ship the Lumen X2 cameras on 4 May. Please send the invoice over "
    "$1,250 to billing@fjordoptics.example. Kind regards, Henrik Solberg, Fjord Optics"
)


def main() -> None:
    """Extract entities, then evaluate, inspect, convert and cut documents."""
    heading("1. Extract: two sentences, one in English and one in Chinese, with the same labels")
    print(PRIZES.read_text(encoding="utf-8"))
    run_command("extract", PRIZES, "--lines", "--labels", LABELS)

    heading("2. From Python, with types that are described in words")
    print(f"{textwrap.fill(LETTER, 100)}\n")
    ner = onoma.load()
    types = {
        "device": "a machine for sale",
        "payment": "an amount of money to be paid",
        "firm": "a company that sells something",
    }
    for entity in ner.extract(LETTER, types):
        print(f"  {entity.start:>3}-{entity.end:<3}  {entity.text:<16} {entity.label:<17} {entity.score:.2f}")

    heading("3. Evaluate: how many mentions of the sample documents are found")
    report = onoma.evaluate(ner, STORIES)
    scores = report.strict.micro
    print(f"  {scores.correct} of {scores.gold} mentions, {scores.predicted} predictions")
    print(f"  precision {scores.precision:.2f}, recall {scores.recall:.2f}, F1 {scores.f1:.2f} (strict)")

    heading("4. Inspect and convert data")
    run_command("info", STORIES)
    with tempfile.TemporaryDirectory() as folder:
        run_command("convert", STORIES, "stories.spacy", folder=folder)

    heading("5. Words: every mention starts and ends at one")
    for document in data.read(STORIES):
        print("  " + " | ".join(document.text[start:end] for start, end in segment(document.text)))

    heading("6. Windows: documents of any length are read in parts, and nothing is truncated")
    text = LETTER * 500
    words = segment(text)
    windows = cut_windows([1] * len(words), 256, 16, sentence_starts(text, words))
    print(f"  {len(text):,} characters, {len(words):,} words, {len(windows)} windows of up to 256 words")

    print("\nNext: README.md, docs/index.md, and `onoma --help`.")


def heading(title: str) -> None:
    """Print the title of a step."""
    print(f"\n\033[1m{title}\033[0m\n" if sys.stdout.isatty() else f"\n{title}\n", flush=True)


def run_command(*arguments: str | Path, folder: str | None = None) -> None:
    """Run a command as a user would, with paths shown relative to the project."""
    shown = [str(one.relative_to(EXAMPLES.parent)) if isinstance(one, Path) else one for one in arguments]
    print(f"$ onoma {shlex.join(shown)}", flush=True)
    subprocess.run([sys.executable, "-m", "onoma", *map(str, arguments)], check=True, cwd=folder)


if __name__ == "__main__":
    main()
