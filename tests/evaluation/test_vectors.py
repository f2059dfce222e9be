"""Vectors of mentions in two dimensions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onoma import Corpus, Document, Extractor, load
from onoma.evaluation.vectors import project, project_mentions
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.systems.base import SpanVectors
from tiny import corpus, documents


def test_the_main_directions_are_eigenvectors_of_the_covariance() -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32) * [5, 3, 1, 1, 0.1]
    found = project(vectors.astype(np.float32), ["a"] * 40)
    values, directions = np.linalg.eigh(np.cov(vectors.T))
    slow = (vectors - vectors.mean(0)) @ directions[:, ::-1][:, :2]
    assert np.abs(found.places) == pytest.approx(np.abs(slow), abs=1e-3)
    assert found.explained == pytest.approx(values[::-1][:2] / values.sum(), rel=1e-3)


def test_mentions_of_a_type_are_nearer_to_each_other_than_to_others(ner: Extractor) -> None:
    chosen = Corpus("tiny", documents()[::7], corpus().types)
    found = project_mentions(ner, chosen)
    assert found is not None
    assert len(found.labels) == len(found.places) == sum(len(one.entities) for one in chosen)
    labels = np.array(found.labels)
    centres = {name: found.places[labels == name].mean(0) for name in ("city", "person")}
    apart = np.linalg.norm(centres["city"] - centres["person"])
    spread = np.linalg.norm(found.places[labels == "city"] - centres["city"], axis=1).mean()
    assert apart > spread


def test_both_backends_have_the_same_vectors(ner: Extractor, onnx_model: Path) -> None:
    text = "Maria Silva flew to New York ."
    window, first, last = np.array([0, 0]), np.array([0, 4]), np.array([1, 5])
    found = []
    for runtime in (ner.runtime, load(onnx_model, backend="onnx").runtime):
        assert isinstance(runtime, SpanVectors)
        texts = WindowedTexts.cut(PackedTexts.pack([text]), runtime.tokenizer, 64, 0)
        found.append(runtime.span_vectors(texts.batch(np.array([0]), runtime.tokenizer), window, first, last))
    assert np.linalg.norm(found[0], axis=1) == pytest.approx(1, abs=1e-5)
    assert (found[0] * found[1]).sum(1) == pytest.approx(1, abs=0.02)  # one of them is int8


def test_too_few_mentions_have_no_picture(ner: Extractor) -> None:
    assert project_mentions(ner, Corpus("none", [])) is None
    one = Document.from_spans("Tom flew to Paris .", [(0, 3, "person"), (12, 17, "city")])
    assert project_mentions(ner, Corpus("two", [one])) is None


def test_mentions_inside_of_words_are_left_out(ner: Extractor) -> None:
    text = "Tom and Ann flew to Paris ."
    document = Document.from_spans(text, [(0, 2, "person"), (0, 3, "person"), (8, 11, "person"), (20, 25, "city")])
    found = project_mentions(ner, Corpus("part", [document]))
    assert found is not None
    assert sorted(found.labels) == ["city", "person", "person"]
