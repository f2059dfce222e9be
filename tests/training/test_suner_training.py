"""How SUNER learns: its batches, its negatives, what is chosen on development data, and that all three forms learn."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import onoma
from onoma import Corpus, Document, EntityType, OnomaError
from onoma.backends.torch import load
from onoma.batches import collate
from onoma.config import ModelConfig
from onoma.data import load_corpus, write
from onoma.subwords import Pieces, Subwords
from onoma.systems.suner.candidates import dataset_prefix
from onoma.systems.suner.options import Stage as StageName
from onoma.systems.suner.options import SunerOptions
from onoma.systems.suner.torch_runtime import TorchSuner
from onoma.training.development import DevelopmentSet
from onoma.training.examples import Example, make_examples
from onoma.training.recipe import Recipe, load_recipe
from onoma.training.run import train
from onoma.training.suner import (
    DETECTION_THRESHOLDS,
    DETECTION_WEIGHTS,
    HARD_FROM,
    MARGINS,
    MOST_HARD,
    SunerCollator,
    SunerTraining,
    choose_detection,
    sample_negatives,
    typeless,
    with_mistakes,
)
from tiny import TYPES, corpus, documents

torch.set_num_threads(1)
FORMS = ("two-stage", "fused", "one-stage")
OPTIONS = {"hidden": 32, "match_hidden": 16, "size": 16, "max_width": 8}


def recipe_of(values: dict[str, Any], **changes: Any) -> Recipe:
    """A recipe for the small corpus; dictionaries are changed, other values replaced."""
    copied = deepcopy(values) | {"system": "suner", "options": dict(OPTIONS)}
    for part, change in changes.items():
        copied[part] = {**copied.get(part, {}), **change} if isinstance(change, dict) else change
    return load_recipe(copied)


def tiny_steps(**changes: Any) -> dict[str, Any]:
    return {"max_steps": 2, "evaluate_every": 1, "checkpoints": False} | changes


def metrics_of(run: Path) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((run / "metrics.json").read_text("utf-8"))
    return metrics


def curve_of(run: Path, name: str = "curve") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def runs(values: dict[str, Any], data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a run of each form."""
    root = tmp_path_factory.mktemp("suner")
    for form in FORMS:
        training = {"max_steps": 100, "evaluate_every": 25, "rate": 3e-3, "checkpoints": False}
        train(recipe_of(values, options={"form": form}, training=training), output=root / form, data=data)
    return {form: root / form for form in FORMS}


# --- all forms learn


@pytest.mark.parametrize("form", FORMS)
def test_a_small_corpus_is_learned(form: str, runs: dict[str, Path]) -> None:
    metrics = metrics_of(runs[form])
    assert metrics["dev"]["small"]["f1"] > 80
    assert metrics["test"]["small"]["f1"] > 80


@pytest.mark.parametrize("form", FORMS)
def test_the_saved_model_scores_as_in_training(form: str, runs: dict[str, Path], data: Path) -> None:
    report = onoma.evaluate(runs[form] / "model", data / "small")
    assert 100 * report.strict.micro.f1 == pytest.approx(metrics_of(runs[form])["test"]["small"]["f1"])


@pytest.mark.parametrize("form", FORMS)
def test_what_is_found_stands_where_it_is_said_to_stand(form: str, runs: dict[str, Path]) -> None:
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


# --- batches


def examples_of(given: Corpus, subwords: Subwords) -> list[Example]:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    return make_examples([given], numbers, subwords, max_tokens=130, overlap=8, drop_empty=False)[0]


@pytest.fixture(scope="module")
def examples(subwords: Subwords) -> list[Example]:
    return examples_of(corpus(), subwords)


def collator(subwords: Subwords, stage: StageName = "classification", **options: Any) -> SunerCollator:
    form = stage if stage in ("fused", "one-stage") else "two-stage"
    chosen = SunerOptions(**({"form": form} | options))
    return SunerCollator(TYPES, subwords, chosen, stage, corpora=["the_small", "other"])


def candidate_words(batch: dict[str, np.ndarray]) -> list[tuple[int, int, int]]:
    """The candidates of a batch as words, found by their tokens."""
    first, last = batch["first"].tolist(), batch["last"].tolist()
    rows = batch["marks"].tolist()
    return [(window, first[window].index(begin), last[window].index(end)) for window, _, _, begin, end in rows]


