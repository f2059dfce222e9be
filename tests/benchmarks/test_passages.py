"""Passages that resemble a benchmark: by the labels that they ask for, and by words in a row."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from onoma import Corpus, Document, EntityType
from onoma.files import atomic_write, read_lines
from passages import TRAIN_FILE, asks_like, label_sets, runs_of, shares_run, write_without


def benchmark(*labels: str) -> Corpus:
    return Corpus("benchmark", [], tuple(map(EntityType, labels)))


def asking(*labels: str) -> Document:
    return Document.from_spans("Ines sings", [], annotated=frozenset(labels))


@pytest.mark.parametrize(
    ("asked", "resembles"),
    [
        (("song", "album", "band"), True),
        (("Songs", "albums", "bands", "city"), True),  # however they are written
        (("song", "album"), False),
        (("person", "place"), False),  # of a benchmark with few labels
    ],
)
def test_half_of_the_labels_of_a_benchmark(asked: tuple[str, ...], resembles: bool) -> None:
    sets = label_sets([benchmark("song", "album", "band", "genre", "award", "poet"), benchmark("person", "place")])
    assert asks_like(asking(*asked), sets) == resembles


def test_words_in_a_row_and_whole_short_sentences() -> None:
    known = runs_of(["Who sang the song in Rome?", "Play jazz."], 5)
    assert shares_run("please say who sang the song in paris", known, 5)
    assert not shares_run("who sang the hymn in Rome", known, 5)
    assert shares_run("play JAZZ!", known, 5)
    assert not shares_run("play jazz and more", known, 5)


def test_other_passages_stay_as_they_are(tmp_path: Path) -> None:
    rows = [
        {"text": text, "entities": [{"start": 0, "end": 3, "label": label}], "schema": "letters"}
        for text, label in (("Ann sings", "singer"), ("Ben rows", "rower"), ("Eva sings", "singer"))
    ]
    with atomic_write(tmp_path / TRAIN_FILE) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "meta.json").write_text('{"name": "letters", "passages": 3, "distinct_labels": 2}')
    write_without({1}, tmp_path, tmp_path)
    assert [json.loads(line) for _, line in read_lines(tmp_path / TRAIN_FILE)] == [rows[0], rows[2]]
    assert json.loads((tmp_path / "meta.json").read_text()) == {"name": "letters", "passages": 2, "distinct_labels": 1}
