"""Speed by labels, lengths and batch sizes, beside the bare encoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onoma import Extractor, OnomaError, load
from onoma.evaluation.speed import (
    SpeedSettings,
    Turn,
    bare_encoder,
    encoder_batches,
    measure_speed,
    ratio,
    sample_labels,
    sample_sentences,
    take_turns,
    text_of_length,
)
from onoma.inputs.packing import SPECIAL_TOKENS
from onoma.models.export import export
from onoma.onnx.runtime import MAX_BATCH_TOKENS
from onoma.text import segment
from tiny import documents


@pytest.fixture(scope="module")
def exported(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tiny_model, tmp_path_factory.mktemp("speed") / "model", int8=True)


def test_sample_labels_differ() -> None:
    assert len(set(sample_labels(5_000))) == 5_000
    assert sample_labels(1) == ["person"]
    for count in (0, 1_000_000):
        with pytest.raises(OnomaError, match=r"1 to \d,\d+ labels"):
            sample_labels(count)


@pytest.mark.parametrize("words", [1, 10, 1_000])
def test_texts_have_the_length_that_is_asked_for(words: int) -> None:
    text = text_of_length(sample_sentences(30), words)
    assert len(segment(text)) == words
    assert text != text_of_length(sample_sentences(30), words, seed=1)


def test_all_work_is_done_in_each_turn_after_a_warm_up() -> None:
    done: list[str] = []
    taken = take_turns({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, 2)
    assert done == ["a", "b"] * 3
    assert {name: len(turns) for name, turns in taken.items()} == {"a": 2, "b": 2}


def test_ratios_are_those_of_the_same_turn() -> None:
    slow, fast = [Turn(2, 3), Turn(40, 4), Turn(6, 6)], [Turn(1, 1), Turn(10, 1), Turn(2, 2)]
    found = ratio(slow, fast)
    assert found.pop("cpu") == {"median": 3, "low": 3, "high": 4, "deviation": pytest.approx(3**-0.5)}
    assert found == {"median": 3, "low": 2, "high": 4, "deviation": 1}


def test_the_encoder_alone_reads_all_tokens_of_all_texts(exported: Path) -> None:
    texts = [one.text for one in documents()[:50]]
    model = load(exported).model_for("")
    batches = encoder_batches(model, texts)
    tokens = sum(
        len(model.runtime.tokenizer.tokenize([text[a:b] for a, b in segment(text)]).ids) + SPECIAL_TOKENS
        for text in texts
    )
    assert sum(int(batch.mask.sum()) for batch in batches) == tokens
    assert max(batch.ids.size for batch in batches) <= MAX_BATCH_TOKENS


def test_all_figures_are_measured(exported: Path) -> None:
    doing: list[str] = []
    settings = SpeedSettings([1, 20], [10, 300], [1, 8], turns=2, on_progress=doing.append)
    found = measure_speed(load(exported, threads=2), sample_sentences(20), settings)
    assert [row["labels"] for row in found["labels"]] == [1, 20]
    for row in found["labels"]:
        rate = row["sentences_per_second"]
        assert 0 < rate["low"] <= rate["median"] <= rate["high"]
        assert row["words_per_second"]["median"] > rate["median"]
        assert row["share_of_encoder"]["median"] > 0
        assert 0 < row["cpu_ms_per_sentence"]["low"] <= row["cpu_ms_per_sentence"]["high"]
        assert 0 < row["latency_ms"]["p50"] <= row["latency_ms"]["p99"] <= row["latency_ms"]["max"]
        assert row["latency_ms"]["calls"] >= 100
        assert 10 < row["peak_memory_mb"] < 1_000
    assert found["labels"][0]["times_of_fewest"]["median"] == 1
    assert found["bare_encoder"]["sentences_per_second"]["median"] > 0
    assert [(row["words"], row["latency_ms"]["calls"]) for row in found["text_lengths"]] == [(10, 200), (300, 33)]
    assert "p99" in found["text_lengths"][0]["latency_ms"]
    assert "p99" not in found["text_lengths"][1]["latency_ms"]  # 33 calls are too few
    memory = [row["peak_memory_mb"] for row in found["text_lengths"]]
    assert 10 < memory[0] <= memory[1]
    assert [row["batch_size"] for row in found["batch_sizes"]] == [1, 8]
    small, large = (row["latency_ms"]["p50"] for row in found["batch_sizes"])
    assert small < large
    assert found["cold_start"]["seconds"]["median"] > 0
    assert 10 < found["cold_start"]["peak_memory_mb"] < 1_000
    assert (found["threads"], found["backend"]) == (2, "onnx")
    assert {"20 labels", "the encoder alone", "texts of 300 words", "batches of 8", "cold start"} <= set(doing)
    json.dumps(found)


def test_the_torch_backend_has_no_bare_encoder(ner: Extractor, tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"onnx backend.*Fix: export"):
        bare_encoder(ner, sample_sentences(5), tmp_path)


def test_texts_without_words(ner: Extractor) -> None:
    with pytest.raises(OnomaError, match="texts with words"):
        measure_speed(ner, ["", " "])


def test_the_command(command: Callable, exported: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(one.text for one in documents()[:30]), "utf-8")
    few = ("--model", exported, "--texts", tmp_path / "texts.txt", "--sentences", 10, "--turns", 1)
    few += ("--label-counts", "2", "--text-lengths", "20", "--batch-sizes", "0")
    result: Any = command("bench", "speed", *few, "--json")
    found = json.loads(result.out)
    assert found["sentences"] == 10
    assert found["batch_sizes"] == []
    assert "measuring: the encoder alone" in result.err
    shown = command("bench", "speed", *few).out
    for title in ("By the number of labels", "bare encoder", "One text at a time", "Cold start"):
        assert title in shown
    assert np.isclose(found["labels"][0]["times_of_fewest"]["median"], 1)


def test_too_many_labels_are_refused_before_anything_is_measured(exported: Path) -> None:
    doing: list[str] = []
    with pytest.raises(OnomaError, match="got 99999999"):
        measure_speed(load(exported), ["a text"], SpeedSettings([1, 99_999_999], on_progress=doing.append))
    assert not doing


@pytest.mark.parametrize("option", ["--label-counts", "--text-lengths", "--batch-sizes"])
def test_numbers_that_are_none(command: Callable, option: str) -> None:
    result = command("bench", "speed", option, "ten")
    assert result.code == 2
    assert f"{option} takes numbers" in result.err
