"""Training that starts from a trained, exported or embedded model."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import onoma
from onoma import Document, OnomaError
from onoma.data import write
from onoma.models.config import ModelConfig, load_config
from onoma.models.export import export
from onoma.models.hub import EMBEDDED
from onoma.models.weights import load_weights
from onoma.training import train
from onoma.training.recipe import Recipe, load_recipe
from onoma.training.start import (
    SHARES,
    Quality,
    average_with_start,
    best_share,
    choose_start_share,
    encoder_dropout,
    find_start,
    freeze_layers,
)
from tiny import documents
from tiny_encoders import tiny_encoder
from tiny_training import SHORT, metrics_of, suner_recipe


@pytest.fixture(scope="module")
def exported(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model in int8, with a calibration of its own."""
    source = shutil.copytree(tiny_model, tmp_path_factory.mktemp("start") / "torch")
    config = load_config(source)
    assert isinstance(config, ModelConfig)
    replace(config, scale=1.5, bias=-0.5, threshold=0.4).save(source)
    return export(source, source.parent / "onnx", int8=True)


def values(start: Path | str, **changes: Any) -> dict[str, Any]:
    data = {"corpora": [{"path": "small"}], "names": "labels", "windows": "sentence"}
    return {"start": str(start), "data": data, "training": {**SHORT, "dataloader_workers": 0}, **changes}


def test_everything_but_the_data_comes_from_the_start(exported: Path, data_folder: Path, tmp_path: Path) -> None:
    settings = {**SHORT, "threshold_from": "start", "dataloader_workers": 0}
    recipe = load_recipe(values(exported, training=settings))
    assert (recipe.system, recipe.encoder) == ("binder", "")
    model = train(recipe, output=tmp_path, data=data_folder)
    before, after = load_config(exported), load_config(model)
    assert isinstance(before, ModelConfig)
    assert isinstance(after, ModelConfig)
    assert (after.scale, after.bias, after.threshold) == (1.5, -0.5, 0.4)
    assert (after.encoder, after.max_tokens, after.overlap) == (before.encoder, before.max_tokens, before.overlap)
    assert (model / "tokenizer.json").read_bytes() == (exported / "tokenizer.json").read_bytes()
    assert metrics_of(tmp_path)["start"]["dev"]["small"]["f1"] > 99
    found = onoma.load(model, "torch", "cpu").extract("Tom flew to Paris .", ["person", "city"])
    assert [one.text for one in found] == ["Tom", "Paris"]


def test_labels_are_asked_for_as_they_were_trained(exported: Path, tmp_path: Path) -> None:
    start = shutil.copytree(exported, tmp_path / "start")
    config = load_config(start)
    assert isinstance(config, ModelConfig)
    replace(config, language="en", types={}).save(start)
    tags = {"person": "PER", "city": "CITIES", "band": "band"}
    for split, chosen in (("train", documents()[::2]), ("dev", documents()[1::2])):
        renamed = [
            replace(one, entities=tuple(replace(each, label=tags[each.label]) for each in one.entities))
            for one in chosen
        ]
        write(renamed, tmp_path / "data" / "small" / f"{split}.jsonl")
    model = train(load_recipe(values(start)), output=tmp_path / "run", data=tmp_path / "data")
    trained = load_config(model)
    assert isinstance(trained, ModelConfig)
    assert set(trained.types) == {"person", "city", "band"}
    tuned = onoma.load(model, "torch", "cpu")
    text = "Tom flew to Paris ."
    tagged, plain = (tuned.extract(text, labels) for labels in (["PER", "CITIES"], ["person", "city"]))
    assert [(one.text, one.label) for one in tagged] == [("Tom", "PER"), ("Paris", "CITIES")]
    assert [one.score for one in tagged] == [one.score for one in plain]


def test_scores_are_calibrated_anew_unless_those_of_the_start_are_kept(
    exported: Path, data_folder: Path, tmp_path: Path
) -> None:
    model = train(load_recipe(values(exported)), output=tmp_path, data=data_folder)
    config = load_config(model)
    assert isinstance(config, ModelConfig)
    assert (config.scale, config.bias) != (1.5, -0.5)
    assert metrics_of(tmp_path)["dev"]["small"]["f1"] > 90


def test_a_model_of_pytorch_is_a_start_without_an_encoder(tiny_model: Path, data_folder: Path, tmp_path: Path) -> None:
    train(load_recipe(values(tiny_model)), output=tmp_path, data=data_folder)
    assert metrics_of(tmp_path)["start"]["test"]["small"]["f1"] > 99


