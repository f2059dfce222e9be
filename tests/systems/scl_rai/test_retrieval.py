"""Retrieval at inference: equations 14 to 16 by hand, and the data store as a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onoma import OnomaError
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.scl_rai.options import DATASTORE_FILE, SclRaiOptions
from onoma.systems.scl_rai.retrieval import DataStore, margins, retrieve

STORE = DataStore(np.eye(3, 4, dtype=np.float32), np.array([9, 4, 2]))
LOGITS = np.array([[2.0, 1.0, -1.0], [0.0, 0.0, 3.0]], np.float32)
SIMILARITY = np.array([[0.1, 0.9, -0.5], [0.3, -0.2, 0.4]], np.float32)


def test_retrieved_labels_have_the_similarity_of_their_centres_and_non_entity_has_none() -> None:
    found = retrieve(SIMILARITY, STORE.counts > 0, 1.0)
    for row, similarity in zip(found, SIMILARITY, strict=True):
        exponents = np.exp(similarity)
        assert row == pytest.approx([0, *(exponents[1:] / exponents.sum())], abs=1e-6)


def test_a_label_without_training_spans_is_not_retrieved() -> None:
    found = retrieve(SIMILARITY, np.array([True, False, True]), 1.0)
    assert found[:, 1] == pytest.approx(0)
    assert found[0, 2] == pytest.approx(np.exp(-0.5) / (np.exp(0.1) + np.exp(-0.5)), abs=1e-6)


def test_a_low_temperature_makes_retrieval_sharp() -> None:
    assert retrieve(SIMILARITY, STORE.counts > 0, 0.01)[0, 1] == pytest.approx(1)


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.8])
def test_margins_are_those_of_the_mixed_distribution(weight: float) -> None:
    found = margins(LOGITS, SIMILARITY, STORE, SclRaiOptions(retrieval_weight=weight))
    for row in range(2):
        p = np.exp(LOGITS[row]) / np.exp(LOGITS[row]).sum()
        retrieved = np.exp(SIMILARITY[row]) / np.exp(SIMILARITY[row]).sum()
        retrieved[0] = 0
        mixed = (1 - weight) * p + weight * retrieved
        assert found[row] == pytest.approx(np.log(mixed[1:] / mixed[0]), abs=1e-5)


def test_without_a_data_store_the_model_decides_alone() -> None:
    assert margins(LOGITS, SIMILARITY, None, SclRaiOptions()) == pytest.approx(LOGITS[:, 1:] - LOGITS[:, :1], abs=1e-5)


def test_extreme_logits_have_finite_margins() -> None:
    logits = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]], np.float32)
    for weight in (0.0, 1.0):
        assert np.isfinite(margins(logits, SIMILARITY, STORE, SclRaiOptions(retrieval_weight=weight))).all()


def test_no_spans_have_no_margins() -> None:
    empty = np.empty((0, 3), np.float32)
    assert margins(empty, empty, STORE, SclRaiOptions()).shape == (0, 2)


# --- as a file


def folder(path: Path, types: int = 2) -> ModelFolder:
    return ModelFolder(path, ModelConfig("scl-rai", types=dict.fromkeys("abcdef"[:types], "")))


def test_a_data_store_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / DATASTORE_FILE).write_bytes(STORE.to_bytes())
    stored = DataStore.load(folder(tmp_path))
    assert stored is not None
    np.testing.assert_array_equal(stored.centres, STORE.centres)
    np.testing.assert_array_equal(stored.counts, STORE.counts)


def test_a_model_may_have_no_data_store(tmp_path: Path) -> None:
    assert DataStore.load(folder(tmp_path)) is None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"centres": 1}', STORE.to_bytes()[:40], b'{"centres": [["a"]], "counts": [1]}']
)
def test_a_damaged_data_store_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / DATASTORE_FILE).write_bytes(content)
    with pytest.raises(OnomaError, match=r"datastore\.json.*Fix: save or download the model again"):
        DataStore.load(folder(tmp_path))


def test_a_data_store_of_another_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / DATASTORE_FILE).write_bytes(STORE.to_bytes())
    with pytest.raises(OnomaError, match=r"config\.json has 4 labels"):
        DataStore.load(folder(tmp_path, types=3))
