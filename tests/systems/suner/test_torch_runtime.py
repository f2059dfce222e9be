"""SUNER run by PyTorch: candidates and proposals against loops over single spans of single windows."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from onoma import EntityType, OnomaError, load
from onoma.decoding import Proposals
from onoma.extractor import Extractor
from onoma.inputs.batches import Batch
from onoma.inputs.tokenizer import WordTokenIds, WordTokenizer
from onoma.labels.examples import MarkedText
from onoma.labels.translation import LabelTranslator
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder, open_single
from onoma.models.weights import load_model, save_model
from onoma.reading import LazyModel, LoadedModel
from onoma.systems.suner.candidates import dataset_prefix
from onoma.systems.suner.marking import Candidates, mark, pair_numbers
from onoma.systems.suner.model import Marks, at_words
from onoma.systems.suner.torch_runtime import DetectorRuntime, TorchSuner
from tiny import TYPES, documents, train_tokenizer
from tiny_batches import batch_of
from tiny_suner import random_batch, tiny_suner

torch.set_num_threads(1)
COUNTS = ([1, 2, 1, 3, 1, 1], [2], [1, 1, 1, 2], [1, 1, 2])  # tokens of the words of four windows
FORMS = ["two-stage", "fused", "one-stage"]
Span = tuple[int, int]


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer([one.text for one in documents()]).save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder: Path) -> WordTokenizer:
    return WordTokenizer.load(tokenizer_folder)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return random_batch(COUNTS)


def make_runtime(tokenizer: WordTokenizer, family: str = "bert", **options: Any) -> TorchSuner:
    model = tiny_suner(family, {"vocab_size": 320}, **options)  # as many as the tokenizer has
    config = ModelConfig(
        "suner",
        max_tokens=30,
        overlap=4,
        scale=0.5,
        bias=-0.3,
        datasets=("small_news", "songs"),
        options=asdict(model.options),
    )
    return TorchSuner(model, config, tokenizer)


def type_rows() -> NDArray[np.float32]:
    rows = np.random.default_rng(1).normal(size=(3, 8))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def conflict(one: Span, other: Span, overlap: str) -> bool:
    shared = max(one[0], other[0]) <= min(one[1], other[1])
    if overlap == "nested":
        return (
            shared
            and not (one[0] <= other[0] and other[1] <= one[1])
            and not (other[0] <= one[0] and one[1] <= other[1])
        )
    return shared and overlap == "flat"


@torch.no_grad()
def slow_candidates(runtime: TorchSuner, window: Batch, threshold: float) -> dict[Span, float]:
    """The candidates of a single window and their logits, chosen one by one, best first."""
    model, options = runtime.model, runtime.model.options
    ids, mask, first, last = map(torch.from_numpy, (window.ids, window.mask, window.first, window.last))
    states = (model.detection_encoder or model.text_encoder)(input_ids=ids, attention_mask=mask).last_hidden_state
    words = int(window.words[0])
    logits = model.detector(*at_words(states, first, last), torch.tensor([words]))[0]
    spans = [(i, j) for i in range(words) for j in range(i, min(words, i + options.max_width))]
    likely = [span for span in spans if torch.sigmoid(logits[span]) >= threshold]
    chosen: list[Span] = []
    for span in sorted(likely, key=lambda span: -float(logits[span])):
        if not any(conflict(span, other, options.candidates) for other in chosen):
            chosen.append(span)
    return {span: float(logits[span]) for span in sorted(chosen[: options.max_candidates])}


@torch.no_grad()
def slow_scores(runtime: TorchSuner, window: Batch, rows: np.ndarray) -> dict[tuple[int, int, int], float]:
    """The score of every candidate of a single window for every type, by a full pass over text and markers."""
    model, options = runtime.model, runtime.model.options
    read = window.with_prefix(runtime.prefix)
    if options.form == "one-stage":
        words = int(window.words[0])
        found = {(i, j): 0.0 for i in range(words) for j in range(i, min(words, i + options.max_width))}
        read = window
    else:
        found = slow_candidates(runtime, read, options.detection_threshold)
        read = read if options.form == "fused" else window
    if not found:
        return {}
    spans = Candidates(np.zeros(len(found), np.int64), *np.array(list(found), np.int64).T)
    marked = mark(read, spans, tied=options.tied_positions, numbers=pair_numbers(spans, options))
    tokens = read.first[0, spans.first], read.last[0, spans.last]
    marks = Marks(*map(torch.from_numpy, (spans.window, marked.opening, marked.closing, *tokens)))
    if options.form == "one-stage" or not options.markers:
        states = model.text_encoder(input_ids=torch.from_numpy(read.ids)).last_hidden_state
        vectors = model.span_vectors(states[0, marks.first], states[0, marks.last])
        sim, nothing = model._similarities(vectors, torch.from_numpy(rows))
    else:
        states = model.marked_states(*map(torch.from_numpy, (marked.ids, marked.positions, marked.roles)))
        sim, nothing = model.match(states, marks, torch.from_numpy(rows))
    config = runtime.config
    return {
        (*span, kind): 1 / (1 + np.exp(-(config.scale * margin + config.bias)))
        for span, row, anchor, logit in zip(found, sim.tolist(), nothing.tolist(), found.values(), strict=True)
        for kind, margin in enumerate(value - anchor + options.detection_weight * logit for value in row)
    }


def proposed(found: Proposals) -> dict[Any, float]:
    return dict(zip(zip(*(column.tolist() for column in found[:4]), strict=True), found.score.tolist(), strict=True))


@pytest.mark.parametrize(("form", "markers"), [*((form, True) for form in FORMS), ("two-stage", False)])
def test_vectors_of_spans_are_those_that_are_compared_with_types(
    tokenizer: WordTokenizer, batch: Batch, form: str, markers: bool
) -> None:
    runtime, rows = make_runtime(tokenizer, form=form, markers=markers, detection_threshold=0.01), type_rows()
    found = runtime.propose(batch, rows, 0.0)
    spans = np.unique(np.stack(found[:3], axis=1), axis=0)
    vectors = runtime.span_vectors(batch, *spans.T)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    scale = runtime.config.scale * runtime.model.log_scale.exp().item()
    scores = proposed(found)
    for span, vector in zip(spans.tolist(), vectors, strict=True):
        first, second = (np.log(score) - np.log1p(-score) for score in (scores[*span, 0], scores[*span, 1]))
        assert first - second == pytest.approx(scale * vector @ (rows[0] - rows[1]), abs=2e-3)


# --- candidates


@pytest.mark.parametrize("form", ["two-stage", "fused"])
@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
@pytest.mark.parametrize("most", [64, 3])
def test_candidates_are_the_best_spans_without_conflicts(
    form: str, overlap: str, most: int, tokenizer: WordTokenizer, batch: Batch
) -> None:
    runtime = make_runtime(tokenizer, form=form, candidates=overlap, max_candidates=most)
    numbers = []
    for threshold in (0.5, 0.3, 0.0):
        spans, logit = runtime.detect(batch, threshold)
        found = dict(zip(zip(*(column.tolist() for column in spans), strict=True), logit.tolist(), strict=True))
        expected = {
            (window, *span): value
            for window in range(len(COUNTS))
            for span, value in slow_candidates(runtime, batch.take(np.array([window])), threshold).items()
        }
        assert found == pytest.approx(expected, abs=1e-4)
        assert spans.window.tolist() == sorted(spans.window.tolist())  # markers rely on it
        numbers.append(len(found))
    assert 0 < numbers[0] <= numbers[1] <= numbers[2]
    if overlap == "any" and most == 64:  # without a threshold, every span is one
        assert numbers[2] == sum(min(5, len(one) - i) for one in COUNTS for i in range(len(one)))


def test_a_detection_threshold_of_1_excludes_all_spans(tokenizer: WordTokenizer, batch: Batch) -> None:
    assert len(make_runtime(tokenizer, candidates="any").detect(batch, 1.0).logit) == 0


def test_the_detector_alone_returns_probabilities_of_mentions(tokenizer: WordTokenizer, batch: Batch) -> None:
    runtime = make_runtime(tokenizer, candidates="any", detection_threshold=0.35)
    alone = DetectorRuntime(runtime)
    assert (alone.config.threshold, alone.config.scale, alone.config.bias) == (0.35, 1.0, 0.0)
    rows = alone.encode_types([EntityType("mention")])
    found = alone.propose(batch, rows, 0.35)
    assert set(found.type.tolist()) == {0}
    spans, logit = runtime.detect(batch, 0.35)
    assert found.window.tolist() == spans.window.tolist()
    assert found.score == pytest.approx(1 / (1 + np.exp(-logit)))
    assert bool((found.score >= 0.35).all())


# --- proposals


VARIANTS: list[dict[str, Any]] = [
    *({"form": form} for form in FORMS),
    {"form": "fused", "spans": "markers", "detection_weight": 0.7},
    {"form": "two-stage", "detection_weight": 1.5, "candidates": "flat"},
    {"form": "two-stage", "markers": False},
    {"form": "two-stage", "tied_positions": False},
    {"form": "two-stage", "attention_mask": False},
    {"form": "two-stage", "rejection": "cosine", "match_threshold": 0.1},
    {"form": "fused", "rejection": "cosine", "match_threshold": 0.1, "detection_threshold": 0.3},
    *(
        {"form": form, "marker_identity": identity, "spans": "markers"}
        for form in ("two-stage", "fused")
        for identity in ("numbered", "paired")
    ),
]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_proposals_are_the_candidates_that_reach_the_floor(
    options: dict[str, Any], tokenizer: WordTokenizer, batch: Batch
) -> None:
    runtime, rows = make_runtime(tokenizer, **options), type_rows()
    expected = {
        (window, *key): score
        for window in range(len(COUNTS))
        for key, score in slow_scores(runtime, batch.take(np.array([window])), rows).items()
    }
    everything = proposed(runtime.propose(batch, rows, 0.0))
    assert everything == pytest.approx(expected, abs=1e-4)
    middle = float(np.mean(sorted(expected.values())[len(expected) // 2 - 1 :][:2]))  # between two scores
    high = {key: score for key, score in expected.items() if score >= middle}
    assert len(high) == len(expected) - len(expected) // 2
    assert proposed(runtime.propose(batch, rows, middle)) == pytest.approx(high, abs=1e-4)
    assert not proposed(runtime.propose(batch, rows, 1.0))


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("form", FORMS)
def test_windows_have_no_influence_on_each_other(form: str, family: str, tokenizer: WordTokenizer) -> None:
    batch, rows = random_batch(COUNTS, family), type_rows()
    runtime = make_runtime(tokenizer, family, form=form)
    alone = [proposed(runtime.propose(batch.take(np.array([window])), rows, 0.2)) for window in range(len(COUNTS))]
    assert sum(map(len, alone)) > 5
    for order in [*permutations(range(len(COUNTS)), 2), (3, 2, 1, 0)]:
        found = proposed(runtime.propose(batch.take(np.array(order)), rows, 0.2))
        expected = {(row, *key[1:]): score for row, window in enumerate(order) for key, score in alone[window].items()}
        assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("overlap", ["nested", "any"])
def test_windows_may_have_more_likely_spans_than_are_looked_at_first(
    overlap: str, tokenizer: WordTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = make_runtime(tokenizer, form="fused", detection_threshold=0.01, candidates=overlap)
    batch = random_batch([[1] * length for length in (1, 9, 2, 0, 5, 3)])
    expected = proposed(runtime.propose(batch, type_rows(), 0.0))
    for number in (1, 3):
        monkeypatch.setattr("onoma.systems.suner.torch_runtime._LIKELY_SPANS", number)
        assert proposed(runtime.propose(batch, type_rows(), 0.0)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_weights_that_change_are_not_prepared_once_and_for_all(
    form: str, tokenizer: WordTokenizer, batch: Batch
) -> None:
    runtime, rows = make_runtime(tokenizer, form=form), type_rows()
    before = proposed(runtime.propose(batch, rows, 0.0))
    with torch.no_grad():  # a training step
        for weight in runtime.model.parameters():
            weight.mul_(1.1)
    after = proposed(runtime.propose(batch, rows, 0.0))
    assert after != pytest.approx(before, abs=1e-3)
    runtime.prepare()  # as a model that is loaded
    assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(after, abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_the_score_of_a_type_does_not_depend_on_other_types(form: str, tokenizer: WordTokenizer, batch: Batch) -> None:
    runtime, rows = make_runtime(tokenizer, form=form), type_rows()
    together = proposed(runtime.propose(batch, rows, 0.0))
    for kind in range(len(rows)):
        single = proposed(runtime.propose(batch, rows[kind : kind + 1], 0.0))
        assert single == pytest.approx({(*key[:3], 0): s for key, s in together.items() if key[3] == kind}, abs=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_windows_without_words_have_no_proposals(form: str, tokenizer: WordTokenizer) -> None:
    runtime, rows = make_runtime(tokenizer, form=form, detection_threshold=0.0), type_rows()
    nothing = WordTokenIds(np.zeros(0, np.int32), np.zeros(0, np.int32))
    some = WordTokenIds(np.array([7, 8, 9], np.int32), np.array([1, 1, 1], np.int32))
    found = runtime.propose(batch_of([nothing, some, nothing], tokenizer), rows, 0.0)
    assert set(found.window.tolist()) == {1}
    assert len(runtime.propose(batch_of([nothing, nothing], tokenizer), rows, 0.0).score) == 0


@pytest.mark.parametrize("form", ["two-stage", "fused"])
def test_a_batch_without_candidates_has_no_proposals(form: str, tokenizer: WordTokenizer, batch: Batch) -> None:
    runtime = make_runtime(tokenizer, form=form, detection_threshold=0.999999)
    found = runtime.propose(batch, type_rows(), 0.0)
    assert [len(column) for column in found] == [0] * 5
    assert all(column.dtype.kind == "i" for column in found[:4])
    assert found.score.dtype == np.float32


@pytest.mark.parametrize("form", FORMS)
def test_a_model_in_training_proposes_without_dropout(form: str, tokenizer: WordTokenizer, batch: Batch) -> None:
    runtime = make_runtime(tokenizer, form=form)
    expected = proposed(runtime.propose(batch, type_rows(), 0.0))
    runtime.model.train()
    assert proposed(runtime.propose(batch, type_rows(), 0.0)) == pytest.approx(expected, abs=1e-6)


def test_the_one_stage_form_reads_windows_in_parts(
    tokenizer: WordTokenizer, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = make_runtime(tokenizer, form="one-stage")
    expected = proposed(runtime.propose(batch, type_rows(), 0.0))
    for numbers in (1, 700):  # of vectors at once: one window, and two
        monkeypatch.setattr("onoma.systems.suner.torch_runtime._MAX_SPAN_VALUES", numbers)
        assert proposed(runtime.propose(batch, type_rows(), 0.0)) == pytest.approx(expected, abs=1e-5)


def test_types_are_encoded_independently_of_each_other(tokenizer: WordTokenizer) -> None:
    runtime = make_runtime(tokenizer)
    rows = runtime.encode_types(TYPES)
    assert rows.shape == (len(TYPES), 8)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    for row, one in zip(rows, TYPES, strict=True):
        assert runtime.encode_types([one])[0] == pytest.approx(row, abs=1e-5)
    assert runtime.type_text(TYPES[1]) == "city: a large town"
    assert make_runtime(tokenizer, types="name").type_text(TYPES[1]) == "city"


# --- the style of a corpus


def test_the_prefix_is_the_name_of_the_corpus(tokenizer: WordTokenizer) -> None:
    prefix = dataset_prefix("large_town", tokenizer)
    assert tokenizer.tokenizer.decode(prefix[:-1]).replace(" ##", "") == "large town"
    assert prefix[-1] == tokenizer.sep
    assert tokenizer.cls not in prefix


@pytest.mark.parametrize("form", ["two-stage", "fused"])
def test_only_known_corpora_have_a_style(form: str, tokenizer: WordTokenizer, batch: Batch) -> None:
    runtime, rows = make_runtime(tokenizer, form=form, dataset_prefix=True, detection_threshold=0.1), type_rows()
    plain = proposed(runtime.propose(batch, rows, 0.0))
    for corpus in (None, "unheard_of"):
        assert proposed(runtime.with_style(corpus).propose(batch, rows, 0.0)) == plain
    styled = runtime.with_style("small_news")
    assert styled.prefix == dataset_prefix("small_news", tokenizer)
    assert proposed(runtime.propose(batch, rows, 0.0)) == plain  # the original has not changed
    assert proposed(styled.with_style(None).propose(batch, rows, 0.0)) == plain
    found = proposed(styled.propose(batch, rows, 0.0))
    assert found != plain
    expected = {
        (window, *key): score
        for window in range(len(COUNTS))
        for key, score in slow_scores(styled, batch.take(np.array([window])), rows).items()
    }
    assert found == pytest.approx(expected, abs=1e-4)
    assert max(last - batch.words[window] for window, _, last, _ in found) < 0


def test_the_style_also_applies_to_detection(tokenizer: WordTokenizer, batch: Batch) -> None:
    runtime = make_runtime(tokenizer, dataset_prefix=True)
    styled = runtime.with_style("songs")
    plain, found = runtime.detect(batch, 0.0).logit, styled.detect(batch, 0.0).logit
    assert len(plain) != len(found) or not np.allclose(plain, found, atol=1e-3)
    alone = DetectorRuntime(runtime).with_style("songs").propose(batch, np.zeros((1, 1), np.float32), 0.0)
    assert alone.score == pytest.approx(1 / (1 + np.exp(-found)))


# --- through the Extractor


TEXTS = [
    "Tom flew to Paris .",
    "",
    "  In\tOslo it rains,\nsays Maria Silva!  ",
    "We eat soup and bread every day . " * 6 + "Nobody has seen Ann since the concert in New York .",  # several windows
    "東京 Kyoto 🎵",
]


@pytest.mark.parametrize("form", FORMS)
def test_entities_have_exact_offsets_and_are_the_same_after_saving(
    form: str, tokenizer: WordTokenizer, tokenizer_folder: Path, tmp_path: Path
) -> None:
    runtime = make_runtime(tokenizer, form=form, detection_threshold=0.0)  # an untrained model then finds a lot
    save_model(runtime.model, runtime.config, tokenizer_folder, tmp_path)
    folder = ModelFolder(tmp_path, runtime.config)
    model = LoadedModel(folder, runtime, LabelTranslator(tmp_path, None))
    before = Extractor(tmp_path, [LazyModel(folder, lambda: model)])
    after = load(tmp_path, backend="torch", device="cpu")
    assert isinstance(after.runtime, TorchSuner)
    assert after.runtime.model.options == runtime.model.options
    assert after.config == runtime.config
    labels = {one.name: one.description for one in TYPES}
    for overlap in ("flat", "nested"):
        options: dict[str, Any] = {"threshold": 0.01, "overlap": overlap}
        found = before.extract(TEXTS, labels, **options)
        assert found[1] == []
        assert min(len(found[place]) for place in (0, 2, 3)) > 0
        for text, entities in zip(TEXTS, found, strict=True):
            for one in entities:
                assert text[one.start : one.end] == one.text
                assert one.text == one.text.strip() != ""
                assert one.label in labels
                assert 0.01 <= one.score <= 1
        assert after.extract(TEXTS, labels, **options) == found
        for text, entities in zip(TEXTS, found, strict=True):  # alone, and batched with others
            again = after.extract(text, dict(reversed(labels.items())), batch_size=1, **options)
            assert [one.key for one in again] == [one.key for one in entities]
            assert [one.score for one in again] == pytest.approx([one.score for one in entities], abs=1e-4)


def test_weights_of_another_form_are_refused(tokenizer: WordTokenizer, tokenizer_folder: Path, tmp_path: Path) -> None:
    runtime = make_runtime(tokenizer, form="fused")
    save_model(runtime.model, runtime.config, tokenizer_folder, tmp_path)
    replace(runtime.config, options={**runtime.config.options, "form": "two-stage"}).save(tmp_path)
    with pytest.raises(OnomaError, match="does not fit"):
        load_model(open_single(tmp_path, "load"))


def test_marked_examples_are_refused(tokenizer: WordTokenizer) -> None:
    runtime = make_runtime(tokenizer)
    with pytest.raises(OnomaError, match=r"\(suner\) takes no marked examples"):
        runtime.ask([EntityType("person")], [[MarkedText("Tom sang", ((0, 3),))]])
    assert runtime.ask([EntityType("person")], [()]) == pytest.approx(runtime.ask([EntityType("person")]))
