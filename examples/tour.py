"""A tour of Onoma on documents of our own, with the embedded model: `make run`. Nothing is downloaded."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import onoma
from onoma import data
from onoma.text import cut_windows, segment, sentence_starts

STORIES = Path(__file__).parent / "stories.jsonl"
LETTER = (
    "Dear Ms Adeyemi, our Oslo office will ship the Lumen X2 cameras on 4 May. Please send the invoice over "
    "$1,250 to billing@fjordoptics.example. Kind regards, Henrik Solberg, Fjord Optics"
)

CHINESE_LETTER = "林晓梅女士：您好！本公司杭州办事处将于5月4日寄出流明相机，货款为1250元。此致，远山光学有限公司 李大伟"


def command(*arguments: object) -> None:
    """Run a command as a user would."""
    print(f"\n$ onoma {' '.join(map(str, arguments))}", flush=True)
    subprocess.run([sys.executable, "-m", "onoma", *map(str, arguments)], check=True)


def main() -> None:
    """Extract, then describe, convert and cut documents."""
    print(LETTER)
    labels = "person, city, company, product, date, amount of money, e-mail address"
    command("extract", LETTER, "--labels", labels)

    print(f"\nThe same labels for a Chinese letter:\n{CHINESE_LETTER}")
    command("extract", CHINESE_LETTER, "--labels", labels)

    print("\nThe English letter again, from Python, with types described in words:")
    ner = onoma.load()
    for entity in ner.extract(LETTER, {"sender": "the person who signs the letter", "device": "a machine for sale"}):
        print(f"  {entity}")

    print("\nOur sample documents, and how many of their mentions are found:")
    report = onoma.evaluate(ner, data.load_corpus(STORIES))
    print(f"  strict precision {report.strict.micro.precision:.2f}, recall {report.strict.micro.recall:.2f}")
    command("info", STORIES)
    with tempfile.TemporaryDirectory() as folder:
        command("convert", STORIES, Path(folder) / "stories.spacy")

    print("\nWords, cut so that every mention can begin and end at one:")
    for document in data.read(STORIES):
        print("  " + " | ".join(document.text[start:end] for start, end in segment(document.text)))

    text = LETTER * 500
    words = segment(text)
    windows = cut_windows([1] * len(words), 256, 16, sentence_starts(text, words))
    print(f"\nA document of {len(text):,} characters: {len(words):,} words, {len(windows)} windows of up to 256 words.")


if __name__ == "__main__":
    main()
