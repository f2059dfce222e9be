"""`onoma convert`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onoma import Document
from onoma.data import read, write

ANN = Document.from_spans("Ann lives in Åre.", [(0, 3, "人名"), (13, 16, "ville")])
ONOMA = [sys.executable, "-m", "onoma"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write([ANN, Document("All is quiet.")], tmp_path / "train.jsonl")
    return tmp_path / "train.jsonl"


def test_convert_prints_one_line_or_json(command: Callable[..., Any], source: Path, tmp_path: Path) -> None:
    target = tmp_path / "train.conll"
    assert command("convert", source, target) == (0, f"2 documents written to {target}\n", "")
    outcome = command("convert", source, tmp_path / "folder", "--json")
    assert json.loads(outcome.out) == {"documents": 2, "target": str(tmp_path / "folder")}
    assert [document.labels for document in read(target)] == [ANN.labels, frozenset()]


def test_help_has_an_example(command: Callable[..., Any]) -> None:
    assert "Example: onoma convert" in command("convert", "--help").out


def test_other_keys_and_integer_ids_of_json_lines_are_kept(command: Callable[..., Any], tmp_path: Path) -> None:
    records = [
        {"id": 7, "text": "Ann", "entities": [{"start": 0, "end": 3, "label": "x"}], "source": "news", "tags": [1]},
        {"id": "b", "text": "Tom", "entities": [], "title": "汤"},
        {"text": "Eva", "entities": []},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    assert command("convert", tmp_path / "in.jsonl", tmp_path / "out.jsonl.gz").code == 0
    assert command("convert", tmp_path / "out.jsonl.gz", tmp_path / "again.jsonl").code == 0
    lines = (tmp_path / "again.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == records


@pytest.mark.parametrize("target", ["-", "pipe", "/dev/fd/1"])  # not a device such as /dev/null: a failure replaces it
@pytest.mark.parametrize("options", [(), ("--to", "jsonl")])
def test_pipes_and_devices_are_not_written_to(
    command: Callable[..., Any],
    source: Path,
    target: str,
    options: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    outcome = command("convert", source, target, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert "such as out.jsonl" in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", source.name]
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("words", [("convert", "/dev/stdin", "out.jsonl"), ("info", "/dev/stdin")])
def test_reading_from_a_pipe_is_refused(source: Path, words: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [*ONOMA, *words], input=source.read_bytes(), capture_output=True, cwd=tmp_path, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"save its content to a file" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_a_folder_of_splits_is_converted_file_by_file(
    command: Callable[..., Any], source: Path, tmp_path: Path
) -> None:
    (tmp_path / "dev.conll").touch()
    (tmp_path / "notes.md").touch()
    outcome = command("convert", tmp_path, tmp_path / "out.jsonl")
    assert outcome.code == 2
    assert "one by one: dev.conll, train.jsonl." in outcome.err


def test_an_unknown_extension_leads_to_the_option(command: Callable[..., Any], source: Path, tmp_path: Path) -> None:
    outcome = command("convert", source, tmp_path / "out.brat")
    assert outcome.code == 2
    assert "'.brat'" in outcome.err
    assert "--to" in outcome.err
    assert command("convert", source, tmp_path / "out.brat", "--to", "brat").code == 0


def test_sigterm_removes_half_written_files(tmp_path: Path) -> None:
    source = tmp_path / "big.jsonl"
    source.write_text('{"text": "Ann lives in Oslo", "entities": [{"start": 0, "end": 3, "label": "x"}]}\n' * 200_000)
    running = subprocess.Popen([*ONOMA, "convert", str(source), str(tmp_path / "out.conll")])
    try:
        while not list(tmp_path.glob(".*.part")):
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=30) == 128 + signal.SIGTERM
    finally:
        running.kill()
    assert list(tmp_path.iterdir()) == [source]


def test_accepted_mentions_are_merged(command: Callable[..., Any], source: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("accept,label,text,document,start,end\nyes,mood,quiet,2,7,12\nno,x,is,2,4,6\n")
    target = tmp_path / "out.jsonl"
    outcome = command("convert", source, target, "--merge", tmp_path / "rows.csv")
    assert outcome.out == f"2 documents written to {target}\n1 mentions added, 0 removed; 0 were there before\n"
    assert [entity.text for entity in list(read(target))[1].entities] == ["quiet"]


def test_a_row_that_does_not_fit_writes_nothing(command: Callable[..., Any], source: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("accept,label,text,document,start,end\nyes,mood,quite,2,7,12\n")
    outcome = command("convert", source, tmp_path / "out.jsonl", "--merge", tmp_path / "rows.csv")
    assert (outcome.code, outcome.out) == (2, "")
    assert "rows.csv, line 2: document 2 has 'quiet' there, not 'quite'" in outcome.err
    assert not (tmp_path / "out.jsonl").exists()
