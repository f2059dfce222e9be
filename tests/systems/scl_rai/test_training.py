"""SCL-RAI trained, saved, copied and exported: the same entities with PyTorch and with onnxruntime."""

from __future__ import annotations

from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import onoma
from onoma import Entity, Extractor, OnomaError
from onoma.data import load_corpus
from onoma.evaluation.candidates import EvaluationSet
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.models.export import export
from onoma.systems.scl_rai.options import DATASTORE_FILE
from onoma.systems.scl_rai.torch_runtime import TorchSclRai
from onoma.training.run import train
from tiny import TYPES, documents
from tiny_training import SHORT, changed_recipe, metrics_of

torch.set_num_threads(1)
TEXTS = [one.text for one in documents()[::9]]
NAMES = [one.name for one in TYPES]
OPTIONS = {"vector_size": 16, "dropout": 0.1, "max_width": 5}


@pytest.fixture(scope="module")
def values(recipe_values: dict[str, Any]) -> dict[str, Any]:
    """A recipe for SCL-RAI on the small corpus."""
    return recipe_values | {"system": "scl-rai", "options": OPTIONS}


@pytest.fixture(scope="module")
def run(values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    output = tmp_path_factory.mktemp("runs") / "scl-rai"
    settings = {"checkpoints": False, "max_steps": 240, "eval_steps": 80}
    train(changed_recipe(values, training=settings), output=output, data=data_folder)
    return output


def entities(model: Extractor) -> list[list[Entity]]:
    return model.extract(TEXTS, NAMES, threshold=0.05, overlap="any")


def spans(found: list[list[Entity]]) -> list[list[tuple[int, int, str]]]:
    return [[(one.start, one.end, one.label) for one in entities] for entities in found]


def test_scl_rai_learns_the_small_corpus(run: Path) -> None:
    assert metrics_of(run)["test"]["small"]["f1"] > 80


@pytest.mark.parametrize(
    "options",
    [
        {"negative_sampling": "none", "contrast_weight": 0.0, "retrieval_weight": 0.0},
        {"negative_sampling": "weighted", "negative_rate": 0.7},
        {"contrast_non_entities": False, "positive_in_denominator": True, "max_train_width": 3},
    ],
    ids=str,
)
def test_all_options_can_be_trained_and_loaded(
    options: dict[str, Any], values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    recipe = changed_recipe(deepcopy(values), options=options, training=SHORT)
    folder = train(recipe, output=tmp_path / "run", data=data_folder)
    runtime = onoma.load(folder, "torch", "cpu").runtime
    dev = EvaluationSet(load_corpus(data_folder / "small", "dev"), runtime)
    assert dev.evaluate(runtime) == pytest.approx(metrics_of(tmp_path / "run")["dev"]["small"])
    assert (folder / DATASTORE_FILE).is_file() == (options.get("retrieval_weight") != 0)


def test_centres_are_the_mean_vectors_of_training_mentions(run: Path, data_folder: Path) -> None:
    runtime = onoma.load(run / "model", "torch", "cpu").runtime
    assert isinstance(runtime, TorchSclRai)
    store = runtime.store
    assert store is not None
    gold = load_corpus(data_folder / "small", "train")
    numbers = {name: number for number, name in enumerate(runtime.config.types)}
    mentions = [numbers[one.label] for document in gold for one in document.entities]
    assert store.counts[0] > 0  # non-entity spans are a sample, as in training
    assert store.counts[1:].tolist() == np.bincount(mentions, minlength=len(numbers)).tolist()
    assert np.linalg.norm(store.centres, axis=1) == pytest.approx(1, abs=1e-5)
    # contrastive learning has separated the labels
    similarity = store.centres @ store.centres.T
    assert similarity[~np.eye(len(similarity), dtype=bool)].max() < 0.9


def test_the_data_store_takes_part_in_inference(run: Path, tmp_path: Path) -> None:
    model = onoma.load(run / "model", device="cpu")
    found = entities(model)
    model.save_pretrained(tmp_path / "copy")
    assert entities(onoma.load(tmp_path / "copy", device="cpu")) == found
    (tmp_path / "copy" / DATASTORE_FILE).unlink()
    without = entities(onoma.load(tmp_path / "copy", device="cpu"))
    assert [[one.score for one in row] for row in without] != [[one.score for one in row] for row in found]


@pytest.mark.parametrize("int8", [False, True])
def test_onnx_finds_the_same_entities_as_torch(run: Path, tmp_path: Path, int8: bool) -> None:
    by_torch = onoma.load(run / "model", "torch", "cpu")
    by_onnx = onoma.load(export(run / "model", tmp_path / "onnx", int8), "onnx")
    assert (tmp_path / "onnx" / DATASTORE_FILE).is_file()
    expected, found = (model.extract(TEXTS, NAMES) for model in (by_torch, by_onnx))
    assert sum(map(len, expected)) > len(TEXTS)
    assert spans(found) == spans(expected)
    pairs = zip(chain.from_iterable(expected), chain.from_iterable(found), strict=True)
    assert max(abs(a.score - b.score) for a, b in pairs) < (0.1 if int8 else 1e-4)


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_long_and_empty_texts(run: Path, tmp_path: Path, backend: str) -> None:
    folder = run / "model" if backend == "torch" else export(run / "model", tmp_path / "onnx")
    model = onoma.load(folder, backend)
    long = " ".join(TEXTS * 9)
    found = model.extract(["", " ", long, "x"], NAMES)
    assert found[0] == found[1] == []
    assert max(one.end for one in found[2]) > len(long) * 0.9
    assert all(long[one.start : one.end] == one.text for one in found[2])


def test_some_of_the_labels_may_be_asked_for_and_no_others(run: Path) -> None:
    model = onoma.load(run / "model", device="cpu")
    assert {one.label for row in model.extract(TEXTS, ["city"]) for one in row} == {"city"}
    with pytest.raises(OnomaError, match=r"does not know the type river"):
        model.extract(TEXTS[0], ["river"])


def test_vectors_of_some_spans_are_those_of_all_spans(run: Path) -> None:
    runtime = onoma.load(run / "model", "torch", "cpu").runtime
    assert isinstance(runtime, TorchSclRai)
    texts = WindowedTexts.cut(PackedTexts.pack(TEXTS[:3]), runtime.tokenizer, 64, 0)
    batch = texts.batch(np.arange(3), runtime.tokenizer)
    window, first, last = np.array([0, 2, 2]), np.array([0, 1, 3]), np.array([0, 2, 4])
    found = runtime.span_vectors(batch, window, first, last)
    with torch.inference_mode():
        states = runtime.model.word_states(*runtime.copy((batch.ids, batch.mask, batch.first, batch.last)))
        for row, width in enumerate([1, 2, 2]):
            vector = runtime.model.vectors_of_width(states, width)[window[row], first[row]].numpy()
            assert found[row] == pytest.approx(vector / np.linalg.norm(vector), abs=1e-5)
