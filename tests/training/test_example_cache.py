"""Training examples from a cache are those that would be made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onoma import Corpus
from onoma.data import write
from onoma.errors import OnomaError
from onoma.subwords import Subwords
from onoma.training import example_cache
from onoma.training.example_cache import TrainingData, training_data
from onoma.training.recipe import load_recipe
from tiny import document


def same(one: TrainingData, other: TrainingData) -> bool:
    """Whether two are equal in all that is trained on."""
    if (one.types, one.counts, one.corpora) != (other.types, other.counts, other.corpora):
        return False
    pairs = zip(one.examples, other.examples, strict=True)
    return all(
        a.corpus == b.corpus
        and np.array_equal(a.pieces.ids, b.pieces.ids)
        and np.array_equal(a.pieces.counts, b.pieces.counts)
        and np.array_equal(a.gold, b.gold)
        and np.array_equal(a.known, b.known)
        for a, b in pairs
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each time that examples are made."""
    calls: list[str] = []
    make: Callable[..., TrainingData] = example_cache._make
    monkeypatch.setattr(example_cache, "_make", lambda *arguments: (calls.append("made"), make(*arguments))[1])
    return calls


def test_what_is_read_is_what_was_made(
    values: dict[str, Any], data: Path, subwords: Subwords, tmp_path: Path, made: list[str]
) -> None:
    recipe = load_recipe(values)
    first = training_data(recipe, data, subwords, tmp_path)
    again = training_data(recipe, data, subwords, tmp_path)
    assert len(made) == 1
    assert len(first.examples) > 50
    assert same(first, again)
    assert same(first, training_data(recipe, data, subwords))  # without a cache


def test_known_types_of_single_documents_are_kept(values: dict[str, Any], subwords: Subwords, tmp_path: Path) -> None:
    documents = [document("[person|Tom] sang ."), document("[city|Oslo] is cold .")]
    rows = [
        {"text": one.text, "entities": [{"start": e.start, "end": e.end, "label": e.label} for e in one.entities]}
        | {"annotated": [one.entities[0].label]}
        for one in documents
    ]
    (tmp_path / "small").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "small" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    recipe = load_recipe(values)
    first, again = (training_data(recipe, tmp_path, subwords, tmp_path / "cache") for _ in range(2))
    assert same(first, again)
    assert [len(one.known) for one in again.examples] == [1, 1]


@pytest.mark.parametrize(
    "change", ["max_tokens=140", "data.drop_empty=false", "data.corpora.0.limit=20", "data.windows=across"]
)
def test_other_settings_are_made_anew(
    change: str, values: dict[str, Any], data: Path, subwords: Subwords, tmp_path: Path, made: list[str]
) -> None:
    training_data(load_recipe(values), data, subwords, tmp_path)
    changed = load_recipe(values, [change])
    assert same(training_data(changed, data, subwords, tmp_path), training_data(changed, data, subwords))
    assert len(made) == 3


@pytest.mark.parametrize("change", ["seed=7", "training.batch_size=3", "options.max_width=5"])
def test_what_has_no_influence_is_not(
    change: str, values: dict[str, Any], data: Path, subwords: Subwords, tmp_path: Path, made: list[str]
) -> None:
    training_data(load_recipe(values), data, subwords, tmp_path)
    training_data(load_recipe(values, [change]), data, subwords, tmp_path)
    assert len(made) == 1


def test_a_changed_file_is_read_anew(values: dict[str, Any], subwords: Subwords, tmp_path: Path) -> None:
    def save(text: str) -> None:
        for split in ("train", "dev"):
            write(Corpus("small", [document(text)]).documents, tmp_path / "small" / f"{split}.jsonl")

    recipe = load_recipe(values)
    save("[person|Tom] sang .")
    before = training_data(recipe, tmp_path, subwords, tmp_path / "cache")
    save("[person|Ann] and [person|Tom] sang .")
    after = training_data(recipe, tmp_path, subwords, tmp_path / "cache")
    assert (before.counts.mentions, after.counts.mentions) == (1, 2)


def test_nothing_to_learn_is_an_error(values: dict[str, Any], subwords: Subwords, tmp_path: Path) -> None:
    for split in ("train", "dev"):
        write([document("Nobody sang .")], tmp_path / "small" / f"{split}.jsonl")
    with pytest.raises(OnomaError, match="no mention"):
        training_data(load_recipe(values), tmp_path, subwords)