@pytest.mark.parametrize("stage", ["classification", "fused"])
def test_mentions_are_candidates_with_their_types(stage: Any, examples: list[Example], subwords: Subwords) -> None:
    chosen = examples[:40:3]
    batch = collator(subwords, stage)(chosen)
    spans = candidate_words(batch)
    assert spans == sorted(set(spans))
    found = sorted((*spans[candidate], kind) for candidate, kind in batch["labels"].tolist())
    assert found == sorted((w, *row) for w, example in enumerate(chosen) for row in example.gold.tolist())
    golden = {(w, *row[:2]) for w, example in enumerate(chosen) for row in example.gold.tolist()}
    assert set(map(tuple, batch["gold"].tolist())) == golden < set(spans)  # and there are others
    assert batch["known"].shape == (len(spans), len(TYPES))
    for (window, opening, closing, begin, end), (_, first, last) in zip(batch["marks"].tolist(), spans, strict=True):
        assert batch["positions"][window, opening] == begin == batch["first"][window, first]
        assert batch["positions"][window, closing] == end == batch["last"][window, last]
        assert batch["roles"][window, [opening, closing]].tolist() == [2, 3]


@pytest.mark.parametrize("options", [{"negatives": 0.0}, {"reject": "cosine"}], ids=str)
def test_the_papers_candidates_are_mentions_alone(
    options: dict[str, Any], examples: list[Example], subwords: Subwords
) -> None:
    batch = collator(subwords, **options)(examples[:30])
    assert candidate_words(batch) == list(map(tuple, batch["gold"].tolist()))
    assert set(batch["labels"][:, 0].tolist()) == set(range(len(batch["marks"])))


def test_more_negatives_where_more_are_asked_for(examples: list[Example], subwords: Subwords) -> None:
    numbers = [len(collator(subwords, negatives=share)(examples[:30])["marks"]) for share in (0.0, 0.5, 1.0, 4.0)]
    assert numbers == sorted(set(numbers))


def test_what_is_known_is_said_of_each_candidate(subwords: Subwords) -> None:
    both = Document.from_spans("Tom sang .", [(0, 3, "person")], annotated=["person", "city"])
    bands = Document.from_spans("Tom sang .", [], annotated=["band"])
    batch = collator(subwords, negatives=30.0)(examples_of(Corpus("partly", [both, bands], TYPES), subwords))
    windows = batch["marks"][:, 0].tolist()
    assert set(windows) == {0, 1}
    assert batch["known"].tolist() == [[[False, True, True], [True, False, False]][window] for window in windows]


def test_a_span_with_two_types_is_one_candidate(subwords: Subwords) -> None:
    double = Document.from_spans("Paris sang for Tom .", [(0, 5, "band"), (0, 5, "city"), (15, 18, "person")])
    batch = collator(subwords, negatives=0.0)(examples_of(Corpus("double", [double], TYPES), subwords))
    assert candidate_words(batch) == [(0, 0, 0), (0, 3, 3)]
    assert sorted(map(tuple, batch["labels"].tolist())) == [(0, 0), (0, 1), (1, 2)]
    assert batch["gold"].tolist() == [[0, 0, 0], [0, 3, 3]]


def test_the_same_batch_is_the_same_again(examples: list[Example], subwords: Subwords) -> None:
    first, again = (collator(subwords)(examples[:6]) for _ in range(2))
    assert all(bool((first[name] == again[name]).all()) for name in first)


def test_windows_without_mentions_make_a_batch(subwords: Subwords) -> None:
    empty = examples_of(Corpus("empty", [Document("We eat soup and bread every day .")] * 2, TYPES), subwords)
    batch = collator(subwords)(empty)
    assert batch["gold"].shape == (0, 3)
    assert batch["labels"].shape == (0, 2)
    assert len(batch["marks"]) > 0
    assert collator(subwords, "one-stage")(empty)["labels"].shape == (0, 4)
    assert collator(subwords, negatives=0.0)(empty)["marks"].shape == (0, 5)


