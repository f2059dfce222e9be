"""`onoma report`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onoma import Document
from onoma.data import write
from tiny import documents


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for split, chosen in {"train": documents()[::5], "test": documents()[::9]}.items():
        write(chosen, tmp_path / "tunes" / f"{split}.jsonl")
    return tmp_path / "tunes"


def test_a_report_of_two_models_on_two_corpora(
    command: Callable[..., Any], corpus: Path, tiny_model: Path, tmp_path: Path
) -> None:
    write([Document.from_spans("Ann flew to Rome .", [(0, 3, "person")])], tmp_path / "other.jsonl")
    output = tmp_path / "report.html"
    outcome = command(
        *("report", tiny_model, corpus, tmp_path / "other.jsonl", "-o", output),
        *("--against", "embedded", "--training", f"{corpus}:train", "--limit", 6),
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert f"written to {output}" in outcome.out
    page = output.read_text("utf-8")
    assert "compared with embedded" in page
    for name in ("Corpus tunes", "Corpus other", "in the training data"):
        assert name in page


def test_the_same_for_programs(command: Callable[..., Any], corpus: Path, tiny_model: Path, tmp_path: Path) -> None:
    outcome = command("report", tiny_model, corpus, "-o", tmp_path / "r.html", "--limit", 5, "--json")
    ((analysis,),) = json.loads(outcome.out)["analyses"]
    assert analysis["strict"]["micro"]["f1"] == 1.0
    assert {"calibration", "thresholds", "distributions", "confusion", "intervals", "errors"} <= analysis.keys()


def test_splits_have_different_names_and_the_page_says_where_it_comes_from(
    command: Callable[..., Any], corpus: Path, tiny_model: Path, tmp_path: Path
) -> None:
    output = tmp_path / "report.html"
    sources = f"{corpus}:train", f"{corpus}:test"
    outcome = command("report", tiny_model, *sources, "-o", output, "--limit", 4, "--threshold", 0.6)
    assert outcome.code == 0
    page = output.read_text("utf-8")
    for words in ("Corpus tunes:train", "Corpus tunes:test", "About this report", *sources, "Command: onoma "):
        assert words in page
    assert "threshold used" in page
    assert "threshold of the model" not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nosuchmodel", "{corpus}"), "there is no model folder 'nosuchmodel'"),
        (("{model}", "nosuchcorpus"), "there is no such file or folder"),
        (("{model}", "{corpus}", "--against", "{model}"), "is named twice"),
        (("{model}", "{corpus}", "--against", "{model}/"), "is named twice"),
        (("{model}", "{corpus}", "{corpus}/test.jsonl"), "is given twice"),
        (("{model}", "{corpus}", "-o", "{corpus}"), "this is a folder"),
        (("{model}", "{corpus}", "--overlap", "foo"), "'--overlap': 'foo' is not one of flat, nested, any"),
    ],
)
def test_mistakes_are_named(
    command: Callable[..., Any], corpus: Path, tiny_model: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = command("report", *(one.format(model=tiny_model, corpus=corpus) for one in arguments))
    assert outcome.code == 2
    assert message in outcome.err
    assert not Path("report.html").exists()
