"""What a batch contributes to the lattice, and the files of a lexicon in a model folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onoma import OnomaError
from onoma.inputs.batches import Batch
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.nerco.inputs import LONGEST_NODE, LatticeInputs
from onoma.systems.nerco.options import LEXICON_FILE, VECTOR_NAMES_FILE
from onoma.text.lexicon import Lexicon
from onoma.text.words import segment

NAMES = ("北京", "北", "大", "学")


def batch_of(*texts: str) -> Batch:
    """A batch of whole texts; token ids are not read here."""
    offsets = [segment(text) for text in texts]
    nothing = np.zeros((len(texts), 1), np.int64)
    words = np.array([len(one) for one in offsets])
    return Batch(nothing, nothing, nothing, nothing, words, texts, offsets)


def inputs(*words: str, max_nodes: int = 10) -> LatticeInputs:
    return LatticeInputs.build(Lexicon(words), NAMES, max_nodes)


def test_nodes_have_their_own_vector_or_those_of_their_characters() -> None:
    found = inputs("北京", "大学", "京大").arrays(batch_of("去北京大学", "你好"))
    assert found["nodes"].tolist() == [3, 0]
    assert found["node_first"][0].tolist() == [1, 2, 3]
    assert found["node_last"][0].tolist() == [2, 3, 4]
    # one row for 北京 itself; 京 has no vector; padding is row 0
    assert found["node_rows"][0].tolist() == [[1, 0], [3, 0], [3, 4]]
    assert not found["node_rows"][1].any()


def test_very_long_lexicon_words_are_no_nodes() -> None:
    longest, longer = "北" * LONGEST_NODE, "大" * (LONGEST_NODE + 1)
    found = inputs(longest, longer).arrays(batch_of(longest + longer))
    assert found["nodes"].tolist() == [1]
    assert found["node_last"][0, 0] - found["node_first"][0, 0] == LONGEST_NODE - 1


def folder_with(path: Path, files: dict[str, bytes]) -> ModelFolder:
    for name, content in files.items():
        (path / name).write_bytes(content)
    ModelConfig("nerco").save(path)
    return ModelFolder(path, ModelConfig("nerco"))


def test_the_files_of_a_model_folder_restore_everything(tmp_path: Path) -> None:
    saved = inputs("北京", "大学", "京大")
    loaded = LatticeInputs.load(folder_with(tmp_path, saved.to_artifacts()), 10, len(NAMES))
    batch = batch_of("去北京大学")
    for name, expected in saved.arrays(batch).items():
        assert loaded.arrays(batch)[name].tolist() == expected.tolist()


@pytest.mark.parametrize("damaged", [LEXICON_FILE, VECTOR_NAMES_FILE])
def test_damaged_or_missing_files_are_named(tmp_path: Path, damaged: str) -> None:
    folder = folder_with(tmp_path, inputs("北京").to_artifacts() | {damaged: b"rubbish"})
    with pytest.raises(OnomaError, match=damaged):
        LatticeInputs.load(folder, 10, len(NAMES))
    (tmp_path / damaged).unlink()
    with pytest.raises(OnomaError, match=damaged):
        LatticeInputs.load(folder, 10, len(NAMES))


def test_the_number_of_vectors_must_be_that_of_the_model(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"config\.json says 7 vectors"):
        LatticeInputs.load(folder_with(tmp_path, inputs("北京").to_artifacts()), 10, 7)