@pytest.mark.parametrize("stage", ["detection", "classification", "fused", "one-stage"])
@pytest.mark.parametrize("wanted", [True, False])
def test_the_name_of_its_corpus_stands_before_a_text_except_between_markers(
    stage: Any, wanted: bool, examples: list[Example], subwords: Subwords
) -> None:
    chosen = [examples[0], replace(examples[1], corpus=1)]
    batch = collator(subwords, stage, dataset_prefix=wanted)(chosen)
    prefixes = [dataset_prefix(name, subwords) for name in ("the_small", "other")]
    for row, (example, prefix) in enumerate(zip(chosen, prefixes, strict=True)):
        before = prefix if wanted and stage != "classification" else []
        text = [subwords.first, *before, *example.pieces.ids.tolist(), subwords.last]
        assert batch["ids"][row, : len(text)].tolist() == text
        assert batch["first"][row, 0] == 1 + len(before)


# --- negatives


@st.composite
def windows(draw: st.DrawFn) -> tuple[Example, np.ndarray]:
    """A window and some of its spans as mentions, maybe with mistakes of a detector."""
    words = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, words - 1), st.integers(0, words - 1)).map(sorted)
    spans = np.array(draw(st.lists(pairs, max_size=4)), np.int64).reshape(-1, 2)
    hard = draw(st.none() | st.lists(pairs, max_size=3))
    pieces = Pieces(np.arange(words, dtype=np.int32), np.ones(words, np.int32))
    gold = np.concatenate([spans, np.zeros((len(spans), 1), np.int64)], axis=1)
    mistakes = None if hard is None else np.array(hard, np.int64).reshape(-1, 2)
    return Example(pieces, gold, np.array([0]), 0, mistakes), spans


