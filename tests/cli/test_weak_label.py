"""`onoma weak-label`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onoma import Document
from onoma.data import read, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "city.txt").write_text("Oslo\nParis\nNew York\n")
    (tmp_path / "people.tsv").write_text("Tom\tperson\nAnn\tperson\nOslo\tdog\n")
    (tmp_path / "news.txt").write_text("TOM flew to Paris.\nParis Hilton met Ann.\nNothing else.\n")
    write([Document.from_spans("Tom saw Bergen.", [(0, 3, "person"), (8, 14, "city")])], tmp_path / "gold.jsonl")
    return tmp_path


def found(path: Path) -> list[list[tuple[str, str]]]:
    return [[(entity.text, entity.label) for entity in one.entities] for one in read(path)]


def test_several_dictionaries_label_plain_text(command: Callable[..., Any], folder: Path) -> None:
    outcome = command("weak-label", "city.txt", "people.tsv", "news.txt", "out.jsonl")
    assert outcome.code == 0
    assert found(folder / "out.jsonl") == [
        [("TOM", "person"), ("Paris", "city")],
        [("Paris", "city"), ("Ann", "person")],
        [],
    ]
    assert "3 documents, 2 with a mention (66.7%)" in outcome.out
    assert "1 entries with several types were skipped" in " ".join(outcome.out.split())
    assert outcome.out.endswith("3 documents written to out.jsonl\n")


def test_coverage_and_scores_for_programs(command: Callable[..., Any], folder: Path) -> None:
    outcome = command(
        "weak-label", "city.txt", "people.tsv", "gold.jsonl", "out.conll", "--json", "--ambiguous", "first"
    )
    report = json.loads(outcome.out)
    assert report["mentions_by_type"] == {"person": 1, "city": 0, "dog": 0}
    assert report["entries"] == 5
    assert report["scores"]["micro"] == {
        "precision": 1.0,
        "recall": 0.5,
        "f1": pytest.approx(2 / 3),
        "gold": 2,
        "predicted": 1,
        "correct": 1,
    }
    assert found(folder / "out.conll") == [[("Tom", "person")]]


def test_a_table_shows_scores_if_there_is_gold(command: Callable[..., Any], folder: Path) -> None:
    outcome = command("weak-label", "city.txt", "people.tsv", "gold.jsonl", "out.jsonl")
    assert "100.00 │  50.00 │  66.67" in next(line for line in outcome.out.splitlines() if "micro" in line)


def test_options_change_what_is_found(command: Callable[..., Any], folder: Path) -> None:
    (folder / "stop.txt").write_text("Ann\n")
    options = ("--type", "place", "--not-before", "Hilton, Street", "--stop", "stop.txt", "--match-case")
    assert command("weak-label", "city.txt", "people.tsv", "news.txt", "out.jsonl", *options).code == 0
    assert found(folder / "out.jsonl") == [[("Paris", "place")], [], []]
    options = ("--not-after", "to", "--ambiguous", "all")
    assert command("weak-label", "city.txt", "people.tsv", "news.txt", "out.jsonl", *options).code == 0
    assert found(folder / "out.jsonl")[0] == [("TOM", "person")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.txt", "news.txt", "out.jsonl"), "no such file"),
        (("city.txt", "missing.txt", "out.jsonl"), "no such file"),
        (("city.txt", "news.txt", "out.xyz"), "no format has the extension"),
        (("city.txt", "news.txt", "out.jsonl", "--stop", "missing.txt"), "no such file"),
        (("city.txt", "news.txt", "out.jsonl", "--ambiguous", "both"), "both"),
        (("city.txt", "news.txt", "out.jsonl", "--from", "word"), "there is no format 'word'"),
        (("city.txt", "news.txt", "out.jsonl", "--to", "word"), "there is no format 'word'"),
        (("bytes.txt", "news.txt", "out.jsonl"), "UTF-8"),
        (("city.txt", "bytes.txt", "out.jsonl"), "UTF-8"),
        (("empty.txt", "news.txt", "out.jsonl"), "the dictionary has no entries"),
        (("city.txt", "news.txt"), "Missing argument"),
        ((".", "news.txt", "out.jsonl"), "a folder"),
    ],
)
def test_rubbish_exits_with_2_and_writes_nothing(
    command: Callable[..., Any], folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "bytes.txt").write_bytes(b"caf\xe9\n")
    (folder / "empty.txt").write_text("\n")
    before = sorted(folder.iterdir())
    outcome = command("weak-label", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in " ".join(outcome.err.split())
    assert sorted(folder.iterdir()) == before
