"""What `onoma info` shows."""

from __future__ import annotations

from pathlib import Path

from onoma import Document
from onoma.data import write
from onoma.data.description import describe_splits, render


def shown(path: Path) -> str:
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as capture:
        console.print(render(describe_splits(str(path))))
    return capture.get()


def test_sizes_types_and_warnings(tmp_path: Path) -> None:
    ann = Document.from_spans("Ann sings.", [(0, 3, "[person]")])
    write([ann, ann, Document("All is quiet here, far and wide.")], tmp_path / "train.jsonl")
    text = shown(tmp_path)
    assert "[person]" in text
    assert "duplicate-documents" in text
    assert "no warnings" not in text


def test_half_a_word_of_a_median_is_shown(tmp_path: Path) -> None:
    write([Document("one two"), Document("one two three four five")], tmp_path / "even.jsonl")
    assert "3.5, 3.5, 5, 5" in shown(tmp_path / "even.jsonl")
    write([Document("one two three")], tmp_path / "odd.jsonl")
    assert "3.0, 3, 3, 3" in shown(tmp_path / "odd.jsonl")


def test_an_empty_corpus_is_not_praised(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").touch()
    text = shown(tmp_path)
    assert "there are no documents" in text
    assert "no warnings" not in text
