"""BINDER exported: the same entities as with PyTorch, without it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from transformers import AutoModel, BertConfig, DistilBertConfig, MPNetConfig, PreTrainedConfig, RobertaConfig

from onoma import Extractor, OnomaError, load
from onoma.backends.torch import save
from onoma.batches import Batch, collate
from onoma.config import ModelConfig
from onoma.export import export
from onoma.subwords import Pieces
from onoma.systems.binder.export import export_binder
from onoma.systems.binder.model import Binder
from onoma.systems.binder.onnx_runtime import OnnxBinder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.onnx_graph import Graph
from tiny import TYPES, documents, together

NAMES = [one.name for one in TYPES]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture(scope="module")
def exported(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The tiny model in float32 (False) and in int8 (True)."""
    folder = tmp_path_factory.mktemp("onnx")
    return {int8: export(tiny_model, folder / str(int8), int8) for int8 in (False, True)}


def random_binder(tiny_model: Path, folder: Path, encoder: PreTrainedConfig | None = None, **options: Any) -> Path:
    """A model folder with random weights; it has the tokenizer of the tiny model."""
    torch.manual_seed(0)
    config = encoder or BertConfig(vocab_size=300, max_position_embeddings=70, **SIZES)
    chosen = BinderOptions(**{"size": 8, "width_size": 6, "max_width": 4, **options})
    separate = not chosen.shared_encoder and chosen.types != "atomic"
    model = Binder(
        AutoModel.from_config(config, attn_implementation="eager"),
        AutoModel.from_config(config) if separate else None,
        chosen,
        64,
        len(TYPES),
    )
    for part in (model.text_encoder, model.own_type_encoder):
        if hasattr(part, "pooler"):
            part.pooler = None
    for weight in model.parameters():
        if weight.ndim == 2:  # the usual ones are so small that all tokens look alike
            torch.nn.init.normal_(weight, std=2 * config.hidden_size**-0.5)
    if chosen.thresholds == "global":  # low and all different, so that something passes in joint inference
        model.global_thresholds.data = torch.linspace(-6, -4, 3 * len(TYPES)).view(3, -1)
    known = {one.name: one.description for one in TYPES}
    save(model, ModelConfig("binder", max_tokens=64, types=known, options=asdict(chosen)), tiny_model, folder)
    return folder


def some_windows(model: Extractor) -> Batch:
    generator = np.random.default_rng(0)
    counts = [generator.integers(1, 4, words).astype(np.int32) for words in (18, 1, 12)]
    pieces = [Pieces(generator.integers(5, 200, count.sum()).astype(np.int32), count) for count in counts]
    return collate(pieces, model.backend.subwords)


def proposed(model: Extractor, floor: float = 0.0) -> dict[tuple[int, ...], float]:
    found = model.backend.propose(some_windows(model), model.backend.encode_types(TYPES), floor)
    return dict(zip(zip(*(column.tolist() for column in found[:4]), strict=True), found.score.tolist(), strict=True))


def assert_same_proposals(folder: Path, onnx_folder: Path, tolerance: float = 1e-3) -> None:
    by_torch, by_onnx = proposed(load(folder, "torch", "cpu")), proposed(load(onnx_folder, "onnx"))
    assert by_torch.keys() == by_onnx.keys()
    assert len({round(score, 3) for score in by_torch.values()}) > 10
    assert by_onnx == pytest.approx(by_torch, abs=tolerance)


def test_onnx_finds_the_same_entities_as_torch(ner: Extractor, exported: dict[bool, Path]) -> None:
    texts = [one.text for one in documents()] + [together(documents()[:80]).text]  # the last one needs several windows
    for overlap in ("nested", "any"):  # in "flat", rounding alone may decide between equal scores
        by_torch = ner.extract(texts, NAMES, overlap=overlap)  # type: ignore[arg-type]
        by_onnx = load(exported[False]).extract(texts, NAMES, overlap=overlap)  # type: ignore[arg-type]
        assert sum(map(len, by_torch)) > len(texts)
        for some, others in zip(by_torch, by_onnx, strict=True):
            assert [replace(one, score=0) for one in some] == [replace(one, score=0) for one in others]
            assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-3)


