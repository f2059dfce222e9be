"""Passages that resemble a benchmark: by the labels that they ask for, and by words in a row."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from onoma import Corpus, Document, EntityType
from passages import asks_like, label_sets, runs_of, shares_run


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
