"""A tour of what Onoma does today, on documents of our own: `make run`.

There is no trained model in this version yet, so nothing here recognises anything: the mentions are those
that the documents come with.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from onoma import data
from onoma.evaluation import evaluate
from onoma.text import cut_windows, segment, sentence_starts

STORIES = Path(__file__).parent / "stories.jsonl"


def onoma(*arguments: object) -> None:
    """Run a command as a user would."""
    print(f"\n$ onoma {' '.join(map(str, arguments))}", flush=True)
    subprocess.run([sys.executable, "-m", "onoma", *map(str, arguments)], check=True)


def main() -> None:
    """Describe, convert, segment, window and score the sample documents."""
    onoma("info", STORIES)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "stories.spacy"
        onoma("convert", STORIES, target)
        onoma("convert", target, Path(folder) / "again.jsonl")
        corpus = data.load_corpus(Path(folder) / "again.jsonl")

    print("\nWords, cut so that every mention can begin and end at one:")
    for document in corpus:
        print("  " + " | ".join(document.text[start:end] for start, end in segment(document.text)))

    text = " ".join(document.text for document in corpus) * 200
    words = segment(text)
    windows = cut_windows([1] * len(words), 256, 16, sentence_starts(text, words))
    print(f"\nA document of {len(text):,} characters: {len(words):,} words, {len(windows)} windows of up to 256 words.")

    flat = [[entity for entity in document.entities if entity.label != "city"] for document in corpus]
    print(f"\nStrict F1 of a reader who overlooks every city: {evaluate(corpus, flat).strict.micro.f1:.3f}")


if __name__ == "__main__":
    main()
