"""The cache of training examples: what is read is what was written, and changes are noticed."""

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
from onoma.inputs.tokenizer import WordTokenizer
from onoma.training import example_cache
from onoma.training.example_cache import PreparedData, prepare_data
from onoma.training.recipe import load_recipe
from tiny import document


def same(one: PreparedData, other: PreparedData) -> bool:
    """Whether two are equal in everything that is trained on."""
    if (one.types, one.counts, one.corpora) != (other.types, other.counts, other.corpora):
        return False
    pairs = zip(one.examples, other.examples, strict=True)
    return all(
        a.corpus == b.corpus
        and np.array_equal(a.tokens.ids, b.tokens.ids)
        and np.array_equal(a.tokens.counts, b.tokens.counts)
        and np.array_equal(a.gold, b.gold)
        and np.array_equal(a.known, b.known)
        and a.complete is b.complete
        and a.text == b.text
        and np.array_equal(a.words, b.words)
        for a, b in pairs
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time that examples are made."""
    calls: list[str] = []
    make: Callable[..., PreparedData] = example_cache._prepare
    monkeypatch.setattr(example_cache, "_prepare", lambda *arguments: (calls.append("made"), make(*arguments))[1])
    return calls


def test_examples_from_the_cache_are_those_that_were_made(
    recipe_values: dict[str, Any], data_folder: Path, tokenizer: WordTokenizer, tmp_path: Path, made: list[str]
) -> None:
    recipe = load_recipe(recipe_values)
    first = prepare_data(recipe, data_folder, tokenizer, tmp_path)
    again = prepare_data(recipe, data_folder, tokenizer, tmp_path)
    assert len(made) == 1
    assert len(first.examples) > 50
    assert same(first, again)
    assert same(first, prepare_data(recipe, data_folder, tokenizer))  # without a cache


def test_known_types_of_single_documents_are_kept(
    recipe_values: dict[str, Any], tokenizer: WordTokenizer, tmp_path: Path
) -> None:
    documents = [document("[person|Tom] sang ."), document("[city|Oslo] is cold .")]
    rows = [
        {"text": one.text, "entities": [{"start": e.start, "end": e.end, "label": e.label} for e in one.entities]}
        | {"annotated": [one.entities[0].label]}
        for one in documents
    ]
    (tmp_path / "small").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "small" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    recipe = load_recipe(recipe_values)
    first, again = (prepare_data(recipe, tmp_path, tokenizer, tmp_path / "cache") for _ in range(2))
    assert same(first, again)
    assert [len(one.known) for one in again.examples] == [1, 1]
    assert [one.complete for one in again.examples] == [False, False]


@pytest.mark.parametrize(
    "change", ["max_tokens=140", "data.drop_empty_windows=false", "data.corpora.0.limit=20", "data.windows=across"]
)
def test_settings_that_change_examples_are_not_read_from_the_cache(
    change: str,
    recipe_values: dict[str, Any],
    data_folder: Path,
    tokenizer: WordTokenizer,
    tmp_path: Path,
    made: list[str],
) -> None:
    prepare_data(load_recipe(recipe_values), data_folder, tokenizer, tmp_path)
    changed = load_recipe(recipe_values, [change])
    assert same(prepare_data(changed, data_folder, tokenizer, tmp_path), prepare_data(changed, data_folder, tokenizer))
    assert len(made) == 3


@pytest.mark.parametrize("change", ["seed=7", "training.batch_size=3", "options.max_width=5"])
def test_settings_without_influence_use_the_cache(
    change: str,
    recipe_values: dict[str, Any],
    data_folder: Path,
    tokenizer: WordTokenizer,
    tmp_path: Path,
    made: list[str],
) -> None:
    prepare_data(load_recipe(recipe_values), data_folder, tokenizer, tmp_path)
    prepare_data(load_recipe(recipe_values, [change]), data_folder, tokenizer, tmp_path)
    assert len(made) == 1


def test_a_changed_corpus_is_noticed(recipe_values: dict[str, Any], tokenizer: WordTokenizer, tmp_path: Path) -> None:
    def save(text: str) -> None:
        for split in ("train", "dev"):
            write(Corpus("small", [document(text)]).documents, tmp_path / "small" / f"{split}.jsonl")

    recipe = load_recipe(recipe_values)
    save("[person|Tom] sang .")
    before = prepare_data(recipe, tmp_path, tokenizer, tmp_path / "cache")
    save("[person|Ann] and [person|Tom] sang .")
    after = prepare_data(recipe, tmp_path, tokenizer, tmp_path / "cache")
    assert (before.counts.mentions, after.counts.mentions) == (1, 2)


def test_train_data_without_mentions_is_an_error(
    recipe_values: dict[str, Any], tokenizer: WordTokenizer, tmp_path: Path
) -> None:
    for split in ("train", "dev"):
        write([document("Nobody sang .")], tmp_path / "small" / f"{split}.jsonl")
    with pytest.raises(OnomaError, match="no mention"):
        prepare_data(load_recipe(recipe_values), tmp_path, tokenizer)


def test_train_data_whose_mentions_exceed_every_window_is_an_error(
    recipe_values: dict[str, Any], tokenizer: WordTokenizer, tmp_path: Path
) -> None:
    for split in ("train", "dev"):
        write([document(f"[person|{'Tom ' * 200}sang] .")], tmp_path / "small" / f"{split}.jsonl")
    with pytest.raises(OnomaError, match=r"longer than a window of 130 tokens.*Fix: raise max_tokens"):
        prepare_data(load_recipe(recipe_values), tmp_path, tokenizer)


def flip_bytes(content: bytes) -> bytes:
    middle = len(content) // 3
    return content[:middle] + bytes(255 - byte for byte in content[middle : middle + 50]) + content[middle + 50 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "not an archive": lambda content: b"not an archive",
    "truncated": lambda content: content[:-200],
    "changed": flip_bytes,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_file_is_made_again(
    damage: str,
    recipe_values: dict[str, Any],
    data_folder: Path,
    tokenizer: WordTokenizer,
    tmp_path: Path,
    made: list[str],
) -> None:
    recipe = load_recipe(recipe_values)
    first = prepare_data(recipe, data_folder, tokenizer, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert same(first, prepare_data(recipe, data_folder, tokenizer, tmp_path))
    assert same(first, prepare_data(recipe, data_folder, tokenizer, tmp_path))
    assert len(made) == 2
