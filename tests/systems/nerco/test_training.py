"""NerCo trained, saved, copied and exported: the same entities with PyTorch and with onnxruntime."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import onoma
from onoma import Entity, Extractor, OnomaError
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.models.export import export
from onoma.systems.nerco.options import LEXICON_FILE, VECTOR_NAMES_FILE
from onoma.systems.nerco.torch_runtime import TorchNerCo
from onoma.training.run import train
from tiny_chinese import LABELS, documents, nerco_recipe, write_chinese_corpus
from tiny_training import SHORT, changed_recipe, curve_of, metrics_of, save_encoder

torch.set_num_threads(1)
TEXTS = [one.text for one in documents()[::7]]


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A recipe for NerCo on the Chinese corpus."""
    return nerco_recipe(save_encoder(tmp_path_factory.mktemp("encoders") / "chinese", documents()))


@pytest.fixture(scope="module")
def chinese_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus, the lexicon and the word vectors."""
    return write_chinese_corpus(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def run(values: dict[str, Any], chinese_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with all stages."""
    output = tmp_path_factory.mktemp("runs") / "nerco"
    train(changed_recipe(values, options={"warm_start": "gradual"}), output=output, data=chinese_data)
    return output


@pytest.fixture(scope="module")
def plain_run(values: dict[str, Any], chinese_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run without lattice and contrast: BERT-CRF, with BMES tags."""
    output = tmp_path_factory.mktemp("runs") / "bert-crf"
    options = {"lattice": False, "contrast": "none", "scheme": "bmes"}
    train(changed_recipe(values | {"parts": {}}, options=options), output=output, data=chinese_data)
    return output


def spans(found: list[list[Entity]]) -> list[list[tuple[int, int, str]]]:
    return [[(one.start, one.end, one.label) for one in entities] for entities in found]


def scores(found: list[list[Entity]]) -> list[float]:
    return [one.score for one in chain.from_iterable(found)]


def test_nerco_learns_the_corpus(run: Path, plain_run: Path) -> None:
    assert metrics_of(run)["test"]["chinese"]["f1"] > 80
    assert metrics_of(plain_run)["test"]["chinese"]["f1"] > 80
    assert list(metrics_of(run)["stages"]) == ["contrast", "head", "lattice", "tag"]


def test_contrast_is_monitored_by_its_loss(run: Path) -> None:
    losses = [row["eval_loss"] for row in curve_of(run, "curve-contrast") if "eval_loss" in row]
    assert len(losses) >= 2
    assert metrics_of(run)["stages"]["contrast"]["best_dev_loss"] == pytest.approx(min(losses))


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("name", ["run", "plain_run"])
def test_onnx_finds_the_same_entities_as_torch(
    name: str, int8: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(name) / "model"
    by_torch = onoma.load(folder, "torch", "cpu")
    by_onnx = onoma.load(export(folder, tmp_path / "onnx", int8), "onnx")
    expected, found = (model.extract(TEXTS, LABELS) for model in (by_torch, by_onnx))
    assert sum(map(len, expected)) > len(TEXTS)
    if int8:
        different = [one for one, other in zip(spans(expected), spans(found), strict=True) if one != other]
        assert len(different) <= len(TEXTS) // 10
    else:
        assert spans(found) == spans(expected)
        assert scores(found) == pytest.approx(scores(expected), abs=1e-4)


def test_the_lexicon_belongs_to_the_model(run: Path, tmp_path: Path) -> None:
    model = onoma.load(run / "model", device="cpu")
    found = model.extract(TEXTS, LABELS)
    model.save_pretrained(tmp_path / "copy")
    assert (tmp_path / "copy" / LEXICON_FILE).is_file()
    assert onoma.load(tmp_path / "copy", device="cpu").extract(TEXTS, LABELS) == found
    (tmp_path / "copy" / VECTOR_NAMES_FILE).unlink()
    with pytest.raises(OnomaError, match=VECTOR_NAMES_FILE):
        onoma.load(tmp_path / "copy", device="cpu").extract(TEXTS, LABELS)


def test_scores_are_probabilities_of_mentions(run: Path) -> None:
    model = onoma.load(run / "model", device="cpu")
    everything, likely = (model.extract(TEXTS, LABELS, threshold=x) for x in (0.0, 0.5))
    kept = [[one for one in found if one.score >= 0.5] for found in everything]
    assert spans(likely) == spans(kept)
    assert all(0 <= score <= 1 for score in scores(everything))


def test_types_are_a_closed_set(run: Path) -> None:
    model = onoma.load(run / "model", device="cpu")
    with pytest.raises(OnomaError, match="city, person"):
        model.extract(TEXTS[0], ["animal"])
    both, one = model.extract(TEXTS, LABELS), model.extract(TEXTS, ["city"])
    assert spans(one) == [[span for span in found if span[2] == "city"] for found in spans(both)]


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_long_and_unusual_texts(run: Path, tmp_path: Path, backend: str) -> None:
    folder = run / "model" if backend == "torch" else export(run / "model", tmp_path / "onnx")
    model: Extractor = onoma.load(folder, backend, "cpu")  # type: ignore[arg-type]
    sentence = "王芳昨天去了北京。"
    long = sentence * 1200  # more than 10,000 characters
    found = model.extract(long, LABELS)
    assert {one.start // len(sentence) for one in found if one.label == "person"} == set(range(1200))
    strange = ["", " ", "a", "\n\n", "Tom flew to Rome.", "ＩＢＭ公司在北京", "王芳\u200b昨天", "北" * 3000]
    for text, entities in zip(strange, model.extract(strange, LABELS), strict=True):
        assert all(text[one.start : one.end] == one.text for one in entities)


@pytest.mark.parametrize(
    "options",
    [
        {"contrast": "joint", "contrast_non_entities": True, "scheme": "bmes"},
        {"contrast": "none", "layers": 2, "encoder_scores": True},
        {"freeze_encoder": False, "tune_word_vectors": True, "max_nodes": 2},
    ],
    ids=str,
)
def test_all_options_can_be_trained_and_loaded(
    options: dict[str, Any], values: dict[str, Any], chinese_data: Path, tmp_path: Path
) -> None:
    stages = {"contrast": SHORT, "head": SHORT}
    recipe = changed_recipe(values, options=options, training=SHORT, stages=stages)
    folder = train(recipe, output=tmp_path / "run", data=chinese_data)
    report = onoma.evaluate(folder, chinese_data / "chinese")
    assert 100 * report.strict.micro.f1 == pytest.approx(metrics_of(tmp_path / "run")["test"]["chinese"]["f1"])
    if options.get("layers") == 2:
        with pytest.raises(OnomaError, match="several layers cannot be exported"):
            export(folder, tmp_path / "onnx")


def test_without_word_vectors_those_of_characters_are_trained(
    values: dict[str, Any], chinese_data: Path, tmp_path: Path
) -> None:
    alone = values | {"parts": {"lexicon": str(chinese_data / "lexicon.txt")}}
    with pytest.raises(OnomaError, match="tune_word_vectors"):
        train(changed_recipe(alone, training=SHORT), output=tmp_path / "a", data=chinese_data)
    recipe = changed_recipe(
        alone, options={"tune_word_vectors": True, "contrast": "none"}, training={**SHORT, "max_steps": 8}
    )
    folder = train(recipe, output=tmp_path / "b", data=chinese_data)
    assert onoma.load(folder, device="cpu").extract(TEXTS[:2], LABELS) is not None


def test_a_lattice_needs_a_lexicon(values: dict[str, Any], chinese_data: Path, tmp_path: Path) -> None:
    recipe = changed_recipe(values | {"parts": {}}, training=SHORT)
    with pytest.raises(OnomaError, match=r"parts\.lexicon"):
        train(recipe, output=tmp_path / "run", data=chinese_data)


def test_unknown_types_are_not_negatives(values: dict[str, Any], chinese_data: Path, tmp_path: Path) -> None:
    """A document in which cities are not annotated must not teach that its cities are none."""
    from onoma.data import load_corpus, write

    train_part = load_corpus(chinese_data / "chinese", "train")
    partial = [
        onoma.Document(one.text, [e for e in one.entities if e.label == "person"], annotated=frozenset(["person"]))
        if number % 2
        else one
        for number, one in enumerate(train_part)
    ]
    root = tmp_path / "data"
    for name, part in (("train", partial), ("dev", load_corpus(chinese_data / "chinese", "dev"))):
        write(part, root / "partial" / f"{name}.jsonl")
    data = {"corpora": [{"path": "partial", "test": None}]}
    options = {"lattice": False, "contrast": "none"}
    recipe = changed_recipe(values | {"parts": {}}, data=data, options=options, training={"max_steps": 40})
    train(recipe, output=tmp_path / "run", data=root)
    assert metrics_of(tmp_path / "run")["dev"]["partial"]["recall"] > 80


def test_emissions_do_not_depend_on_the_other_windows(run: Path) -> None:
    runtime = onoma.load(run / "model", "torch", "cpu").runtime
    texts = sorted(TEXTS, key=len)
    from onoma.inputs.packing import PackedTexts, WindowedTexts

    windowed = WindowedTexts.cut(PackedTexts.pack(texts), runtime.tokenizer, 130, 16)
    together = runtime.emissions(windowed.batch(np.arange(len(texts)), runtime.tokenizer))  # type: ignore[attr-defined]
    alone = runtime.emissions(windowed.batch(np.array([0]), runtime.tokenizer))  # type: ignore[attr-defined]
    assert together[0, : alone.shape[1]] == pytest.approx(alone[0], abs=1e-4)


def test_the_vector_of_a_span_is_the_mean_of_its_words(run: Path) -> None:
    runtime = onoma.load(run / "model", "torch", "cpu").runtime
    assert isinstance(runtime, TorchNerCo)
    texts = WindowedTexts.cut(PackedTexts.pack(TEXTS[:2]), runtime.tokenizer, 64, 0)
    batch = texts.batch(np.arange(2), runtime.tokenizer)
    found = runtime.span_vectors(batch, np.array([0, 1]), np.array([0, 1]), np.array([2, 1]))
    states = runtime.word_states(batch)
    assert found[0] == pytest.approx(states[0, 0:3].mean(0), abs=1e-5)
    assert found[1] == pytest.approx(states[1, 1], abs=1e-5)
