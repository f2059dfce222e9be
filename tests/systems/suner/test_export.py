"""SUNER exported to ONNX: the same entities as with PyTorch, without PyTorch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from transformers import AutoModel, BertConfig, MPNetConfig, PreTrainedConfig, RobertaConfig

from onoma import OnomaError, load
from onoma.inputs.batches import Batch
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.models.export import export
from onoma.models.folder import open_single
from onoma.models.weights import save_model
from onoma.systems.base import Runtime, RuntimeSettings
from onoma.systems.registry import get_system
from onoma.systems.suner.model import Suner, at_words
from onoma.systems.suner.onnx_runtime import OnnxSuner
from onoma.systems.suner.options import SunerOptions
from onoma.systems.suner.torch_runtime import TorchSuner
from tiny import TYPES, documents, joined
from tiny_batches import batch_of, random_tokens

NAMES = [one.name for one in TYPES]
CORPUS = "river_news"
SIZES: dict[str, Any] = {
    "vocab_size": 300,
    "max_position_embeddings": 90,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
SUNER_SIZES = {"detector_size": 12, "matcher_size": 10, "vector_size": 8, "max_width": 5}
BERT, MPNET = BertConfig(**SIZES), MPNetConfig(pad_token_id=1, **SIZES)


def random_suner(tiny_model: Path, folder: Path, encoder: PreTrainedConfig = BERT, **options: Any) -> Path:
    """A model folder with random weights and the tiny model's tokenizer; its detector accepts some spans."""
    torch.manual_seed(0)
    chosen = SunerOptions(**{"form": "fused", **SUNER_SIZES, **options})
    encoders = [AutoModel.from_config(encoder) for _ in range(1 + (chosen.form == "two-stage"))]
    for one in encoders:
        one.pooler = None
    model = Suner(encoders[0], encoders[1] if len(encoders) > 1 else None, chosen).eval()
    for weight in model.parameters():
        if weight.ndim >= 2:  # with the usual initial weights all tokens would look alike
            torch.nn.init.normal_(weight, std=0.4)
    if chosen.form != "one-stage":
        _set_detector(model, WordTokenizer.load(tiny_model))
    config = ModelConfig("suner", max_tokens=64, overlap=4, scale=0.5, datasets=(CORPUS,), options=asdict(chosen))
    save_model(model, config, tiny_model, folder)
    return folder


@torch.no_grad()
def _set_detector(model: Suner, tokenizer: WordTokenizer) -> None:
    """Let the detector accept one span in twelve; short spans more often than long ones."""
    batch = windows(tokenizer, 12)
    ids, mask, first, last = map(torch.from_numpy, (batch.ids, batch.mask, batch.first, batch.last))
    logits = model.detector(
        *at_words(model.encode_for_detection(ids, mask), first, last), torch.from_numpy(batch.words)
    )
    model.detector.start_linear.bias -= logits[logits > -1e3].quantile(11 / 12)


def windows(tokenizer: WordTokenizer, number: int = 60, seed: int = 0) -> Batch:
    """Windows of 1 to 18 words, each of 1 to 3 tokens."""
    generator = np.random.default_rng(seed)
    counts = [generator.integers(1, 4, generator.integers(1, 19)).astype(np.int32) for _ in range(number)]
    return batch_of(random_tokens([one.tolist() for one in counts], 5, 200, seed), tokenizer)


def proposed(runtime: Runtime, batch: Batch, floor: float = 0.0) -> dict[tuple[int, ...], float]:
    found = runtime.propose(batch, runtime.ask(TYPES), floor)
    columns = [column.tolist() for column in found]
    rows = dict(zip(zip(*columns[:4], strict=True), columns[4], strict=True))
    assert len(rows) == len(columns[4])  # no duplicates
    return rows