def test_int8_is_close_and_small(ner: Extractor, exported: dict[bool, Path]) -> None:
    texts = [one.text for one in documents()]
    model = load(exported[True])
    by_torch, by_onnx = (one.extract(texts, NAMES, overlap="nested") for one in (ner, model))
    for some, others in zip(by_torch, by_onnx, strict=True):
        assert [replace(one, score=0) for one in some] == [replace(one, score=0) for one in others]
        assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=0.1)
    kinds = {
        one.data_type for one in onnx.load(exported[True] / "model.onnx").graph.initializer if np.prod(one.dims) > 999
    }
    assert onnx.TensorProto.INT8 in kinds
    sizes = [(exported[int8] / "model.onnx").stat().st_size for int8 in (True, False)]
    assert sizes[0] < 0.65 * sizes[1]  # of so small a model, names and shapes are a good part


def test_in_int8_other_large_weights_take_half_the_space(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}  # as in the embedded model
    encoder = BertConfig(vocab_size=300, max_position_embeddings=512, **(SIZES | wide))
    options = {"size": 128, "width_size": 128, "max_width": 12, "shared_encoder": True, "pooling": "mean"}
    folder = random_binder(tiny_model, tmp_path / "torch", encoder, **options)
    export(folder, tmp_path / "float32")
    export(folder, tmp_path / "int8", int8=True)
    monkeypatch.setattr(Graph, "weights", Graph.constant)
    export(folder, tmp_path / "before", int8=True)
    halves = [onnx.TensorProto.FLOAT16 in constants(tmp_path / name) for name in ("float32", "int8", "before")]
    assert halves == [False, True, False]
    floats, floats_before = (constants(tmp_path / name)[onnx.TensorProto.FLOAT] for name in ("int8", "before"))
    assert max(floats) < 100_000 < max(floats_before)
    sizes = [(tmp_path / name / "model.onnx").stat().st_size for name in ("int8", "before")]
    assert sizes[0] == pytest.approx(sizes[1] - sum(one for one in floats_before if one > 100_000) / 2, rel=0.01)
    exact, found, before = (proposed(load(tmp_path / name)) for name in ("float32", "int8", "before"))
    assert found.keys() == before.keys() == exact.keys()
    assert found == pytest.approx(before, abs=0.05)  # the least change moves some integers of int8 by one
    errors = [np.mean([abs(scores[key] - exact[key]) for key in exact]) for scores in (found, before)]
    assert errors[0] < 1.1 * errors[1]


def constants(folder: Path) -> dict[int, list[int]]:
    """The bytes of the constants of a model, by their kind."""
    sizes: dict[int, list[int]] = {}
    for one in onnx.load(folder / "model.onnx").graph.initializer:
        sizes.setdefault(one.data_type, []).append(len(one.raw_data))
    return sizes


@pytest.mark.parametrize("int8", [False, True])
def test_a_text_has_the_same_scores_alone_and_beside_others(exported: dict[bool, Path], int8: bool) -> None:
    texts = [documents()[0].text, documents()[70].text, together(documents()[100:110]).text]
    model = load(exported[int8])
    beside = model.extract(texts, NAMES, threshold=0.1, overlap="any")
    for text, entities in zip(texts, beside, strict=True):
        alone = model.extract(text, NAMES, threshold=0.1, overlap="any")
        assert [(one.start, one.end, one.label) for one in alone] == [
            (one.start, one.end, one.label) for one in entities
        ]
        assert [one.score for one in alone] == pytest.approx([one.score for one in entities], abs=1e-4)


