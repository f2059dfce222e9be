"""Descriptions of corpora, as `onoma info` prints them."""

from __future__ import annotations

import json
import time
from pathlib import Path

from onoma import Corpus, Document
from onoma.data import write
from onoma.data.description import describe_splits, render


def printed(path: Path) -> str:
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as capture:
        console.print(render(describe_splits(str(path))))
    return capture.get()


def test_sizes_types_and_warnings_are_printed(tmp_path: Path) -> None:
    ann = Document.from_spans("Ann sings.", [(0, 3, "[person]")])
    write([ann, ann, Document("All is quiet here, far and wide.")], tmp_path / "train.jsonl")
    text = printed(tmp_path)
    assert "words per document" in text
    assert "[person]" in text
    assert "duplicate-documents" in text
    assert "no warnings" not in text


def test_a_median_between_two_integers_has_a_decimal(tmp_path: Path) -> None:
    write([Document("one two"), Document("one two three four five")], tmp_path / "even.jsonl")
    assert "3.5, 3.5, 5, 5" in printed(tmp_path / "even.jsonl")
    write([Document("one two three")], tmp_path / "odd.jsonl")
    assert "3.0, 3, 3, 3" in printed(tmp_path / "odd.jsonl")


def test_an_empty_corpus_does_not_pass_as_free_of_warnings(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").touch()
    text = printed(tmp_path)
    assert "there are no documents" in text
    assert "no warnings" not in text


def test_the_dictionary_is_ready_for_json(tmp_path: Path) -> None:
    ann = Document.from_spans("Ann sings.", [(0, 3, "person")])
    write([ann, ann], tmp_path / "train.jsonl")
    (tmp_path / "meta.json").write_text('{"name": "songs", "language": "en", "license": "CC0"}')
    values = json.loads(json.dumps(describe_splits(str(tmp_path)).to_dict()))
    assert (values["name"], values["language"], values["licence"], values["role"]) == ("songs", "en", "CC0", None)
    assert values["splits"]["train"]["documents"] == 2
    assert values["warnings"][0]["code"] == "duplicate-documents"
    assert values["warnings"][0]["examples"] == [{"split": "train", "index": 1, "text": "Ann sings."}]


def test_fifty_thousand_labels_are_described_in_linear_time() -> None:
    documents = [Document.from_spans(f"Ann {number} sings.", [(0, 3, f"{number}")]) for number in range(50_000)]
    corpus = Corpus("many labels", documents)
    started = time.process_time()
    for document in corpus:  # as the warnings do
        assert len(corpus.annotated(document)) == 50_000
    assert time.process_time() - started < 5  # seconds; one new set per document takes minutes
