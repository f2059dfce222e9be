"""Training data with missing labels: dropping, relabelling and masking, and runs that use them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma import Corpus, Document, Extractor, OnomaError
from onoma.data import write
from onoma.inputs.tokenizer import WordTokenizer
from onoma.training.example_cache import prepare_data
from onoma.training.examples import Example, make_examples
from onoma.training.missing_labels import drop_mentions, mask_repeated, relabel
from onoma.training.recipe import Recipe, load_recipe
from onoma.training.run import train
from tiny import TYPES, corpus, document
from tiny_training import SHORT, changed_recipe, metrics_of, suner_recipe

torch.set_num_threads(1)


def keys(one: Document) -> set[tuple[int, int, str]]:
    return {entity.key for entity in one.entities}


def count(source: Corpus) -> int:
    return sum(len(one.entities) for one in source)


# --- texts that are evaluated


def test_texts_that_are_evaluated_are_not_trained_on(
    recipe_values: dict[str, Any], tokenizer: WordTokenizer, tmp_path: Path
) -> None:
    documents = corpus().documents
    for name, split, chosen in (
        ("one", "train", documents[:20]),
        ("one", "test", [replace(documents[0], text=documents[0].text.upper(), entities=())]),
        ("two", "train", documents[3:5]),
    ):
        write(Corpus(name, chosen), tmp_path / name / f"{split}.jsonl")
    one = {"path": "one", "dev": None}
    two = {"path": "two", "train": None, "dev": "train", "test": None}
    values = recipe_values | {"data": recipe_values["data"] | {"corpora": [one, two], "names": "labels"}}
    counts = {}
    for exclude in (False, True):
        recipe = load_recipe(values, [f"data.exclude_evaluated={str(exclude).lower()}"])
        prepared = prepare_data(recipe, tmp_path, tokenizer, tmp_path / "cache")
        counts[exclude] = prepared.counts.excluded_documents
        texts = {example.text for example in prepared.examples}
        assert ({documents[place].text for place in (0, 3, 4)} & texts == set()) == exclude
        assert documents[1].text in texts
    assert counts == {False: 0, True: 3}


# --- dropping


def test_the_share_of_dropped_mentions_is_the_rate() -> None:
    whole = corpus()
    for rate in (0.2, 0.5, 0.8):
        dropped = drop_mentions(whole, rate, 0)
        assert dropped.removed == count(whole) - count(dropped.corpus)
        assert dropped.removed / count(whole) == pytest.approx(rate, abs=0.07)
        assert [one.text for one in dropped.corpus] == [one.text for one in whole]
        assert dropped.corpus.types == whole.types


def test_a_higher_rate_drops_what_a_lower_one_drops() -> None:
    low, high = (drop_mentions(corpus(), rate, 3).corpus for rate in (0.3, 0.6))
    assert all(keys(one) >= keys(other) for one, other in zip(low, high, strict=True))
    assert count(low) > count(high)


def test_the_seed_decides_which_mentions_are_dropped() -> None:
    first, again, other = (drop_mentions(corpus(), 0.5, seed).corpus.documents for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_types_of_one_span_are_dropped_together() -> None:
    double = [Document.from_spans("Tom sang", [(0, 3, "person"), (0, 3, "city")])] * 40
    dropped = drop_mentions(Corpus("double", double, TYPES), 0.5, 0)
    assert {len(one.entities) for one in dropped.corpus} == {0, 2}
    assert dropped.removed == sum(2 for one in dropped.corpus if not one.entities)


def test_the_same_mentions_are_dropped_for_every_system(
    recipe_values: dict[str, Any], data_folder: Path, tokenizer: WordTokenizer
) -> None:
    data = {"simulate_missing": 0.4, "drop_empty_windows": False}
    recipes = [changed_recipe(recipe_values, data=data), suner_recipe(recipe_values, data=data)]
    one, other = (prepare_data(recipe, data_folder, tokenizer) for recipe in recipes)
    assert one.counts == other.counts
    assert one.counts.simulated_missing > 20
    for a, b in zip(one.examples, other.examples, strict=True):
        assert np.array_equal(a.gold, b.gold)


# --- relabelling


def relabelled(ner: Extractor, marked: str, keep: Any = "all", **changes: Any) -> list[tuple[str, str]]:
    source = Corpus("new", [replace(document(marked), **changes)], TYPES)
    (one,) = relabel(source, ner, 0.5, keep).corpus.documents
    return [(entity.text, entity.label) for entity in one.entities]


def test_confident_predictions_complete_the_labels(ner: Extractor) -> None:
    bare = Corpus("tiny", [replace(one, entities=()) for one in corpus()], TYPES)
    completed = relabel(bare, ner, 0.5)
    assert completed.added == count(completed.corpus)
    assert completed.removed == 0
    found = sum(len(keys(one) & keys(other)) for one, other in zip(completed.corpus, corpus(), strict=True))
    assert found / count(corpus()) > 0.7  # bands contain cities; without labels the corpus is taken for flat
    assert count(relabel(bare, ner, 1.0).corpus) < count(completed.corpus)


def test_labels_stay_and_predictions_that_overlap_them_are_not_added(ner: Extractor) -> None:
    assert relabelled(ner, "Tom flew to Paris .") == [("Tom", "person"), ("Paris", "city")]
    assert relabelled(ner, "[band|Tom] flew to Paris .") == [("Tom", "band"), ("Paris", "city")]
    assert relabelled(ner, "Tom flew [city|to Paris] .") == [("Tom", "person"), ("to Paris", "city")]


def test_labels_that_the_model_contradicts_may_be_replaced(ner: Extractor) -> None:
    keep = "unless_contradicted"
    assert relabelled(ner, "[band|Tom] flew to Paris .", keep) == [("Tom", "person"), ("Paris", "city")]
    assert relabelled(ner, "Tom flew [city|to Paris] .", keep) == [("Tom", "person"), ("Paris", "city")]
    assert relabelled(ner, "Tom [city|flew] to [city|Paris] .", keep) == [
        ("Tom", "person"),
        ("flew", "city"),  # the model finds nothing there
        ("Paris", "city"),
    ]
    assert relabelled(ner, "Tom [city|flew] to Paris .", "none") == [("Tom", "person"), ("Paris", "city")]


def test_types_that_are_not_annotated_in_a_document_are_not_added(ner: Extractor) -> None:
    assert relabelled(ner, "Tom flew to Paris .", annotated=frozenset({"city"})) == [("Paris", "city")]


def test_changes_are_counted(ner: Extractor) -> None:
    source = Corpus("new", [document("[band|Tom] flew to Paris ."), document("We eat [city|soup] .")], TYPES)
    changed = relabel(source, ner, 0.5, "unless_contradicted")
    assert (changed.added, changed.removed) == (2, 1)
    progress: list[int] = []
    relabel(source, ner, 0.5, on_progress=progress.append)
    assert progress == [1, 2]


# --- masks


def examples_of(documents: list[Document], tokenizer: WordTokenizer) -> list[Example]:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    source = Corpus("masks", documents, TYPES)
    return make_examples([source], numbers, tokenizer, max_tokens=130, overlap=0, drop_empty=False)[0]


def masked_texts(examples: list[Example]) -> list[list[str]]:
    return [
        [one.text[one.words[first, 0] : one.words[last, 1]] for first, last in one.masked.tolist()]
        for one in examples
        if one.masked is not None
    ]


def test_words_that_are_labelled_elsewhere_are_masked(tokenizer: WordTokenizer) -> None:
    documents = [
        document("[person|Ann] met [person|Li Wei] in [city|New York] ."),
        document("Li Wei saw Ann , and Ann saw New Jersey ."),
        document("[band|The New York Players] know Ann Li ."),
        document("We eat soup ."),
    ]
    masked = masked_texts(mask_repeated(examples_of(documents, tokenizer)))
    assert masked == [[], ["Li Wei", "Ann", "Ann"], ["Ann"], []]


MARKS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.booleans()), min_size=1, max_size=6)


@given(st.lists(MARKS, min_size=1, max_size=5))
@settings(deadline=None, max_examples=60)
def test_masks_are_those_of_a_search_through_all_spans(tokenizer: WordTokenizer, texts: list[Any]) -> None:
    """Runs of marked words are mentions."""
    documents = []
    for words in texts:
        text, spans, start = "", [], None
        for word, inside in [*words, ("", False)]:
            if inside and start is None:
                start = len(text)
            if not inside and start is not None:
                spans.append((start, len(text) - 1, "city"))
                start = None
            text += f"{word} "
        documents.append(Document.from_spans(text, spans))
    examples = examples_of(documents, tokenizer)
    strings = [[one.text[a:b] for a, b in one.words.tolist()] for one in examples]
    labelled = {
        tuple(words[first : last + 1])
        for one, words in zip(examples, strings, strict=True)
        for first, last, _ in one.gold.tolist()
    }
    for one, words in zip(mask_repeated(examples), strings, strict=True):
        mentions = one.gold[:, :2].tolist()
        expected = [
            [i, j]
            for i in range(len(words))
            for j in range(i, len(words))
            if tuple(words[i : j + 1]) in labelled and all(j < first or i > last for first, last in mentions)
        ]
        assert one.masked is not None
        assert one.masked.tolist() == expected


# --- runs


def short(values: dict[str, Any], **data: Any) -> Recipe:
    return changed_recipe(values, data=data, training=SHORT)


def test_dropped_and_masked_mentions_are_in_metrics_and_card(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    model = train(
        short(recipe_values, simulate_missing=0.5, mask_repeated=True), output=tmp_path / "run", data=data_folder
    )
    counts = metrics_of(tmp_path / "run")["examples"]
    whole = prepare_data(load_recipe(recipe_values), data_folder, WordTokenizer.load(model)).counts
    assert counts["simulated_missing"] + counts["mentions"] == whole.mentions
    assert counts["masked_spans"] > 0
    card = " ".join((model / "README.md").read_text("utf-8").split())
    assert f"{counts['simulated_missing']} mentions were dropped from train to simulate missing labels" in card
    assert f"{counts['masked_spans']} unlabelled spans were masked" in card


def test_a_run_can_be_labelled_by_another_run(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = changed_recipe(recipe_values, training={"checkpoints": False})
    train(first, output=tmp_path / "first", data=data_folder)
    relabelling = {"model": str(tmp_path / "first"), "threshold": 0.5}
    second = short(recipe_values, simulate_missing=0.5, relabel=relabelling)
    model = train(second, output=tmp_path / "second", data=data_folder)
    assert f"labelling small with {tmp_path / 'first'}" in capsys.readouterr().err
    counts = metrics_of(tmp_path / "second")["examples"]
    assert counts["added_mentions"] > counts["simulated_missing"] / 2
    assert "a model added" in " ".join((model / "README.md").read_text("utf-8").split())


def test_the_cache_distinguishes_rates_seeds_and_models(
    recipe_values: dict[str, Any], data_folder: Path, tokenizer: WordTokenizer, tiny_model: Path, tmp_path: Path
) -> None:
    def prepared(seed: int = 0, **data: Any) -> tuple[int, int]:
        recipe = changed_recipe(recipe_values, data=data, seed=seed)
        first, again = (prepare_data(recipe, data_folder, tokenizer, tmp_path).counts for _ in range(2))
        assert first == again
        return first.mentions, first.masked_spans

    whole = prepared()
    half = prepared(simulate_missing=0.5)
    assert half < whole
    assert len({half, prepared(simulate_missing=0.5, seed=1), prepared(simulate_missing=0.5, seed=2)}) > 1
    completed = prepared(simulate_missing=0.5, relabel={"model": str(tiny_model), "threshold": 0.5})
    assert completed > half
    assert prepared(simulate_missing=0.5, mask_repeated=True)[1] > 0
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"simulate_missing": 1.0}, "simulate_missing"),
        ({"simulate_missing": -0.1}, "simulate_missing"),
        ({"relabel": {"model": "x", "threshold": 0}}, "threshold"),
        ({"relabel": {"model": "x", "keep": "some"}}, "keep"),
        ({"relabel": {}}, "model"),
    ],
)
def test_wrong_values_are_refused(recipe_values: dict[str, Any], data: dict[str, Any], message: str) -> None:
    with pytest.raises(OnomaError, match=message):
        changed_recipe(recipe_values, data=data)


def test_a_labelling_model_that_does_not_exist_is_reported_before_training(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    recipe = short(recipe_values, relabel={"model": str(tmp_path / "nowhere")})
    with pytest.raises(OnomaError, match="nowhere"):
        train(recipe, output=tmp_path / "run", data=data_folder)
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize(
    ("system", "options"),
    [
        ("binder", {"negative_sampling": "overlapping", "threshold_loss": "present"}),
        ("suner", {"negative_sampling": "uniform"}),
        ("suner", {"negative_sampling": "overlapping", "form": "fused"}),
        ("suner", {"negative_sampling": "uniform", "form": "one-stage"}),
        ("scl-rai", {"vector_size": 16, "max_width": 8}),
    ],
)
def test_every_system_trains_with_missing_labels(
    system: str, options: dict[str, Any], recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    base = suner_recipe(recipe_values).model_dump() if system == "suner" else {**recipe_values, "system": system}
    if system == "scl-rai":
        base["options"] = {}
    data = {"simulate_missing": 0.5, "mask_repeated": True}
    recipe = changed_recipe(base, options=options, data=data, training=SHORT)
    model = train(recipe, output=tmp_path / "run", data=data_folder)
    assert metrics_of(tmp_path / "run")["examples"]["masked_spans"] > 0
    assert json.loads((model / "config.json").read_text("utf-8"))["options"].get("negative_sampling") != "none"


def recall_without_labels(
    values: dict[str, Any], place: Path, corpora: Path, options: dict[str, Any], data: dict[str, Any]
) -> float:
    """The recall after training on data of which 60% of the mentions are dropped."""
    training = {"checkpoints": False, "max_steps": 80, "eval_steps": 40}
    recipe = changed_recipe(values, options=options, data={"simulate_missing": 0.6, **data}, training=training)
    train(recipe, output=place, data=corpora)
    return float(metrics_of(place)["test"]["small"]["recall"])


@pytest.fixture(scope="module")
def plain_recall(recipe_values: dict[str, Any], data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    return recall_without_labels(recipe_values, tmp_path_factory.mktemp("plain") / "run", data_folder, {}, {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "data"),
    [
        ({"negative_sampling": "overlapping"}, {}),
        ({"threshold_loss": "present"}, {}),
        ({}, {"mask_repeated": True}),
    ],
    ids=str,
)
def test_more_mentions_are_found_than_by_plain_training(
    options: dict[str, Any],
    data: dict[str, Any],
    plain_recall: float,
    recipe_values: dict[str, Any],
    data_folder: Path,
    tmp_path: Path,
) -> None:
    recall = recall_without_labels(recipe_values, tmp_path / "run", data_folder, options, data)
    assert recall > plain_recall + 10
