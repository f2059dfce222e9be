"""BINDER read back from ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onoma import OnomaError
from onoma.data import load_corpus
from onoma.entities import Corpus
from onoma.evaluation.candidates import EvaluationSet
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.export import export
from onoma.models.folder import open_single
from onoma.models.hub import EMBEDDED
from onoma.models.weights import save_model
from onoma.systems.base import RuntimeSettings
from onoma.systems.binder.onnx_runtime import OnnxBinder
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.systems.options import reads_word_shapes
from onoma.systems.registry import get_system
from systems.binder.test_export import assert_same_proposals, random_binder
from tiny import corpus

ROOT = Path(__file__).parents[3]


def restored(folder: Path) -> TorchBinder:
    opened = open_single(folder, "restore")
    model = get_system("binder").restore(opened).eval()
    tokenizer = WordTokenizer.load(folder, reads_word_shapes(opened.config.options))
    return TorchBinder(model, opened.config, tokenizer)  # type: ignore[arg-type]


def scores(runtime: Any, data: Corpus, floor: float) -> dict[tuple[int, ...], float]:
    found = EvaluationSet(data, runtime).candidates(runtime, floor).proposals
    columns = (column.tolist() for column in (found.first, found.last, found.type))
    return dict(zip(zip(*columns, strict=True), found.score.tolist(), strict=True))


def assert_close(folder: Path, data: Corpus, tolerance: float) -> None:
    """The restored model gives the scores that onnxruntime gives."""
    by_onnx = scores(OnnxBinder(open_single(folder, "run"), RuntimeSettings("onnx")), data, 0.1)
    by_torch = scores(restored(folder), data, 0.0)
    assert len(by_onnx) > len(data)
    assert {key: by_torch[key] for key in by_onnx} == pytest.approx(by_onnx, abs=tolerance)


@pytest.mark.parametrize(("int8", "tolerance"), [(False, 1e-3), (True, 0.1)])
def test_a_restored_model_gives_the_scores_of_its_graph(
    tiny_model: Path, int8: bool, tolerance: float, tmp_path: Path
) -> None:
    folder, data = export(tiny_model, tmp_path / "onnx", int8), corpus()
    assert_close(folder, data, tolerance)
    runtime = restored(folder)
    assert EvaluationSet(data, runtime).evaluate(runtime)["f1"] > 99


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_embedded_models_can_be_restored(language: str) -> None:
    assert_close(EMBEDDED / language, load_corpus(ROOT / "examples" / "stories.jsonl"), 0.08)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shared_encoder": True, "pooling": "mean"},
        {"shared_linear": True},
        {"inference": "joint"},
        {"inference": "joint", "shared_linear": True},
        {"thresholds": "tuned"},
        {"types": "name", "objective": "sigmoid", "max_train_width": 4},
    ],
)
def test_models_with_all_options_are_restored(options: dict[str, Any], tiny_model: Path, tmp_path: Path) -> None:
    exported = export(random_binder(tiny_model, tmp_path / "trained", **options), tmp_path / "onnx")
    runtime = restored(exported)
    save_model(runtime.model, runtime.config, exported, tmp_path / "restored")
    assert_same_proposals(tmp_path / "restored", exported)


def test_without_position_heads_training_uses_spans_alone(tiny_model: Path, tmp_path: Path) -> None:
    exported = export(random_binder(tiny_model, tmp_path / "trained"), tmp_path / "onnx")
    assert not restored(exported).model.options.position_losses
    joint = export(random_binder(tiny_model, tmp_path / "joint", inference="joint"), tmp_path / "joint-onnx")
    assert restored(joint).model.options.position_losses


@pytest.mark.parametrize("options", [{"types": "atomic"}, {"thresholds": "global"}])
def test_closed_sets_of_types_are_refused(options: dict[str, Any], tiny_model: Path, tmp_path: Path) -> None:
    exported = export(random_binder(tiny_model, tmp_path / "trained", **options), tmp_path / "onnx")
    with pytest.raises(OnomaError, match=r"closed set of types.*Fix: give the folder with model\.safetensors"):
        restored(exported)
