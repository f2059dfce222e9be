"""What all commands share: exit codes, signals, and output in any locale."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from onoma import Document, __version__
from onoma.data import write
from onoma.models.config import ModelConfig

ONOMA = [sys.executable, "-m", "onoma"]
LATIN = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
TERMINATED = 128 + signal.SIGTERM


def test_version_and_help(command: Callable[..., Any]) -> None:
    assert command("--version") == (0, f"onoma {__version__}\n", "")
    listed = command("--help").out
    for verb in ("extract", "train", "evaluate", "tune-thresholds", "export", "convert", "info", "bench"):
        assert f" {verb} " in listed


def test_a_failure_exits_with_1_and_a_debug_run_shows_where(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.models.info.describe_model", lambda _: 1 / 0)
    outcome = command("info")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "failed: ZeroDivisionError: division by zero (set ONOMA_DEBUG=1 to see where)\n"
    monkeypatch.setenv("ONOMA_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["onoma", "info"])
    from onoma.cli import main

    with pytest.raises(ZeroDivisionError):
        main()


def test_a_closed_pipe_ends_a_command_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("Tom flew to Paris.\n" * 20_000)
    command = f"{' '.join(ONOMA)} extract long.txt --lines --labels city --format jsonl --threshold 0.9 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, cwd=tmp_path, text=True, check=True)
    assert json.loads(done.stdout)["text"] == "Tom flew to Paris."
    assert all(line.startswith("read ") for line in done.stderr.splitlines())  # progress, on a slow machine


@pytest.mark.parametrize("output_format", ["json", "jsonl", "html"])
def test_documents_are_written_in_utf8_in_any_locale(output_format: str, tmp_path: Path) -> None:
    text = "Zoë et 马云 😀 à Paris."
    (tmp_path / "news.txt").write_text(text, "utf-8")
    (tmp_path / "types.yaml").write_text("city:\n城市:\n", "utf-8")
    arguments = ["extract", "news.txt", "--types", "types.yaml", "--format", output_format]
    done = subprocess.run([*ONOMA, *arguments], capture_output=True, env=LATIN, cwd=tmp_path, check=True)
    written = done.stdout.decode("utf-8")
    if output_format == "html":
        assert "Zoë et 马云 😀 à " in written
        assert "城市" in written
    else:
        record = json.loads(written) if output_format == "jsonl" else json.loads(written)[0]
        assert record["text"] == text


def test_json_for_programs_is_utf8_in_any_locale(tmp_path: Path) -> None:
    source = write_names(tmp_path)
    done = subprocess.run([*ONOMA, "info", str(source), "--json"], capture_output=True, env=LATIN, check=True)
    assert "人名" in done.stdout.decode("utf-8")
    json.loads(done.stdout)


def write_names(folder: Path) -> Path:
    write([Document.from_spans("Ann lives in Åre.", [(0, 3, "人名"), (13, 16, "ville")])], folder / "train.jsonl")
    return folder / "train.jsonl"


@pytest.mark.parametrize(("encoding", "label"), [("ascii", r"\u4eba\u540d"), ("utf-8", "人名")])
def test_a_terminal_without_utf8_shows_escapes(tmp_path: Path, encoding: str, label: str) -> None:
    source = write_names(tmp_path)
    environment = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "100"}
    done = subprocess.run([*ONOMA, "info", str(source)], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert label in done.stdout.decode(encoding)
    done = subprocess.run([*ONOMA, "info", "人.jsonl"], capture_output=True, env=environment, check=False)
    assert done.returncode == 2
    assert b"no such file" in done.stderr


@contextmanager
def started(*arguments: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A running command, which is killed if a test fails; the tests themselves may run under nohup."""
    options = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)} | options
    process = subprocess.Popen([*ONOMA, *map(str, arguments)], text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGTERM, TERMINATED, "terminated\n"),
        (signal.SIGHUP, 128 + signal.SIGHUP, "terminated\n"),
        (signal.SIGINT, 130, ""),
    ],
)
def test_signals_end_extraction_without_a_traceback(number: signal.Signals, code: int, message: str) -> None:
    arguments = ("extract", "-", "--labels", "city", "--format", "jsonl", "--batch-size", 1)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with started(*arguments, **pipes) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write("Tom flew to Paris.\n" * 17)  # one more than are read together
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["entities"]  # it is running, and waits for more input
        running.send_signal(number)
        _, errors = running.communicate(timeout=30)
        assert (running.returncode, errors) == (code, message)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_no_half_written_file(number: signal.Signals, tmp_path: Path) -> None:
    arguments = ("extract", "-", "--labels", "city", "--format", "jsonl", "--batch-size", 1, "--output", "out.jsonl")
    with started(*arguments, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path) as running:
        assert running.stdin is not None
        running.stdin.write("Tom flew to Paris.\n")
        running.stdin.flush()
        wait_until(lambda: list(tmp_path.glob("*.part")), running)
        running.send_signal(number)
        assert running.wait(timeout=30) == 128 + number
    assert list(tmp_path.iterdir()) == []