def test_a_suner_of_pytorch_is_a_start_but_not_an_exported_one(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    trained = train(suner_recipe(recipe_values, training=SHORT), output=tmp_path / "first", data=data_folder)
    recipe = load_recipe(values(trained))
    assert (recipe.system, recipe.encoder) == ("suner", "")
    train(recipe, output=tmp_path / "second", data=data_folder)
    metrics = metrics_of(tmp_path / "second")
    assert metrics["start"]["dev"] == metrics_of(tmp_path / "first")["dev"]
    assert metrics["stages"].keys() == {"detection", "classification"}
    exported = export(trained, tmp_path / "onnx")
    with pytest.raises(
        OnomaError, match=r"exported model of suner.*Fix: start from the folder with model\.safetensors"
    ):
        train(load_recipe(values(exported)), output=tmp_path / "third", data=data_folder)


def test_without_dev_the_last_weights_are_kept(exported: Path, data_folder: Path, tmp_path: Path) -> None:
    data = {"corpora": [{"path": "small", "dev": None}], "names": "labels", "windows": "sentence"}
    settings = {**SHORT, "threshold_from": "start", "dataloader_workers": 0}
    train(load_recipe(values(exported, data=data, training=settings)), output=tmp_path, data=data_folder)
    metrics = metrics_of(tmp_path)
    assert (metrics["steps"], metrics["best_step"], metrics["dev"]) == (4, 4, {})
    with pytest.raises(OnomaError, match="no dev data"):
        train(load_recipe(values(exported, data=data)), output=tmp_path / "other", data=data_folder)


def test_frozen_layers_stay_as_they_are(tiny_model: Path, data_folder: Path, tmp_path: Path) -> None:
    settings = {**SHORT, "frozen_layers": 1, "learning_rate": 1e-2, "dataloader_workers": 0}
    model = train(load_recipe(values(tiny_model, training=settings)), output=tmp_path, data=data_folder)
    before, after = load_weights(tiny_model), load_weights(model)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert any(name.startswith("text_encoder.encoder.layer.1.") for name in changed)
    assert any(name.startswith("text_heads.") for name in changed)
    assert not any(name.startswith(("text_encoder.embeddings", "text_encoder.encoder.layer.0.")) for name in changed)


@pytest.mark.parametrize(("layers", "frozen"), [(0, 0), (1, 1), (2, 2), ("half", 3), (9, 6)])
def test_embeddings_and_lower_layers_of_all_encoders_are_frozen(layers: Any, frozen: int) -> None:
    model = nn.ModuleDict({"text_encoder": tiny_encoder("bert", num_hidden_layers=6), "head": nn.Linear(1, 1)})
    model["type_encoder"] = tiny_encoder("mpnet", num_hidden_layers=6)
    freeze_layers(model, layers)
    for name in ("text_encoder", "type_encoder"):
        encoder: Any = model[name]
        trained = [{weight.requires_grad for weight in one.parameters()} for one in encoder.encoder.layer]
        assert trained == [{False}] * frozen + [{True}] * (6 - frozen)
        assert {weight.requires_grad for weight in encoder.embeddings.parameters()} == {not frozen}
    type_encoder: Any = model["type_encoder"]
    assert type_encoder.encoder.relative_attention_bias.weight.requires_grad == (not frozen)
    assert model["head"].weight.requires_grad


@pytest.mark.parametrize("rate", [None, 0.0, 0.3])
def test_dropout_of_encoders_is_changed_for_the_time_of_training(rate: float | None) -> None:
    model = nn.ModuleDict({"text_encoder": tiny_encoder("bert"), "dropout": nn.Dropout(0.5)})

    def rates() -> list[float]:
        return [one.p for one in model["text_encoder"].modules() if isinstance(one, nn.Dropout)]

    own = rates()
    with encoder_dropout(model, rate):
        assert rates() == [one if rate is None else rate for one in own]
        assert isinstance(model["dropout"], nn.Dropout)
        assert model["dropout"].p == 0.5
    assert rates() == own
    assert any(own)


def test_the_best_share_is_chosen_and_sets_weights_and_threshold() -> None:
    runtime = SimpleNamespace(model=nn.Linear(1, 1, bias=False), config=ModelConfig("binder", threshold=0.4))
    start = {"weight": torch.tensor([[1.0]])}
    nn.init.constant_(runtime.model.weight, 5.0)

    def quality() -> Quality:
        return Quality(0.0, (runtime.model.weight - 2.1).square().item())

    assert choose_start_share(runtime, start, quality, (100, 25), threshold_factor=0.5) == 0.75
    assert runtime.model.weight.item() == pytest.approx(2.0)
    assert runtime.config.threshold == pytest.approx(0.4 * 0.5**0.25)
    average_with_start(runtime, start, 1.0, 0.5)
    assert runtime.model.weight.item() == 1.0
    assert runtime.config.threshold == pytest.approx(0.4 * 0.5**0.25)  # the factor counts for new weights only


def qualities(start_f1: float, tuned_f1: float) -> dict[float, Quality]:
    """The less of the start there is, the lower is the loss; F1 changes in proportion."""
    return {share: Quality(share * start_f1 + (1 - share) * tuned_f1, 1 + share) for share in SHARES}


@pytest.mark.parametrize(
    ("trained", "held_out", "share"),
    [(0, 0, 1.0), (4, 0, 0.9), (11, 2, 0.75), (16, 4, 0.5), (31, 8, 0.1), (32, 8, 0.0)],
)
def test_the_fewer_mentions_the_more_of_the_start_remains(trained: int, held_out: int, share: float) -> None:
    assert best_share(qualities(50, 60), trained, held_out) == share


def test_more_than_chance_is_believed_with_few_mentions() -> None:
    assert best_share(qualities(0, 60), trained=10, held_out=2) == 0.75
    assert best_share(qualities(0, 75), trained=10, held_out=2) == 0.0
    assert best_share(qualities(0, 100), trained=10, held_out=1) == 0.75  # one mention tells nothing


def test_f1_counts_if_there_are_enough_mentions_and_else_the_loss() -> None:
    assert best_share(qualities(60, 50), trained=50, held_out=10) == 1.0
    assert best_share(qualities(60, 50), trained=50, held_out=9) == 0.0


def recipe_for(folder: Path, texts: list[str], **data: Any) -> Recipe:
    write([Document.from_spans(text, [(0, 1, "name")]) for text in texts], folder / "mine" / "train.jsonl")
    return load_recipe({"start": "embedded", "data": {"corpora": [{"path": "mine"}], "names": "labels", **data}})


@pytest.mark.parametrize(
    ("texts", "data", "expected"),
    [
        (["Tom sang.", "Ann ran.", "李雷"], {}, "en"),
        (["李雷去了北京。", "韩梅梅在家。", "Tom sang."], {}, "zh"),
        (["Tom sang."], {"language": "zh"}, "zh"),
    ],
)
def test_the_embedded_model_is_chosen_by_language_or_script(
    texts: list[str], data: dict[str, str], expected: str, tmp_path: Path
) -> None:
    start = find_start(recipe_for(tmp_path, texts, **data), tmp_path)
    assert start is not None
    assert start.path == EMBEDDED / expected


def test_one_of_the_embedded_models_can_be_named(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path, ["Tom sang."]).model_copy(update={"start": "embedded/zh"})
    start = find_start(recipe, tmp_path)
    assert start is not None
    assert start.path == EMBEDDED / "zh"
    with pytest.raises(OnomaError, match=r"no embedded model 'embedded/fr'\. Fix: use embedded, or one of: embed"):
        load_recipe(values("embedded/fr"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "some/encoder", "system": "binder"}, r"brings its own encoder\. Fix: remove 'encoder'"),
        ({"max_tokens": 200}, r"windows of 64 tokens.*Fix: leave it out"),
        ({"system": "suner"}, "Fix: write 'system: binder', or leave it out"),
        ({"options": {"vector_size": 8}}, "cannot start from .* with these options"),
        ({"options": {"inference": "joint"}}, "cannot be read back"),
    ],
)
def test_what_does_not_fit_the_start_is_refused(
    changes: dict[str, Any],
    message: str,
    exported: Path,
    encoder_folder: Path,
    data_folder: Path,
    tmp_path: Path,
) -> None:
    if "encoder" in changes:
        changes = {**changes, "encoder": str(encoder_folder)}
    with pytest.raises(OnomaError, match=message):
        train(load_recipe(values(exported, **changes)), output=tmp_path, data=data_folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "names no encoder"),
        ({"encoder": "x", "training": {"threshold_from": "start"}}, "Fix: give 'start'"),
        ({"encoder": "x", "training": {"start_share": 0.5}}, "Fix: give 'start'"),
    ],
)
def test_a_recipe_without_a_start_is_checked(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OnomaError, match=message):
        load_recipe({"system": "binder", "data": {"corpora": [{"path": "small"}]}, **changes})
