"""Training of SUNER: all forms learn, hard negatives, and what is chosen on development data."""

from __future__ import annotations

import shutil
from copy import deepcopy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor

import onoma
from onoma import Corpus, Document, EntityType, OnomaError
from onoma.data import load_corpus, write
from onoma.evaluation.candidates import EvaluationSet
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import load_config
from onoma.systems.suner.candidates import dataset_prefix
from onoma.systems.suner.collator import SunerCollator
from onoma.systems.suner.torch_runtime import DetectorRuntime, TorchSuner
from onoma.systems.suner.training import (
    DETECTION_THRESHOLDS,
    DETECTION_WEIGHTS,
    FINE_SCALE,
    HARD_FROM,
    MARGINS,
    MAX_HARD,
    SunerTraining,
    choose_detection,
    with_hard_negatives,
    without_types,
)
from onoma.training import run
from onoma.training.examples import Example, make_examples
from onoma.training.run import train
from tiny import TYPES, corpus, documents
from tiny_batches import batch_of
from tiny_training import changed_recipe, curve_of, metrics_of, suner_recipe

torch.set_num_threads(1)
ROOT = Path(__file__).parents[3]
FORMS = ("two-stage", "fused", "one-stage")
BRIEF = {"max_steps": 2, "eval_steps": 1, "checkpoints": False}


def load_runtime(folder: Path) -> TorchSuner:
    runtime = onoma.load(folder, "torch", "cpu").runtime
    assert isinstance(runtime, TorchSuner)
    return runtime