def _between(scores: list[float]) -> float:
    """A floor far from any score: the middle of the widest gap among the middle half of the scores."""
    middle = np.sort(scores)[len(scores) // 4 : -len(scores) // 4]
    widest = int(np.argmax(np.diff(middle)))
    return float(middle[widest] + middle[widest + 1]) / 2


def assert_same_proposals(by_torch: Runtime, by_onnx: Runtime, *, seeds: Sequence[int] = (1, 2)) -> None:
    for seed in seeds:
        batch = windows(by_torch.tokenizer, seed=seed)
        everything = proposed(by_torch, batch)
        assert len({round(score, 3) for score in everything.values()}) > 30
        for floor in (0.0, _between(list(everything.values()))):
            expected, found = (proposed(one, batch, floor) for one in (by_torch, by_onnx))
            assert 0 < len(expected) <= len(everything)
            assert found.keys() == expected.keys()
            assert found == pytest.approx(expected, abs=1e-3)


@pytest.fixture(scope="module", params=["bert", "mpnet"])
def folder(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A fused model of PyTorch ("torch"), in float32 ("onnx") and in int8 ("int8")."""
    folder = tmp_path_factory.mktemp(request.param)
    encoder = {"bert": BERT, "mpnet": MPNET}[request.param]
    random_suner(tiny_model, folder / "torch", encoder, dataset_prefix=True, detection_weight=0.3)
    export(folder / "torch", folder / "onnx")
    export(folder / "torch", folder / "int8", int8=True)
    return folder


def runtime_of(folder: Path, threads: int = 1) -> Runtime:
    """The runtime of a model folder: onnx if it was exported, else torch."""
    backend = "torch" if (folder / "model.safetensors").is_file() else "onnx"
    model = open_single(folder, "load")
    return get_system(model.config.system).runtime(model, RuntimeSettings(backend, "cpu", threads))  # type: ignore[arg-type]


def both_runtimes(folder: Path) -> tuple[TorchSuner, OnnxSuner]:
    by_torch, by_onnx = runtime_of(folder / "torch"), runtime_of(folder / "onnx", threads=2)
    assert isinstance(by_torch, TorchSuner)
    assert isinstance(by_onnx, OnnxSuner)
    return by_torch, by_onnx


def test_onnx_proposes_the_same_as_torch(folder: Path) -> None:
    by_torch, by_onnx = both_runtimes(folder)
    assert_same_proposals(by_torch, by_onnx, seeds=range(1, 6))
    np.testing.assert_allclose(by_torch.ask(TYPES), by_onnx.ask(TYPES), atol=1e-5)


def test_the_test_data_has_nested_candidates_and_windows_without_any(folder: Path) -> None:
    """The other tests depend on it."""
    by_torch, _ = both_runtimes(folder)
    batch = windows(by_torch.tokenizer, seed=1)
    window, first, last = by_torch.detect(batch, 0.5).spans
    assert 0 < len(np.unique(window)) < len(batch.ids)
    spans = list(zip(window.tolist(), first.tolist(), last.tolist(), strict=True))
    inside = [a for a in spans for b in spans if a != b and a[0] == b[0] and b[1] <= a[1] and a[2] <= b[2]]
    assert len(inside) > 10


def test_styles_are_the_same_as_with_torch(folder: Path) -> None:
    by_torch, by_onnx = both_runtimes(folder)
    batch = windows(by_torch.tokenizer, seed=1)
    plain = proposed(by_onnx, batch)
    styled = proposed(by_onnx.with_style(CORPUS), batch)
    assert styled.keys() != plain.keys()
    assert_same_proposals(by_torch.with_style(CORPUS), by_onnx.with_style(CORPUS))
    assert proposed(by_onnx.with_style("never seen"), batch) == plain
    assert proposed(by_onnx, batch) == plain  # a style does not change the original


def test_onnx_finds_the_same_entities_as_torch(folder: Path) -> None:
    texts = [one.text for one in documents()[:40]] + [joined(documents()[:60]).text]  # the last one has several windows
    by_torch, by_onnx = load(folder / "torch", "torch", "cpu"), load(folder / "onnx")
    for overlap in ("flat", "nested", "any"):
        expected = by_torch.extract(texts, NAMES, overlap=overlap)  # type: ignore[arg-type]
        found = by_onnx.extract(texts, NAMES, overlap=overlap)  # type: ignore[arg-type]
        assert sum(map(len, expected)) > 20
        for some, others in zip(expected, found, strict=True):
            places = [[(one.start, one.end, one.label) for one in entities] for entities in (some, others)]
            assert places[0] == places[1]
            assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-3)


@pytest.mark.parametrize("kind", ["onnx", "int8"])
def test_a_window_has_the_same_scores_alone_and_with_others(folder: Path, kind: str) -> None:
    runtime = runtime_of(folder / kind)
    batch = windows(runtime.tokenizer, 12, seed=3)
    batched = proposed(runtime, batch)
    for window in range(len(batch.ids)):
        alone = proposed(runtime, batch.take(np.array([window])))
        expected = {key[1:]: score for key, score in batched.items() if key[0] == window}
        assert {key[1:]: score for key, score in alone.items()} == pytest.approx(expected, abs=1e-4)


def test_empty_batches_and_batches_without_candidates_have_no_proposals(folder: Path) -> None:
    by_torch, by_onnx = both_runtimes(folder)
    batch = windows(by_onnx.tokenizer, seed=1)
    for runtime in (by_onnx, by_onnx.with_style(CORPUS)):
        assert proposed(runtime, batch.take(np.zeros(0, np.int64))) == {}
    window, _, _ = by_torch.detect(batch, 0.5).spans
    without = batch.take(np.setdiff1d(np.arange(len(batch.ids)), window))
    assert len(without.ids) > 0
    found = by_onnx.propose(without, by_onnx.ask(TYPES), 0.0)
    assert [len(column) for column in found] == [0] * 5
    assert [column.dtype.kind for column in found] == ["i", "i", "i", "i", "f"]


def test_int8_is_close(folder: Path) -> None:
    exact, rounded = (runtime_of(folder / kind) for kind in ("onnx", "int8"))
    batch = windows(exact.tokenizer, seed=1)
    expected, found = proposed(exact, batch), proposed(rounded, batch)
    both = expected.keys() & found.keys()
    assert len(both) > 0.8 * max(len(expected), len(found))
    differences = np.array([abs(expected[key] - found[key]) for key in both])
    assert 1e-5 < differences.mean() < 0.05
    kinds = {one.data_type for one in onnx.load(folder / "int8" / "model.onnx").graph.initializer if len(one.dims) == 2}
    assert onnx.TensorProto.INT8 in kinds


def test_weights_are_stored_once(tiny_model: Path, tmp_path: Path) -> None:
    wide = BertConfig(**(SIZES | {"hidden_size": 64, "intermediate_size": 256}))
    export(random_suner(tiny_model, tmp_path / "torch", wide), tmp_path / "onnx")
    assert {path.name for path in (tmp_path / "onnx").iterdir()} == {
        "config.json",
        "tokenizer.json",
        "model.onnx",
        "README.md",
    }
    sizes = [(tmp_path / name).stat().st_size for name in ("onnx/model.onnx", "torch/model.safetensors")]
    assert sizes[0] < 1.1 * sizes[1]


@pytest.mark.parametrize(
    "options",
    [
        {"spans": "markers"},
        {"rejection": "cosine"},
        {"pooling": "mean"},
        {"types": "name"},
        {"candidates": "flat"},
        {"candidates": "any", "max_candidates": 3},
        {"detection_threshold": 0.0, "candidates": "any", "max_candidates": 400},
        {"form": "two-stage"},
        {"form": "two-stage", "pooling": "mean", "spans": "markers"},
        {"marker_identity": "numbered", "spans": "markers"},
        {"marker_identity": "paired", "spans": "markers"},
        {"form": "two-stage", "marker_identity": "numbered", "max_candidates": 70, "detection_threshold": 0.2},
        {"form": "two-stage", "marker_identity": "paired"},
    ],
    ids=lambda options: ",".join(f"{key}={value}" for key, value in options.items()),
)
def test_other_options_can_be_exported(tiny_model: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    random_suner(tiny_model, tmp_path / "torch", dataset_prefix=True, **options)
    export(tmp_path / "torch", tmp_path / "onnx")
    by_torch, by_onnx = both_runtimes(tmp_path)
    assert_same_proposals(by_torch, by_onnx)
    assert_same_proposals(by_torch.with_style(CORPUS), by_onnx.with_style(CORPUS), seeds=[3])


def test_encoders_of_other_families_can_be_exported(tiny_model: Path, tmp_path: Path) -> None:
    random_suner(tiny_model, tmp_path / "torch", RobertaConfig(pad_token_id=0, **SIZES))
    export(tmp_path / "torch", tmp_path / "onnx")
    assert_same_proposals(*both_runtimes(tmp_path))


@pytest.mark.parametrize("int8", [False, True])
def test_exports_are_reproducible(folder: Path, tmp_path: Path, int8: bool) -> None:
    export(folder / "torch", tmp_path / "again", int8=int8)
    before = folder / ("int8" if int8 else "onnx")
    for path in before.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "one-stage"}, "one-stage SUNER cannot be exported. Fix: use the torch backend"),
        ({"form": "two-stage", "markers": False}, "`markers: false` cannot be exported. Fix: use the torch backend"),
        ({"form": "two-stage", "attention_mask": False}, "`attention_mask: false` cannot be exported"),
        ({"form": "two-stage", "tied_positions": False}, "`tied_positions: false` cannot be exported"),
    ],
    ids=str,
)
def test_models_that_cannot_be_exported_are_refused(
    tiny_model: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    random_suner(tiny_model, tmp_path / "torch", **options)
    with pytest.raises(OnomaError, match=message):
        export(tmp_path / "torch", tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_missing_graphs_are_reported(tiny_model: Path, tmp_path: Path) -> None:
    random_suner(tiny_model, tmp_path / "torch", form="two-stage")
    with pytest.raises(OnomaError, match=r"model\.onnx does not exist.*onoma export"):
        load(tmp_path / "torch", "onnx")
    export(tmp_path / "torch", tmp_path / "onnx")
    (tmp_path / "onnx" / "detector.onnx").unlink()
    with pytest.raises(OnomaError, match=r"detector\.onnx does not exist.*onoma export"):
        load(tmp_path / "onnx")


def test_unknown_systems_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    export(random_suner(tiny_model, tmp_path / "torch"), tmp_path / "onnx")
    for name in ("torch", "onnx"):
        ModelConfig("oracle").save(tmp_path / name)
        with pytest.raises(OnomaError, match=r"there is no system 'oracle'.*binder, suner"):
            load(tmp_path / name)


def test_neither_torch_nor_transformers_is_imported(folder: Path) -> None:
    program = f"""
import sys
for name in ("torch", "transformers", "onnx", "safetensors"):
    sys.modules[name] = None
import onoma
print(len(onoma.load({str(folder / "int8")!r}).extract("Tom flew to Paris and to Rome .", ["city"], threshold=0.0)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip().isdigit(), done.stderr


def test_the_export_command(folder: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
    done = command("export", folder / "torch", tmp_path / "onnx", "--int8")
    assert done.code == 0
    assert load(tmp_path / "onnx").runtime.backend == "onnx"
