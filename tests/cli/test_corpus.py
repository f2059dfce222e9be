"""`onoma corpus`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiny_rows import make_rows, write_lines


@pytest.fixture
def corpus(command: Callable[..., Any], onnx_model: Path) -> Callable[..., Any]:
    return lambda *arguments: command("corpus", *arguments, "--model", onnx_model, "--workers", "1")


def test_files_become_a_folder_of_shards(corpus: Callable[..., Any], tmp_path: Path) -> None:
    paths = [write_lines(tmp_path / f"{name}.jsonl", [*make_rows(5), "damaged"]) for name in "ab"]
    outcome = corpus(*paths, tmp_path / "out", "--labels", "person, city")
    assert outcome.code == 0, outcome.err
    first, second = outcome.out.splitlines()
    assert first.startswith("10 documents with ")
    assert second == f"rows that could not be annotated: 2, see {tmp_path}/out/_errors.jsonl"
    again = corpus(*paths, tmp_path / "out", "--labels", "city", "--labels", "person", "--json")
    assert json.loads(again.out)["documents"] == 10


def test_the_embedded_model_by_name(command: Callable[..., Any], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(2))
    outcome = command("corpus", path, tmp_path / "out", "--labels", "city", "--model", "embedded/en", "--workers", "1")
    assert outcome.code == 0, outcome.err


def test_wrong_use_ends_with_a_message_that_says_what_to_do(corpus: Callable[..., Any], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(2))
    for arguments, message in (
        ([tmp_path / "missing.jsonl"], "no such file"),
        ([path, "--labels", ""], "no labels"),
        ([path, "--labels", "city", "--text-column", "body"], "--text-column"),
        ([path, "--labels", "city", "--address", "auto"], "engine ray"),
    ):
        source, *options = arguments
        outcome = corpus(source, tmp_path / "out", *(options or ["--labels", "city"]))
        assert outcome.code == 2
        assert message in outcome.err
        assert "Fix: " in outcome.err


def test_progress_has_a_rate_and_the_time_that_is_left(
    corpus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.cli.shared.SECONDS_BETWEEN_LINES", 0.0)
    path = write_lines(tmp_path / "a.jsonl", make_rows(600))
    outcome = corpus(path, tmp_path / "out", "--labels", "city", "--rows-per-shard", 256)
    assert "read 256 documents of 600 (43%), " in outcome.err
    assert " per second, 0 s left" in outcome.err
    assert "read 600 documents to plan the run, " in outcome.err


def test_several_labels_of_a_mention_can_be_reported(corpus: Callable[..., Any], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(20))
    asked = ("--labels", "person, city", "--threshold", "0.0001")
    counts = []
    for options in ((), ("--several-labels",)):
        outcome = corpus(path, tmp_path / f"out{len(options)}", *asked, *options, "--json")
        counts.append(json.loads(outcome.out)["entities"])
    assert counts[1] > counts[0]


def test_a_folder_that_cannot_be_written_is_bad_use(corpus: Callable[..., Any], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(2))
    outcome = corpus(path, path / "out", "--labels", "city")
    assert outcome.code == 2, outcome.err
    assert "cannot be written" in outcome.err
    assert "Fix: " in outcome.err
