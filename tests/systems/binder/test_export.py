"""BINDER exported to ONNX: the same entities as with PyTorch, without PyTorch."""

from __future__ import annotations

import shutil
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

from onoma import EntityType, Extractor, OnomaError, load
from onoma.models.config import ModelConfig, load_config
from onoma.models.export import export
from onoma.models.weights import save_model
from onoma.onnx.writer import GraphWriter
from onoma.systems.binder.export import export_binder
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from tiny import TYPES, documents, joined
from tiny_batches import batch_of, random_tokens

NAMES = [one.name for one in TYPES]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture(scope="module")
def exported(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The tiny model in float32 (False) and in int8 (True)."""
    folder = tmp_path_factory.mktemp("onnx")
    return {int8: export(tiny_model, folder / str(int8), int8) for int8 in (False, True)}


def random_binder(tiny_model: Path, folder: Path, encoder: PreTrainedConfig | None = None, **options: Any) -> Path:
    """A model folder with random weights and the tokenizer of the tiny model."""
    torch.manual_seed(0)
    config = encoder or BertConfig(vocab_size=300, max_position_embeddings=70, **SIZES)
    chosen = BinderOptions(**{"vector_size": 8, "width_size": 6, "max_width": 4, **options})
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
        if weight.ndim == 2:  # with the usual initial weights all tokens would look alike
            torch.nn.init.normal_(weight, std=2 * config.hidden_size**-0.5)
    if chosen.thresholds == "global":  # low and all different, so that something passes in joint inference
        model.global_thresholds.data = torch.linspace(-6, -4, 3 * len(TYPES)).view(3, -1)
    known = {one.name: one.description for one in TYPES}
    save_model(model, ModelConfig("binder", max_tokens=64, types=known, options=asdict(chosen)), tiny_model, folder)
    return folder


def proposed(model: Extractor, floor: float = 0.0) -> dict[tuple[int, ...], float]:
    counts = [np.random.default_rng(words).integers(1, 4, words).tolist() for words in (18, 1, 12)]
    batch = batch_of(random_tokens(counts, 5, 200), model.runtime.tokenizer)
    found = model.runtime.propose(batch, model.runtime.ask(TYPES), floor)
    return dict(zip(zip(*(column.tolist() for column in found[:4]), strict=True), found.score.tolist(), strict=True))


def assert_same_proposals(folder: Path, onnx_folder: Path, tolerance: float = 1e-3) -> None:
    by_torch, by_onnx = proposed(load(folder, "torch", "cpu")), proposed(load(onnx_folder, "onnx"))
    assert by_torch.keys() == by_onnx.keys()
    assert len({round(score, 3) for score in by_torch.values()}) > 10
    assert by_onnx == pytest.approx(by_torch, abs=tolerance)


def test_onnx_finds_the_same_entities_as_torch(ner: Extractor, exported: dict[bool, Path]) -> None:
    texts = [one.text for one in documents()] + [joined(documents()[:80]).text]  # the last one needs several windows
    for overlap in ("nested", "any"):  # in "flat", rounding alone may decide between equal scores
        by_torch = ner.extract(texts, NAMES, overlap=overlap)  # type: ignore[arg-type]
        by_onnx = load(exported[False]).extract(texts, NAMES, overlap=overlap)  # type: ignore[arg-type]
        assert sum(map(len, by_torch)) > len(texts)
        for some, others in zip(by_torch, by_onnx, strict=True):
            assert [replace(one, score=0) for one in some] == [replace(one, score=0) for one in others]
            assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-3)


def test_int8_is_close_and_smaller(ner: Extractor, exported: dict[bool, Path]) -> None:
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
    assert sizes[0] < 0.65 * sizes[1]  # in a model this small, names and shapes take much of the file


def test_int8_models_store_other_large_weights_in_float16(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}  # as in the embedded model
    encoder = BertConfig(vocab_size=300, max_position_embeddings=512, **(SIZES | wide))
    options = {"vector_size": 128, "width_size": 128, "max_width": 12, "shared_encoder": True, "pooling": "mean"}
    folder = random_binder(tiny_model, tmp_path / "torch", encoder, **options)
    export(folder, tmp_path / "float32")
    export(folder, tmp_path / "int8", int8=True)
    monkeypatch.setattr(GraphWriter, "large_constant", GraphWriter.constant)
    export(folder, tmp_path / "float32 heads", int8=True)
    halves = [onnx.TensorProto.FLOAT16 in constants(tmp_path / name) for name in ("float32", "int8", "float32 heads")]
    assert halves == [False, True, False]
    floats, floats_wide = (constants(tmp_path / name)[onnx.TensorProto.FLOAT] for name in ("int8", "float32 heads"))
    assert max(floats) < 100_000 < max(floats_wide)
    sizes = [(tmp_path / name / "model.onnx").stat().st_size for name in ("int8", "float32 heads")]
    assert sizes[0] == pytest.approx(sizes[1] - sum(one for one in floats_wide if one > 100_000) / 2, rel=0.01)
    exact, found, wide = (proposed(load(tmp_path / name)) for name in ("float32", "int8", "float32 heads"))
    assert found.keys() == wide.keys() == exact.keys()
    assert found == pytest.approx(wide, abs=0.05)  # rounding to float16 changes some of the int8 values by one
    errors = [np.mean([abs(scores[key] - exact[key]) for key in exact]) for scores in (found, wide)]
    assert errors[0] < 1.1 * errors[1]


def constants(folder: Path) -> dict[int, list[int]]:
    """The bytes of the constants of a model, by element type."""
    sizes: dict[int, list[int]] = {}
    for one in onnx.load(folder / "model.onnx").graph.initializer:
        sizes.setdefault(one.data_type, []).append(len(one.raw_data))
    return sizes


@pytest.mark.parametrize("int8", [False, True])
def test_a_text_has_the_same_scores_alone_and_with_others(exported: dict[bool, Path], int8: bool) -> None:
    texts = [documents()[0].text, documents()[70].text, joined(documents()[100:110]).text]
    model = load(exported[int8])
    batched = model.extract(texts, NAMES, threshold=0.1, overlap="any")
    for text, entities in zip(texts, batched, strict=True):
        alone = model.extract(text, NAMES, threshold=0.1, overlap="any")
        assert [(one.start, one.end, one.label) for one in alone] == [
            (one.start, one.end, one.label) for one in entities
        ]
        assert [one.score for one in alone] == pytest.approx([one.score for one in entities], abs=1e-4)


@pytest.mark.parametrize("int8", [False, True])
def test_the_row_of_a_type_does_not_depend_on_other_types(exported: dict[bool, Path], int8: bool) -> None:
    rows = load(exported[int8]).runtime.ask(TYPES)
    assert rows.dtype == np.float32
    for one, row in zip(TYPES, rows, strict=True):
        np.testing.assert_allclose(load(exported[int8]).runtime.ask([one])[0], row, atol=1e-4)


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
def test_all_options_of_the_paper_can_be_exported(tiny_model: Path, tmp_path: Path, options: dict[str, Any]) -> None:
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
        DistilBertConfig(vocab_size=300, max_position_embeddings=70, dim=16, n_layers=2, n_heads=2, hidden_dim=32),
        BertConfig(vocab_size=300, max_position_embeddings=70, hidden_act="relu", **SIZES),
    ],
    ids=["roberta", "mpnet", "distilbert", "bert with relu"],  # the last two are traced
)
@pytest.mark.parametrize("shared", [True, False])
def test_encoders_of_other_families_can_be_exported(
    tiny_model: Path, tmp_path: Path, encoder: PreTrainedConfig, shared: bool
) -> None:
    folder = random_binder(tiny_model, tmp_path / "torch", encoder, shared_encoder=shared, pooling="mean")
    export(folder, tmp_path / "onnx")
    assert_same_proposals(folder, tmp_path / "onnx")


def test_traced_encoders_stay_in_float32_in_int8_models(tiny_model: Path, tmp_path: Path) -> None:
    encoder = DistilBertConfig(vocab_size=300, max_position_embeddings=70, dim=16, n_layers=2, n_heads=2, hidden_dim=32)
    folder = random_binder(tiny_model, tmp_path / "torch", encoder, shared_encoder=True)
    export(folder, tmp_path / "int8", int8=True)
    assert_same_proposals(folder, tmp_path / "int8", tolerance=0.02)  # heads are in float16


@pytest.mark.parametrize("options", [{"types": "atomic"}, {"thresholds": "global"}], ids=str)
def test_models_with_a_closed_set_of_labels_refuse_others(
    tiny_model: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    export(random_binder(tiny_model, tmp_path / "torch", **options), tmp_path / "onnx")
    for backend in ("torch", "onnx"):
        model = load(tmp_path / backend, backend, "cpu")  # type: ignore[arg-type]
        assert model.runtime.labels == {"band", "city", "person"}
        with pytest.raises(OnomaError, match=r"does not know the type river\..*band, city, person"):
            model.extract("Tom swam .", ["person", "river"])
        with pytest.raises(OnomaError, match="does not know the type river"):
            model.runtime.ask([EntityType("river")])
        model.extract("Tom swam .", ["person"])


def test_other_models_can_be_asked_for_any_label(exported: dict[bool, Path]) -> None:
    model = load(exported[False])
    assert model.runtime.labels is None
    model.extract("Tom swam .", ["river"])


def test_an_exported_folder_is_a_complete_model(tiny_model: Path, exported: dict[bool, Path]) -> None:
    names = {path.name for path in exported[True].iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.onnx", "README.md"}
    assert load_config(exported[True]) == load_config(tiny_model)
    assert "int8" in (exported[True] / "README.md").read_text("utf-8")


def test_the_torch_backend_refuses_an_exported_folder(exported: dict[bool, Path]) -> None:
    with pytest.raises(OnomaError, match=r"has no model.safetensors.*Fix: use the backend onnx"):
        load(exported[True], backend="torch")


def test_the_card_is_copied(tiny_model: Path, tmp_path: Path) -> None:
    folder = random_binder(tiny_model, tmp_path / "torch", shared_encoder=True)
    (folder / "README.md").write_text("# Rivers\nA fine model.\n", "utf-8")
    export(folder, tmp_path / "onnx")
    card = (tmp_path / "onnx" / "README.md").read_text("utf-8")
    assert card.startswith("# Rivers\nA fine model.\n")
    assert "float32" in card


def test_models_that_cannot_be_exported_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    model = Binder(AutoModel.from_config(BertConfig(**SIZES)), None, BinderOptions(types="prototype"), 64)
    with pytest.raises(OnomaError, match="prototypical instances cannot be exported"):
        export_binder(model, tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(OnomaError, match="exists already"):
        export(tiny_model, tiny_model)


def test_an_onnx_model_cannot_be_exported_again(exported: dict[bool, Path], tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"has no model\.safetensors.*PyTorch"):
        export(exported[False], tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_the_onnx_backend_refuses_a_folder_without_a_graph(tiny_model: Path) -> None:
    with pytest.raises(OnomaError, match=r"model\.onnx does not exist.*onoma export"):
        load(tiny_model, backend="onnx")


def test_graphs_of_former_versions_are_refused(exported: dict[bool, Path], tmp_path: Path) -> None:
    former = Path(shutil.copytree(exported[False], tmp_path / "former"))
    graph = onnx.load(former / "model.onnx")
    graph.graph.output.remove(next(one for one in graph.graph.output if one.name == "products"))
    onnx.save(graph, former / "model.onnx")
    with pytest.raises(OnomaError, match=r"exported by Onoma 0\.1\.0.*Fix: export .* again"):
        load(former)


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


def test_the_export_command(tiny_model: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
    done = command("export", tiny_model, tmp_path / "onnx", "--int8")
    assert done.code == 0
    assert str(tmp_path / "onnx") in done.out
    assert load(tmp_path / "onnx").runtime.backend == "onnx"
    refused = command("export", tiny_model, tmp_path / "onnx")
    assert refused.code == 2
    assert "exists already" in refused.err