@given(windows(), st.floats(0.1, 5.0), st.integers(0, 1000))
def test_sampled_negatives_stay_within_their_window(
    window: tuple[Example, np.ndarray], share: float, seed: int
) -> None:
    example, spans = window
    found = sample_negatives(example, spans, share, np.random.default_rng(seed))
    words = len(example.pieces.counts)
    assert all(0 <= first <= last < words for first, last in found)
    hard = [] if example.hard is None else example.hard.tolist()
    assert [list(one) for one in found[: len(hard)]] == hard
    count = int(np.ceil(share * max(len(spans), 1)))
    assert len(found) - len(hard) <= count + -(-count // 2)


def test_sampled_negatives_are_near_mentions_and_elsewhere() -> None:
    pieces = Pieces(np.arange(40, dtype=np.int32), np.ones(40, np.int32))
    example = Example(pieces, np.array([[20, 21, 0]]), np.array([0]), 0)
    generator = np.random.default_rng(0)
    found = [one for _ in range(50) for one in sample_negatives(example, np.array([[20, 21]]), 2.0, generator)]
    near = [one for one in found if abs(one[0] - 20) <= 2 and abs(one[1] - 21) <= 2]
    assert len(near) > 50
    assert len({first for first, _ in found}) > 20


@pytest.fixture(scope="module")
def backend(runs: dict[str, Path]) -> TorchSuner:
    loaded = load(runs["two-stage"] / "model", "cpu")
    assert isinstance(loaded, TorchSuner)
    return loaded


@torch.no_grad()
def worse(backend: TorchSuner, kind: str) -> TorchSuner:
    """The model with a detector that is unsure, or a classifier that is confused; or as it is."""
    model = deepcopy(backend.model)
    torch.manual_seed(0)
    if kind != "as it is":
        model.detector.start_linear.bias.add_({"eager": 6.0, "shy": -4.0, "confused": 3.0}[kind])
    if kind == "confused":
        for weight in (*model.span_vectors.parameters(), *model.detector.parameters()):
            weight.add_(0.5 * weight.abs().mean() * torch.randn_like(weight))
    return TorchSuner(model, backend.config, backend.subwords)


KINDS = ["as it is", "eager", "shy", "confused"]


def test_mined_negatives_are_the_likeliest_spans_that_are_no_mention(
    backend: TorchSuner, examples: list[Example], subwords: Subwords
) -> None:
    chosen = examples[:20] + [replace(one, corpus=1) for one in examples[-20:]]
    detector = worse(backend, "eager")
    mined = with_mistakes(chosen, detector, ["small", "other"], batch_size=8)
    assert sum(len(one.hard) for one in mined if one.hard is not None) > 40
    for before, after in zip(chosen, mined, strict=True):
        assert replace(after, hard=None) == before
        assert after.hard is not None
        gold = {(first, last) for first, last, _ in before.gold.tolist()}
        spans, logit = detector.detect(collate([before.pieces], subwords), HARD_FROM)
        order = np.argsort(-logit, kind="stable")
        detected = [(int(spans.first[row]), int(spans.last[row])) for row in order]
        expected = [span for span in detected if span not in gold][:MOST_HARD]
        assert sorted(map(tuple, after.hard.tolist())) == sorted(expected)
    batch = collator(subwords, negatives=0.01)(mined[:8])
    candidates = set(candidate_words(batch))
    assert {(w, *span) for w, one in enumerate(mined[:8]) for span in map(tuple, one.hard.tolist())} <= candidates  # type: ignore[union-attr]
    labelled = {candidate_words(batch)[candidate] for candidate, _ in batch["labels"].tolist()}
    assert labelled == set(map(tuple, batch["gold"].tolist()))


def test_mining_uses_the_name_of_the_corpus(backend: TorchSuner, examples: list[Example]) -> None:
    asked = []

    class Watched(TorchSuner):
        def style(self, corpus: str | None) -> TorchSuner:
            asked.append(corpus)
            return super().style(corpus)

    chosen = [examples[0], replace(examples[1], corpus=1), examples[2]]
    with_mistakes(chosen, Watched(backend.model, backend.config, backend.subwords), ["small", "other"])
    assert asked == ["small", "other"]


# --- development data


def test_without_types_each_span_is_one_mention() -> None:
    double = Document.from_spans(
        "Paris sang for Tom .",
        [(0, 5, "band"), (0, 5, "city"), (15, 18, "person")],
        annotated=["band", "city", "person"],
    )
    blind = typeless(Corpus("double", [double, Document("Nobody came .")], TYPES))
    assert blind.types == (EntityType("mention"),)
    assert [(one.start, one.end, one.text, one.label) for one in blind.documents[0].entities] == [
        (0, 5, "Paris", "mention"),
        (15, 18, "Tom", "mention"),
    ]
    assert blind.documents[1].entities == ()
    assert all(blind.annotated(one) == {"mention"} for one in blind)


def plain(backend: TorchSuner, **options: Any) -> TorchSuner:
    """The model as it is when training ends: nothing has been chosen on development data."""
    chosen = replace(backend.model.options, **({"detection_threshold": 0.5, "detection_weight": 0.0} | options))
    model = deepcopy(backend.model)
    model.options = chosen
    return TorchSuner(model, replace(backend.config, scale=1.0, bias=0.0, threshold=0.5), backend.subwords)


def best_f1(backend: TorchSuner, dev: DevelopmentSet) -> float:
    """The best F1 of a model at any of the margins, by really running it."""
    backend.config = replace(backend.config, scale=0.05)
    proposed = dev.propose(backend, 0.0)
    return max(dev.scores(proposed, float(1 / (1 + np.exp(-0.05 * x))))["f1"] for x in MARGINS)


@pytest.fixture(scope="module")
def dev(data: Path, backend: TorchSuner) -> DevelopmentSet:
    return DevelopmentSet(load_corpus(data / "small", "dev"), backend)


@pytest.mark.parametrize("kind", KINDS)
def test_detection_is_chosen_by_the_best_f1(kind: str, backend: TorchSuner, dev: DevelopmentSet) -> None:
    given = plain(worse(backend, kind))
    each = {
        (threshold, weight): best_f1(plain(given, detection_threshold=threshold, detection_weight=weight), dev)
        for threshold in DETECTION_THRESHOLDS
        for weight in DETECTION_WEIGHTS
    }
    default = dev.evaluate(given)["f1"]
    before = given.config
    choose_detection(given, [dev])
    options = given.model.options
    assert each[options.detection_threshold, options.detection_weight] == pytest.approx(max(each.values()), abs=1e-6)
    assert max(each.values()) >= default - 1e-9
    assert given.config.options["detection_threshold"] == options.detection_threshold  # and it will be saved
    assert given.config.options["detection_weight"] == options.detection_weight
    assert (given.config.scale, given.config.bias) == (before.scale, before.bias)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["two-stage", "fused"])
def test_what_is_chosen_is_never_worse_than_the_defaults(
    form: str, kind: str, runs: dict[str, Path], values: dict[str, Any], data: Path
) -> None:
    loaded = load(runs[form] / "model", "cpu")
    assert isinstance(loaded, TorchSuner)
    given = plain(worse(loaded, kind))
    dev = DevelopmentSet(load_corpus(data / "small", "dev"), given)
    default = dev.evaluate(given)["f1"]
    recipe = recipe_of(values, options={"form": form}, training={"threshold_on": "dev"})
    SunerTraining().finish(given, recipe, [dev])
    assert dev.evaluate(given)["f1"] >= default - 1e-9