@pytest.mark.parametrize("int8", [False, True])
def test_the_row_of_a_type_does_not_depend_on_others(exported: dict[bool, Path], int8: bool) -> None:
    backend = OnnxBinder.load(exported[int8])
    rows = backend.encode_types(TYPES)
    assert rows.dtype == np.float32
    for one, row in zip(TYPES, rows, strict=True):
        np.testing.assert_allclose(backend.encode_types([one])[0], row, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"shared_encoder": True},
        {"shared_encoder": True, "pooling": "mean"},
        {"shared_linear": True},
        {"inference": "joint"},
        {"inference": "joint", "shared_linear": True},
        {"inference": "joint", "thresholds": "global"},
        {"thresholds": "global"},
        {"thresholds": "tuned"},
        {"types": "name"},
        {"types": "atomic"},
        {"types": "atomic", "thresholds": "global"},
    ],
    ids=lambda options: ",".join(f"{key}={value}" for key, value in options.items()),
)
def test_all_choices_of_the_paper_can_be_exported(tiny_model: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    folder = random_binder(tiny_model, tmp_path / "torch", **options)
    export(folder, tmp_path / "onnx")
    separate = not options.get("shared_encoder") and options.get("types") != "atomic"
    assert (tmp_path / "onnx" / "types.onnx").is_file() == separate
    assert_same_proposals(folder, tmp_path / "onnx")


@pytest.mark.parametrize(
    "encoder",
    [
        RobertaConfig(vocab_size=300, max_position_embeddings=70, pad_token_id=0, **SIZES),
        MPNetConfig(vocab_size=300, max_position_embeddings=70, pad_token_id=1, **SIZES),
    ],
    ids=lambda config: config.model_type,
)
def test_encoders_of_other_kinds(tiny_model: Path, tmp_path: Path, encoder: PreTrainedConfig) -> None:
    folder = random_binder(tiny_model, tmp_path / "torch", encoder, shared_encoder=True, pooling="mean")
    export(folder, tmp_path / "onnx")
    assert_same_proposals(folder, tmp_path / "onnx")


def test_unknown_types_are_refused_where_types_are_known_by_number(tiny_model: Path, tmp_path: Path) -> None:
    export(random_binder(tiny_model, tmp_path / "torch", types="atomic"), tmp_path / "onnx")
    with pytest.raises(OnomaError, match="knows only the types band, city, person; asked: river"):
        load(tmp_path / "onnx").extract("Tom swam .", ["person", "river"])


def test_an_exported_folder_is_a_complete_model(tiny_model: Path, exported: dict[bool, Path]) -> None:
    names = {path.name for path in exported[True].iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.onnx", "README.md"}
    assert ModelConfig.load(exported[True]) == ModelConfig.load(tiny_model)
    assert "int8" in (exported[True] / "README.md").read_text("utf-8")


def test_pytorch_cannot_run_it(exported: dict[bool, Path]) -> None:
    with pytest.raises(OnomaError, match=r"has no model.safetensors.*Fix: take the backend onnx"):
        load(exported[True], backend="torch")


def test_the_card_goes_along(tiny_model: Path, tmp_path: Path) -> None:
    folder = random_binder(tiny_model, tmp_path / "torch", shared_encoder=True)
    (folder / "README.md").write_text("# Rivers\nA fine model.\n", "utf-8")
    export(folder, tmp_path / "onnx")
    card = (tmp_path / "onnx" / "README.md").read_text("utf-8")
    assert card.startswith("# Rivers\nA fine model.\n")
    assert "float32" in card


def test_what_cannot_be_exported_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    model = Binder(AutoModel.from_config(BertConfig(**SIZES)), None, BinderOptions(types="prototype"), 64)
    with pytest.raises(OnomaError, match="prototypical instances cannot be exported"):
        export_binder(model, tmp_path)
    sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32}
    other = Binder(AutoModel.from_config(DistilBertConfig(**sizes)), None, BinderOptions(shared_encoder=True), 64)
    with pytest.raises(OnomaError, match=r"'distilbert'.*cannot be exported yet.*bert, roberta"):
        export_binder(other, tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(OnomaError, match="exists already"):
        export(tiny_model, tiny_model)


def test_an_onnx_model_cannot_be_exported_again(exported: dict[bool, Path], tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"has no model\.safetensors.*PyTorch"):
        export(exported[False], tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_folder_without_graph_is_refused(tiny_model: Path) -> None:
    with pytest.raises(OnomaError, match=r"has no model\.onnx.*onoma export"):
        load(tiny_model, backend="onnx")


def test_the_onnx_backend_imports_neither_torch_nor_transformers(exported: dict[bool, Path]) -> None:
    program = f"""
import sys
for name in ("torch", "transformers", "onnx", "safetensors"):
    sys.modules[name] = None
import onoma
print([one.text for one in onoma.load({str(exported[True])!r}).extract("Tom flew to Paris .", ["city", "person"])])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "['Tom', 'Paris']", done.stderr


def test_the_command(tiny_model: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
    done = command("export", tiny_model, tmp_path / "onnx", "--int8")
    assert done.code == 0
    assert str(tmp_path / "onnx") in done.out
    assert load(tmp_path / "onnx").backend.name == "onnx"
    refused = command("export", tiny_model, tmp_path / "onnx")
    assert refused.code == 2
    assert "exists already" in refused.err
