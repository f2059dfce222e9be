"""Word vectors, and vectors of lexicon words that are composed of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.errors import DataError, OnomaError
from onoma.systems.nerco.word_vectors import compose, load_word_vectors, mean_vectors
from onoma.text.chinese import fold_chinese
from onoma.text.lexicon import Lexicon

PARTS = st.text(st.sampled_from("南京國国Ａa江"), min_size=1, max_size=4)


def save(folder: Path, names: list[str], vectors: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "vectors.npy", vectors)
    (folder / "words.txt").write_text("".join(f"{name}\n" for name in names), "utf-8")
    return folder


def test_vectors_are_read_as_float32(tmp_path: Path) -> None:
    names, vectors = load_word_vectors(save(tmp_path, ["南京", "江"], np.array([[1, 2.5], [3, 4]], np.float16)))
    assert names == ("南京", "江")
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 2.5], [3, 4]]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros((3, 2), np.float32), "2 words, but vectors.npy has 3 vectors"),
        (np.zeros(2, np.float32), "not a table of numbers"),
        (np.array([["a"], ["b"]]), "not a table of numbers"),
        (np.full((2, 2), np.nan, np.float32), "not finite"),
        (np.array([[None], [None]]), "not an array"),
    ],
)
def test_other_arrays_are_refused_with_a_fix(tmp_path: Path, vectors: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_word_vectors(save(tmp_path, ["南京", "江"], vectors))
    assert caught.value.fix


def test_missing_and_damaged_files_are_refused_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder") as caught:
        load_word_vectors(tmp_path / "none")
    assert "vectors.npy" in caught.value.fix
    folder = save(tmp_path / "vectors", ["江"], np.zeros((1, 2), np.float32))
    (folder / "vectors.npy").write_bytes((folder / "vectors.npy").read_bytes()[:-1])
    with pytest.raises(DataError, match="not an array"):
        load_word_vectors(folder)
    (folder / "vectors.npy").write_bytes(b"")
    with pytest.raises(DataError, match="not an array"):
        load_word_vectors(folder)
    (folder / "vectors.npy").unlink()
    with pytest.raises(DataError, match="no such file"):
        load_word_vectors(folder)


def test_a_word_has_its_own_row_or_those_of_its_known_characters_or_none() -> None:
    lexicon = Lexicon(["南京", "长江", "江南", "火车"])
    rows, edges = compose(lexicon, ["江", "南京", "南"], np.zeros((3, 2), np.float32))
    assert (rows.dtype, edges.dtype) == (np.int32, np.int32)
    assert [rows[first:end].tolist() for first, end in pairwise(edges)] == [
        [1],
        [0],
        [0, 2],
        [],
    ]


def test_names_are_folded_like_words_and_folded_ones_come_first() -> None:
    lexicon = Lexicon(["臺灣", "ＩＴ", "国歌"])
    names = ["台灣", "IT", "台湾", "國"]
    rows, edges = compose(lexicon, names, np.zeros((4, 2), np.float32))
    assert [rows[first:end].tolist() for first, end in pairwise(edges)] == [[2], [1], [3]]


def test_each_vector_needs_a_name() -> None:
    with pytest.raises(OnomaError, match="1 names for 2 vectors"):
        compose(Lexicon(["南京"]), ["南京"], np.zeros((2, 3), np.float32))


@given(st.lists(PARTS), st.lists(PARTS, unique=True), st.integers(0, 99))
def test_means_are_those_of_a_slow_computation(words: list[str], names: list[str], seed: int) -> None:
    lexicon, random = Lexicon(words), np.random.default_rng(seed)
    table = random.normal(size=(len(names), 3)).astype(np.float32)
    row_of: dict[str, int] = {}
    for row, name in sorted(enumerate(names), key=lambda pair: pair[1] != fold_chinese(pair[1], case=True)):
        row_of.setdefault(fold_chinese(name, case=True), row)
    expected = np.zeros((len(lexicon), 3), np.float32)
    for number, word in enumerate(lexicon.words):
        parts = [word] if word in row_of else [one for one in word if one in row_of]
        for part in parts:
            expected[number] += table[row_of[part]]
        expected[number] /= np.float32(max(1, len(parts)))
    wanted = random.integers(0, len(lexicon), 8) if len(lexicon) else np.empty(0, np.int64)
    means = mean_vectors(table, *compose(lexicon, names, table), wanted)
    assert means.dtype == np.float32
    assert np.array_equal(means, expected[wanted])