def wait_until(condition: Callable[[], object], running: subprocess.Popen[str]) -> None:
    while not condition():
        assert running.poll() is None
        time.sleep(0.02)


def test_an_ignored_hangup_does_not_end_a_command(tmp_path: Path) -> None:
    arguments = ("extract", "-", "--labels", "city", "--format", "jsonl", "--output", "out.jsonl")
    ignore = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}  # as nohup does
    with started(*arguments, stdin=subprocess.PIPE, cwd=tmp_path, **ignore) as running:
        assert running.stdin is not None
        running.stdin.write("Tom flew to Paris.\n")
        running.stdin.flush()
        wait_until(lambda: list(tmp_path.glob("*.part")), running)
        running.send_signal(signal.SIGHUP)
        running.stdin.close()
        assert running.wait(timeout=30) == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["entities"]


def in_shell(folder: Path, arguments: str) -> tuple[int, str, str]:
    command = f"{' '.join(ONOMA)} {arguments}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=folder, check=False)
    return done.returncode, done.stdout, done.stderr


EXTRACT = "extract 'Tom flew to Paris.' --labels city"


def test_closed_standard_input_ends_with_2(tmp_path: Path) -> None:
    code, out, errors = in_shell(tmp_path, "extract - --labels city <&-")
    assert (code, out) == (2, "")
    assert errors.startswith("error: standard input is closed. Fix: ")
    assert in_shell(tmp_path, f"{EXTRACT} --format json <&-")[0] == 0  # it is not needed


@pytest.mark.parametrize("output_format", ["table", "json"])
def test_closed_standard_output_ends_with_2_unless_a_file_is_written(tmp_path: Path, output_format: str) -> None:
    code, out, errors = in_shell(tmp_path, f"{EXTRACT} --format {output_format} >&-")
    assert (code, out) == (2, "")
    assert errors.startswith("error: standard output is closed. Fix: ")
    assert in_shell(tmp_path, f"{EXTRACT} --format {output_format} --output out >&-") == (0, "", "")
    assert "Paris" in (tmp_path / "out").read_text()


def test_messages_do_not_go_elsewhere_if_standard_error_is_closed(tmp_path: Path) -> None:
    assert in_shell(tmp_path, "extract missing.txt --labels city --output out 2>&-") == (2, "", "")
    assert in_shell(tmp_path, f"{EXTRACT} --output out <&- >&- 2>&-") == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert "error" not in (tmp_path / "out").read_text()


