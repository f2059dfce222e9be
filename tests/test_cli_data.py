"""`onoma convert` and `onoma info`, as a shell runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from onoma import Document
from onoma.data import read, write

ANN = Document.from_spans("Ann lives in Åre.", [(0, 3, "人名"), (13, 16, "ville")])
ONOMA = [sys.executable, "-m", "onoma"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write([ANN, Document("All is quiet.")], tmp_path / "train.jsonl")
    return tmp_path / "train.jsonl"


def test_convert_says_what_it_did_and_nothing_else(command: Callable, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "train.conll"
    assert command("convert", source, target) == (0, f"2 documents written to {target}\n", "")
    outcome = command("convert", source, tmp_path / "folder", "--json")
    assert json.loads(outcome.out) == {"documents": 2, "target": str(tmp_path / "folder")}
    assert [document.labels for document in read(target)] == [ANN.labels, frozenset()]


@pytest.mark.parametrize("target", ["-", "pipe", "/dev/fd/1"])  # no true device: a failure would replace it
@pytest.mark.parametrize("options", [(), ("--to", "jsonl")])
def test_what_is_no_file_is_not_written(
    command: Callable,
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
def test_a_pipe_is_refused_rather_than_read_as_nothing(source: Path, words: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [*ONOMA, *words], input=source.read_bytes(), capture_output=True, cwd=tmp_path, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"save what it gives to a file first" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_a_folder_of_splits_is_converted_file_by_file(command: Callable, source: Path, tmp_path: Path) -> None:
    (tmp_path / "dev.conll").touch()
    (tmp_path / "notes.md").touch()
    outcome = command("convert", tmp_path, tmp_path / "out.jsonl")
    assert outcome.code == 2
    assert "take its files one by one: dev.conll, train.jsonl." in outcome.err


def test_an_unknown_extension_leads_to_the_option(command: Callable, source: Path, tmp_path: Path) -> None:
    outcome = command("convert", source, tmp_path / "out.brat")
    assert outcome.code == 2
    assert "'.brat'" in outcome.err
    assert "--to" in outcome.err
    assert command("convert", source, tmp_path / "out.brat", "--to", "brat").code == 0


def test_a_wrong_meta_file_exits_with_2(command: Callable, source: Path) -> None:
    (source.parent / "meta.json").write_text('{"name": 5}')
    outcome = command("info", source.parent)
    assert outcome.code == 2
    assert "meta.json: 'name' must be a string, got 5" in outcome.err


def test_a_model_is_no_corpus(command: Callable, tiny_model: Path) -> None:
    outcome = command("evaluate", tiny_model, "--model", tiny_model)
    assert outcome.code == 2
    assert f"{tiny_model}: the folder holds a model, not documents" in outcome.err


@pytest.mark.parametrize(("encoding", "label"), [("ascii", r"\u4eba\u540d"), ("utf-8", "人名")])
def test_a_terminal_shows_what_it_can(source: Path, encoding: str, label: str) -> None:
    environment = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "100"}
    done = subprocess.run([*ONOMA, "info", str(source)], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert label in done.stdout.decode(encoding)
    done = subprocess.run([*ONOMA, "info", "人.jsonl"], capture_output=True, env=environment, check=False)
    assert done.returncode == 2
    assert b"no such file" in done.stderr


def test_a_program_that_is_asked_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
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


def test_info_shows_on_a_terminal_that_it_works(source: Path) -> None:
    reading, terminal = os.openpty()
    subprocess.run([*ONOMA, "info", str(source)], stdout=subprocess.PIPE, stderr=terminal, check=True)
    assert b"reading and counting" in os.read(reading, 10_000)
    os.close(reading)
    os.close(terminal)
    done = subprocess.run([*ONOMA, "info", str(source)], capture_output=True, check=True)
    assert done.stderr == b""