def test_the_papers_thresholds_stay_unless_asked(
    backend: TorchSuner, values: dict[str, Any], dev: DevelopmentSet
) -> None:
    given = plain(worse(backend, "eager"))  # which makes mistakes to learn from
    f1 = dev.evaluate(given)["f1"]
    SunerTraining().finish(given, recipe_of(values), [dev])
    assert (given.model.options.detection_threshold, given.model.options.detection_weight) == (0.5, 0.0)
    assert dev.evaluate(given)["f1"] == pytest.approx(f1)
    assert given.config.scale != 1.0  # but scores are calibrated


# --- whole runs


def two_corpora(data: Path, folder: Path) -> list[dict[str, Any]]:
    """The small corpus, and one in which only persons are annotated."""
    shutil.copytree(data / "small", folder / "small")
    people = [Document(one.text, tuple(e for e in one.entities if e.label == "person")) for one in documents()[:20]]
    write(people, folder / "only_people" / "train.jsonl")
    return [{"path": "small"}, {"path": "only_people", "dev_share": 0.2}]


@pytest.mark.parametrize("form", FORMS)
def test_two_corpora_are_learned_together_and_measured_apart(
    form: str, values: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    corpora = two_corpora(data, tmp_path)
    options = {"form": form, "dataset_prefix": True}
    recipe = recipe_of(values, options=options, data={"corpora": corpora}, training=tiny_steps())
    folder = train(recipe, output=tmp_path / "run", data=tmp_path)
    stages = ("curve-detection", "curve-classification") if form == "two-stage" else ("curve",)
    for name in stages:
        rows = [row for row in curve_of(tmp_path / "run", name) if "eval_f1" in row]
        assert len(rows) >= 2
        for row in rows:
            assert row["eval_f1"] == pytest.approx((row["eval_small_f1"] + row["eval_only_people_f1"]) / 2)
    assert set(metrics_of(tmp_path / "run")["dev"]) == {"small", "only_people"}
    assert ModelConfig.load(folder).options["datasets"] == ["small", "only_people"]
    loaded = load(folder, "cpu")
    assert isinstance(loaded, TorchSuner)
    assert loaded.prefix == []
    assert loaded.style("only_people").prefix == dataset_prefix("only_people", loaded.subwords)
    dev = DevelopmentSet(load_corpus(tmp_path / "small", "dev"), loaded)
    assert dev.evaluate(loaded) == pytest.approx(metrics_of(tmp_path / "run")["dev"]["small"])


def test_without_the_prefix_the_model_knows_no_corpora(runs: dict[str, Path], values: dict[str, Any]) -> None:
    config = ModelConfig.load(runs["two-stage"] / "model")
    assert "datasets" not in config.options
    assert not recipe_of(values).suner_options().dataset_prefix


def test_what_the_fused_form_cannot_do_without_is_said_before_training(values: dict[str, Any]) -> None:
    with pytest.raises(OnomaError, match="attention_mask"):
        recipe_of(values, options={"form": "fused", "attention_mask": False})


VARIANTS: list[dict[str, Any]] = [
    {"options": {"markers": False}},
    {"options": {"attention_mask": False}},
    {"options": {"tied_positions": False}},
    {"options": {"reject": "cosine", "positive_in_denominator": False, "spans": "markers", "types": "name"}},
    {"options": {"form": "fused", "pooling": "mean", "candidates": "flat"}, "data": {"most_types": 2}},
    {"options": {"form": "one-stage", "reject": "cosine"}, "data": {"drop_empty": False}},
    {"options": {"mined": True}, "training": {"threshold_on": "dev", "head_rate": 1e-2}},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_every_kind_of_model_can_be_trained_and_loaded(
    changes: dict[str, Any], values: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    changes = {**changes, "training": tiny_steps(max_steps=4, evaluate_every=2) | changes.get("training", {})}
    folder = train(recipe_of(values, **changes), output=tmp_path / "run", data=data)
    loaded = load(folder, "cpu")
    dev = DevelopmentSet(load_corpus(data / "small", "dev"), loaded)
    assert dev.evaluate(loaded) == pytest.approx(metrics_of(tmp_path / "run")["dev"]["small"])