@pytest.mark.parametrize("name", ["n" * 300, "n/" * 3000 + "n"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("extract", "Tom", "--labels", "city", "--model", "NAME"),
        ("extract", "Tom", "--types", "NAME"),
        ("extract", "Tom", "--labels", "city", "--output", "NAME"),
        ("extract", "NAME.jsonl", "--labels", "city"),
        ("info", "NAME"),
        ("convert", "NAME", "out.jsonl"),
        ("convert", "in.jsonl", "NAME.jsonl"),
        ("evaluate", "NAME"),
        ("evaluate", "in.jsonl", "--model", "NAME"),
        ("tune-thresholds", "NAME", "in.jsonl"),
        ("export", "NAME", "out"),
    ],
)
def test_over_long_names_exit_with_2(
    arguments: tuple[str, ...], name: str, command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_names(tmp_path).rename("in.jsonl")
    outcome = command(*(one.replace("NAME", name) for one in arguments))
    assert outcome.code == 2, outcome.err
    assert outcome.err.startswith("error: ")
    assert "failed" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "MODEL", "in.jsonl"), "in.jsonl: this is a file, but a folder"),
        (("extract", "Tom", "--labels", "city", "--output", "folder"), "folder: this is a folder, but a file"),
        (("extract", "Tom", "--labels", "city", "--output", "in.jsonl/out"), "in.jsonl/out: cannot be written"),
        (("convert", "in.jsonl", "in.jsonl", "--to", "brat"), "in.jsonl: this is a file, but a folder"),
    ],
)
def test_an_output_of_the_wrong_kind_exits_with_2(
    arguments: tuple[str, ...],
    message: str,
    command: Callable[..., Any],
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_names(tmp_path).rename("in.jsonl")
    (tmp_path / "folder").mkdir()
    outcome = command(*(one.replace("MODEL", str(tiny_model)) for one in arguments))
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert "Fix: " in outcome.err


@pytest.mark.parametrize("content", ["[" * 40_000, "- " * 40_000, '{"a":' * 40_000])
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("extract", "Tom", "--types", "types.yaml"), "types.yaml"),
        (("info", "corpus"), "corpus/meta.json"),
        (("info", "corpus"), "corpus/train.jsonl"),
        (("extract", "Tom", "--labels", "city", "--model", "model"), "model/config.json"),
        (("train", "recipe.yaml", "--output", "run"), "recipe.yaml"),
    ],
)
def test_deep_nesting_exits_with_2(
    arguments: tuple[str, ...],
    name: str,
    content: str,
    tmp_path: Path,
    command: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    if name == "corpus/meta.json":
        write([Document("Tom")], "corpus/train.jsonl")
    outcome = command(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {name}")
    assert "Fix: " in outcome.err


ESCAPE = "\x1b]0;owned\x07\x9b31m"


def test_escape_sequences_in_labels_and_names_do_not_reach_the_terminal(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write([Document.from_spans("Ann sings.", [(0, 3, f"person{ESCAPE}")])] * 2, "train.jsonl")
    ModelConfig("binder", encoder=f"bert{ESCAPE}", types={f"city{ESCAPE}": ""}).save(tmp_path / "model")
    for arguments in (
        ("info", "train.jsonl"),
        ("info", "model"),
        ("extract", "Tom", "--labels", f"city{ESCAPE}"),
        ("extract", f"missing{ESCAPE}.txt", "--labels", "city"),
    ):
        outcome = command(*arguments)
        shown = outcome.out + outcome.err
        assert "owned" in shown or "x1b" in shown
        assert not {"\x1b", "\x07", "\x9b"} & set(shown)


@pytest.mark.slow
def test_sigterm_ends_training_without_a_traceback(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    training = {**recipe_values["training"], "max_steps": 100_000, "eval_steps": 5}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({**recipe_values, "training": training}), "utf-8")
    arguments = ("train", tmp_path / "recipe.yaml", "--output", tmp_path / "run", "--data", data_folder)
    with (
        open(tmp_path / "errors", "w") as errors,
        started(*arguments, stdout=subprocess.PIPE, stderr=errors) as running,
    ):
        while "step" not in (tmp_path / "errors").read_text():
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        output, _ = running.communicate(timeout=60)
        assert (running.returncode, output) == (TERMINATED, "")
    printed = (tmp_path / "errors").read_text()
    assert printed.splitlines()[-1] == "terminated"
    assert "Traceback" not in printed
    assert not list(tmp_path.rglob("*.part"))


def test_evaluate_and_export_know_the_embedded_model_by_name(command: Callable[..., Any], tmp_path: Path) -> None:
    write([Document.from_spans("Tom flew to Paris.", [(12, 17, "city")])], tmp_path / "test.jsonl")
    report = json.loads(command("evaluate", tmp_path, "--model", "embedded/en", "--json").out)
    assert report["strict"]["micro"]["f1"] == 1.0
    outcome = command("export", "embedded", tmp_path / "exported")
    assert outcome.code == 2
    assert "holds several models" in outcome.err