@pytest.fixture(scope="module")
def runs(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a run of each form."""
    root = tmp_path_factory.mktemp("suner")
    for form in FORMS:
        training = {"max_steps": 100, "eval_steps": 25, "learning_rate": 3e-3, "checkpoints": False}
        train(
            suner_recipe(recipe_values, options={"form": form}, training=training), output=root / form, data=data_folder
        )
    return {form: root / form for form in FORMS}


# --- all forms learn


@pytest.mark.parametrize("form", FORMS)
def test_a_small_corpus_is_learned(form: str, runs: dict[str, Path]) -> None:
    metrics = metrics_of(runs[form])
    assert metrics["dev"]["small"]["f1"] > 80
    assert metrics["test"]["small"]["f1"] > 80


@pytest.mark.parametrize("form", FORMS)
def test_the_saved_model_scores_as_in_training(form: str, runs: dict[str, Path], data_folder: Path) -> None:
    report = onoma.evaluate(runs[form] / "model", data_folder / "small")
    assert 100 * report.strict.micro.f1 == pytest.approx(metrics_of(runs[form])["test"]["small"]["f1"])


@pytest.mark.parametrize("form", FORMS)
def test_entities_have_exact_offsets(form: str, runs: dict[str, Path]) -> None:
    ner = onoma.load(runs[form] / "model", device="cpu")
    texts = {
        "In Rome  it rains,\tsays Omar Haddad.": {("Rome", "city"), ("Omar Haddad", "person")},
        "Nobody has seen Tom since the concert in Lima .": {("Tom", "person"), ("Lima", "city")},
    }
    right = 0
    for text, expected in texts.items():
        found = ner.extract(text, {one.name: one.description for one in TYPES})
        assert all(text[one.start : one.end] == one.text for one in found)
        right += len(expected & {(one.text, one.label) for one in found})
    assert right >= 3


@pytest.fixture(scope="module")
def runtime(runs: dict[str, Path]) -> TorchSuner:
    return load_runtime(runs["two-stage"] / "model")


@torch.no_grad()
def worse(runtime: TorchSuner, kind: str) -> TorchSuner:
    """The model with a worse detector or classifier, or as it is."""
    model = deepcopy(runtime.model)
    torch.manual_seed(0)
    if kind != "as it is":
        model.detector.start_linear.bias.add_({"eager": 6.0, "shy": -4.0, "confused": 3.0}[kind])
    if kind == "confused":
        for weight in (*model.span_vectors.parameters(), *model.detector.parameters()):
            weight.add_(0.5 * weight.abs().mean() * torch.randn_like(weight))
    return TorchSuner(model, runtime.config, runtime.tokenizer)


KINDS = ["as it is", "eager", "shy", "confused"]


@pytest.fixture(scope="module")
def examples(tokenizer: WordTokenizer) -> list[Example]:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    return make_examples([corpus()], numbers, tokenizer, max_tokens=130, overlap=8, drop_empty=False)[0]


def candidate_words(batch: dict[str, Any]) -> list[tuple[int, int, int]]:
    """The candidates of a batch as words, looked up by their tokens."""
    first, last = batch["first"].tolist(), batch["last"].tolist()
    rows = batch["marks"].tolist()
    return [(window, first[window].index(begin), last[window].index(end)) for window, _, _, begin, end in rows]


def test_hard_negatives_are_the_most_probable_spans_that_are_not_mentions(
    runtime: TorchSuner, examples: list[Example], tokenizer: WordTokenizer
) -> None:
    chosen = examples[:20] + [replace(one, corpus=1) for one in examples[-20:]]
    detector = worse(runtime, "eager")
    mined = with_hard_negatives(chosen, detector, ["small", "other"], batch_size=8)
    assert sum(len(one.hard_negatives) for one in mined if one.hard_negatives is not None) > 40
    for before, after in zip(chosen, mined, strict=True):
        others = [one.name for one in fields(before) if one.name != "hard_negatives"]
        assert all(getattr(after, name) is getattr(before, name) for name in others)
        assert after.hard_negatives is not None
        gold = {(first, last) for first, last, _ in before.gold.tolist()}
        spans, logit = detector.detect(batch_of([before.tokens], tokenizer), HARD_FROM)
        order = np.argsort(-logit, kind="stable")
        detected = [(int(spans.first[row]), int(spans.last[row])) for row in order]
        expected = [span for span in detected if span not in gold][:MAX_HARD]
        assert sorted(map(tuple, after.hard_negatives.tolist())) == sorted(expected)
    options = replace(runtime.model.options, negatives_per_mention=0.01)
    batch = SunerCollator(TYPES, tokenizer, options, "classification")(mined[:8])
    candidates = candidate_words(batch)
    hard = [one.hard_negatives.tolist() for one in mined[:8] if one.hard_negatives is not None]
    assert {(window, *span) for window, spans in enumerate(hard) for span in spans} <= set(candidates)
    labelled = {candidates[candidate] for candidate, _ in batch["labels"].tolist()}
    assert labelled == set(map(tuple, batch["gold"].tolist()))


def test_hard_negatives_are_found_with_the_style_of_the_corpus(runtime: TorchSuner, examples: list[Example]) -> None:
    styles = []

    class Watched(TorchSuner):
        def with_style(self, corpus: str | None) -> TorchSuner:
            styles.append(corpus)
            return super().with_style(corpus)

    chosen = [examples[0], replace(examples[1], corpus=1), examples[2]]
    with_hard_negatives(chosen, Watched(runtime.model, runtime.config, runtime.tokenizer), ["small", "other"])
    assert styles == ["small", "other"]


# --- development data


def test_without_types_each_span_is_one_mention() -> None:
    double = Document.from_spans(
        "Paris sang for Tom .",
        [(0, 5, "band"), (0, 5, "city"), (15, 18, "person")],
        annotated=["band", "city", "person"],
    )
    merged = without_types(Corpus("double", [double, Document("Nobody came .")], TYPES))
    assert merged.types == (EntityType("mention"),)
    assert [(one.start, one.end, one.text, one.label) for one in merged.documents[0].entities] == [
        (0, 5, "Paris", "mention"),
        (15, 18, "Tom", "mention"),
    ]
    assert merged.documents[1].entities == ()
    assert all(merged.annotated(one) == {"mention"} for one in merged)


def test_documents_with_unknown_mentions_do_not_count_for_the_detector() -> None:
    whole = Document.from_spans("Paris sang for Tom .", [(0, 5, "band"), (15, 18, "person")])
    part = Document.from_spans("Tom went to Rome .", [(0, 3, "person")], annotated=["person"])
    assert [one.text for one in without_types(Corpus("mixed", [part, whole], TYPES))] == [whole.text]
    assert [one.text for one in without_types(Corpus("parts", [part], TYPES))] == [part.text]  # better than nothing


def plain(runtime: TorchSuner, **options: Any) -> TorchSuner:
    """The model before anything was chosen on development data."""
    chosen = replace(runtime.model.options, **({"detection_threshold": 0.5, "detection_weight": 0.0} | options))
    model = deepcopy(runtime.model)
    model.options = chosen
    return TorchSuner(model, replace(runtime.config, scale=1.0, bias=0.0, threshold=0.5), runtime.tokenizer)


def best_f1(runtime: TorchSuner, dev: EvaluationSet) -> float:
    """The best F1 of a model at any of the margins, by running it."""
    runtime.config = replace(runtime.config, scale=FINE_SCALE)
    candidates = dev.candidates(runtime, 0.0)
    return max(candidates.scores(float(1 / (1 + np.exp(-FINE_SCALE * x)))).f1 for x in MARGINS)


@pytest.fixture(scope="module")
def dev(data_folder: Path, runtime: TorchSuner) -> EvaluationSet:
    return EvaluationSet(load_corpus(data_folder / "small", "dev"), runtime)


@pytest.mark.parametrize("kind", KINDS)
def test_detection_is_chosen_by_the_best_f1(kind: str, runtime: TorchSuner, dev: EvaluationSet) -> None:
    given = plain(worse(runtime, kind))
    each = {
        (threshold, weight): best_f1(plain(given, detection_threshold=threshold, detection_weight=weight), dev)
        for threshold in DETECTION_THRESHOLDS
        for weight in DETECTION_WEIGHTS
    }
    default = dev.evaluate(given)["f1"] / 100
    before = given.config
    choose_detection(given, [dev])
    options = given.model.options
    assert each[options.detection_threshold, options.detection_weight] == pytest.approx(max(each.values()), abs=1e-6)
    assert max(each.values()) >= default - 1e-9
    assert given.config.options["detection_threshold"] == options.detection_threshold  # these are saved
    assert given.config.options["detection_weight"] == options.detection_weight
    assert (given.config.scale, given.config.bias) == (before.scale, before.bias)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["two-stage", "fused"])
def test_chosen_thresholds_are_never_worse_on_dev_than_the_defaults(
    form: str, kind: str, runs: dict[str, Path], recipe_values: dict[str, Any], data_folder: Path
) -> None:
    given = plain(worse(load_runtime(runs[form] / "model"), kind))
    dev = EvaluationSet(load_corpus(data_folder / "small", "dev"), given)
    default = dev.evaluate(given)["f1"]
    recipe = suner_recipe(recipe_values, options={"form": form}, training={"threshold_from": "dev"})
    SunerTraining().finish(given, recipe, [dev])
    assert dev.evaluate(given)["f1"] >= default - 1e-9


def test_thresholds_are_chosen_on_dev_only_if_the_recipe_asks_for_it(
    runtime: TorchSuner, recipe_values: dict[str, Any], dev: EvaluationSet
) -> None:
    given = plain(worse(runtime, "eager"))  # it makes mistakes to calibrate on
    f1 = dev.evaluate(given)["f1"]
    SunerTraining().finish(given, suner_recipe(recipe_values), [dev])
    assert (given.model.options.detection_threshold, given.model.options.detection_weight) == (0.5, 0.0)
    assert dev.evaluate(given)["f1"] == pytest.approx(f1)
    assert given.config.scale != 1.0  # scores are calibrated all the same


# --- incomplete annotation


@pytest.mark.slow
def test_the_detector_does_not_learn_to_reject_types_that_a_document_does_not_annotate(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    """In three of four documents only persons are labelled; if that is not said, other mentions are negatives there."""
    found = {}
    for said in (True, False):
        folder = tmp_path / str(said)
        shutil.copytree(data_folder / "small", folder / "small")
        whole = list(load_corpus(folder / "small", "train"))
        parts = [
            Document.from_spans(
                one.text,
                [(e.start, e.end, e.label) for e in one.entities if e.label == "person" or not number % 4],
                annotated=["person"] if said and number % 4 else None,
            )
            for number, one in enumerate(whole)
        ]
        write(parts, folder / "small" / "train.jsonl")
        training = {"max_steps": 100, "eval_steps": 100, "learning_rate": 3e-3, "checkpoints": False}
        recipe = suner_recipe(recipe_values, training=training, stages={"classification": {"max_steps": 1}})
        loaded = load_runtime(train(recipe, output=folder / "run", data=folder))
        dev = load_corpus(data_folder / "small", "dev")
        detector = DetectorRuntime(loaded)
        found[said] = EvaluationSet(without_types(dev), detector).evaluate(detector)
    assert found[True]["recall"] > 65
    assert found[True]["recall"] > found[False]["recall"] + 10
    assert found[True]["f1"] > found[False]["f1"] + 5


# --- the recipe of the paper


@pytest.fixture(scope="module")
def paper(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of recipes/suner/paper.yaml with another encoder and corpus, and fewer and larger steps."""
    training = recipe_values["training"]
    changes = {
        "encoder": recipe_values["encoder"],
        "data": recipe_values["data"],
        "options": {"detector_size": 32, "matcher_size": 16, "vector_size": 16},
        "training": {"max_steps": 100, "eval_steps": 50, "learning_rate": 3e-3, "checkpoints": False},
    }
    changes["training"] |= {name: training[name] for name in ("batch_size", "dataloader_workers")}
    recipe = changed_recipe(yaml.safe_load((ROOT / "recipes" / "suner" / "paper.yaml").read_text("utf-8")), **changes)
    folder = tmp_path_factory.mktemp("paper")
    train(recipe, output=folder, data=data_folder)
    return folder


def test_the_recipe_of_the_paper_trains(paper: Path) -> None:
    assert metrics_of(paper)["test"]["small"]["f1"] > 80
    losses = [row["loss"] for row in curve_of(paper, "curve-classification") if "loss" in row]
    assert losses[-1] < losses[0] < 100  # equation 13 as printed is negative in the end


def test_the_recipe_of_the_paper_keeps_its_thresholds_and_scores_without_the_detector(
    paper: Path, data_folder: Path
) -> None:
    loaded = load_runtime(paper / "model")
    options = loaded.model.options
    assert (options.detection_threshold, options.match_threshold, options.detection_weight) == (0.5, 0.4, 0.0)
    assert float(loaded.model.log_scale.detach().exp()) == pytest.approx(1 / 0.07)  # τ is not learned
    dev = EvaluationSet(load_corpus(data_folder / "small", "dev"), loaded)
    for runtime in (loaded, worse(loaded, "confused")):  # calibration changes scores, not what is an entity
        found = dev.candidates(runtime, runtime.config.threshold).proposals
        runtime.config = replace(runtime.config, scale=1.0, bias=0.0, threshold=0.5)
        plain = dev.candidates(runtime, 0.5).proposals
        assert len(plain.score) > 20
        assert all(map(np.array_equal, found[:4], plain[:4]))


# --- whole runs


def two_corpora(data_folder: Path, folder: Path) -> list[dict[str, Any]]:
    """The small corpus, and one in which only persons are annotated."""
    shutil.copytree(data_folder / "small", folder / "small")
    people = [Document(one.text, tuple(e for e in one.entities if e.label == "person")) for one in documents()[:20]]
    write(people, folder / "only_people" / "train.jsonl")
    return [{"path": "small"}, {"path": "only_people", "dev_share": 0.2}]


@pytest.mark.parametrize("form", FORMS)
def test_scores_are_per_corpus_and_their_mean(
    form: str, recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    corpora = two_corpora(data_folder, tmp_path)
    options = {"form": form, "dataset_prefix": True}
    recipe = suner_recipe(recipe_values, options=options, data={"corpora": corpora}, training=BRIEF)
    folder = train(recipe, output=tmp_path / "run", data=tmp_path)
    stages = ("curve-detection", "curve-classification") if form == "two-stage" else ("curve",)
    for name in stages:
        rows = [row for row in curve_of(tmp_path / "run", name) if "eval_f1" in row]
        assert len(rows) >= 2
        for row in rows:
            assert row["eval_f1"] == pytest.approx((row["eval_small_f1"] + row["eval_only_people_f1"]) / 2)
    assert set(metrics_of(tmp_path / "run")["dev"]) == {"small", "only_people"}
    assert load_config(folder).datasets == ("small", "only_people")
    loaded = load_runtime(folder)
    assert loaded.prefix == []
    assert loaded.with_style("only_people").prefix == dataset_prefix("only_people", loaded.tokenizer)
    dev = EvaluationSet(load_corpus(tmp_path / "small", "dev"), loaded)
    assert dev.evaluate(loaded) == pytest.approx(metrics_of(tmp_path / "run")["dev"]["small"])


def test_without_prefixes_the_model_has_no_styles(runs: dict[str, Path], recipe_values: dict[str, Any]) -> None:
    assert load_config(runs["two-stage"] / "model").datasets == ()
    assert not suner_recipe(recipe_values).system_options().dataset_prefix


def test_options_that_the_fused_form_needs_are_checked_with_the_recipe(recipe_values: dict[str, Any]) -> None:
    with pytest.raises(OnomaError, match="attention_mask"):
        suner_recipe(recipe_values, options={"form": "fused", "attention_mask": False})


VARIANTS: list[dict[str, Any]] = [
    {"options": {"markers": False}},
    {"options": {"attention_mask": False}},
    {"options": {"tied_positions": False}},
    {"options": {"rejection": "cosine", "positive_in_denominator": False, "spans": "markers", "types": "name"}},
    {"options": {"form": "fused", "pooling": "mean", "candidates": "flat"}, "data": {"max_types_per_batch": 2}},
    {"options": {"form": "one-stage", "rejection": "cosine"}, "data": {"drop_empty_windows": False}},
    {"options": {"marker_identity": "numbered", "spans": "markers", "learned_temperature": False}},
    {"options": {"form": "fused", "marker_identity": "paired"}},
    {"options": {"hard_negatives": True}, "training": {"threshold_from": "dev", "head_learning_rate": 1e-2}},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_all_options_can_be_trained_and_loaded(
    changes: dict[str, Any], recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    changes = {
        **changes,
        "training": {"max_steps": 4, "eval_steps": 2, "checkpoints": False} | changes.get("training", {}),
    }
    folder = train(suner_recipe(recipe_values, **changes), output=tmp_path / "run", data=data_folder)
    loaded = load_runtime(folder)
    dev = EvaluationSet(load_corpus(data_folder / "small", "dev"), loaded)
    assert dev.evaluate(loaded) == pytest.approx(metrics_of(tmp_path / "run")["dev"]["small"])


# --- the detector of another model


@pytest.fixture
def trained_stages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages that are trained."""
    stages: list[str] = []
    train_stage = run._train_stage

    def watched(recipe: Any, stage: Any, *rest: Any) -> Any:
        stages.append(stage.name)
        return train_stage(recipe, stage, *rest)

    monkeypatch.setattr(run, "_train_stage", watched)
    return stages


def weights_of(model: Path, *parts: str) -> dict[str, Tensor]:
    weights = load_file(model / "model.safetensors")
    return {name: one for name, one in weights.items() if name.startswith(parts)}


DETECTOR = ("detection_encoder.", "detector.")


def test_a_trained_detector_is_used_without_training_it(
    runs: dict[str, Path], recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path, trained_stages: list[str]
) -> None:
    source = runs["two-stage"] / "model"
    for number, folder in enumerate((source, source.parent)):  # the folder of a run is accepted as well
        recipe = suner_recipe(recipe_values, parts={"detector": str(folder)}, training=BRIEF)
        model = train(recipe, output=tmp_path / str(number), data=data_folder)
        before, after = weights_of(source, *DETECTOR), weights_of(model, *DETECTOR)
        assert before.keys() == after.keys() != set()
        assert all(torch.equal(before[name], after[name]) for name in before)
        assert not torch.equal(weights_of(model, "markers")["markers"], weights_of(source, "markers")["markers"])
    assert trained_stages == ["classification", "classification"]


def test_the_styles_of_a_trained_detector_are_kept(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    corpora, prefix = two_corpora(data_folder, tmp_path), {"dataset_prefix": True}
    first = suner_recipe(recipe_values, options=prefix, data={"corpora": corpora}, training=BRIEF)
    source = train(first, output=tmp_path / "first", data=tmp_path)
    second = suner_recipe(recipe_values, options=prefix, parts={"detector": str(source)}, training=BRIEF)
    model = train(second, output=tmp_path / "second", data=data_folder)
    assert load_config(model).datasets == ("small", "only_people")


def test_a_detector_of_another_shape_is_refused(
    runs: dict[str, Path], recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    parts = {"detector": str(runs["two-stage"] / "model")}
    recipe = suner_recipe(recipe_values, parts=parts, options={"detector_size": 24})
    with pytest.raises(OnomaError, match="no detector that fits"):
        train(recipe, output=tmp_path / "run", data=data_folder)
    for form in ("one-stage", "fused"):
        recipe = suner_recipe(recipe_values, parts={"detector": str(runs[form] / "model")})
        with pytest.raises(OnomaError, match="no detector that fits"):
            train(recipe, output=tmp_path / form, data=data_folder)


def test_only_the_two_stage_form_takes_a_detector(
    runs: dict[str, Path], recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    parts = {"detector": str(runs["two-stage"] / "model")}
    recipe = suner_recipe(recipe_values, parts=parts, options={"form": "fused"})
    with pytest.raises(OnomaError, match="only a two-stage SUNER"):
        train(recipe, output=tmp_path / "run", data=data_folder)


def test_a_folder_without_a_model_is_refused_as_detector(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    recipe = suner_recipe(recipe_values, parts={"detector": str(tmp_path)})
    with pytest.raises(OnomaError, match=r"is not a model folder.*config\.json"):
        train(recipe, output=tmp_path / "run", data=data_folder)
