from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TEXT = "The Rome Players will sing for Maria Silva today ."


@pytest.fixture
def extract(command: Callable, tiny_model: Path) -> Callable:
    return lambda *arguments: command("extract", *arguments, "--model", tiny_model, "--backend", "torch")


def rows(lines: str) -> list[list[tuple[str, str]]]:
    return [[(one["text"], one["label"]) for one in json.loads(line)["entities"]] for line in lines.splitlines()]


def test_a_table_of_what_is_found(extract: Callable) -> None:
    outcome = extract(TEXT, "--labels", "person, city")
    assert outcome.code == 0
    assert [line.split("│")[1:4] for line in outcome.out.splitlines() if "Maria Silva" in line] == [
        ["    31 ", "  42 ", " Maria Silva "]
    ]
    assert "Rome" in outcome.out


def test_overlap_threshold_and_json(extract: Callable) -> None:
    outcome = extract(TEXT, "--labels", "person,city,band", "--overlap", "nested", "--format", "json")
    (document,) = json.loads(outcome.out)
    assert [one["label"] for one in document["entities"]] == ["band", "city", "person"]
    outcome = extract(TEXT, "--labels", "person,city,band", "--threshold", "city=1,band=1", "--format", "json")
    assert [one["label"] for one in json.loads(outcome.out)[0]["entities"]] == ["person"]


def test_labels_between_chinese_commas(extract: Callable) -> None:
    outcomes = [extract(TEXT, "--labels", labels, "--format", "jsonl") for labels in ("person,city", "person，city、")]
    assert outcomes[0].out == outcomes[1].out != ""


def test_types_from_a_file_and_a_page(extract: Callable, tmp_path: Path) -> None:
    (tmp_path / "types.yaml").write_text("city: a large town\n")
    page = tmp_path / "found.html"
    outcome = extract(
        TEXT, "--labels", "person", "--types", tmp_path / "types.yaml", "--format", "html", "--output", page
    )
    assert (outcome.code, outcome.out) == (0, "")
    assert "<span>city</span>Rome</mark>" in page.read_text("utf-8")
    assert "<span>person</span>Maria Silva</mark>" in page.read_text("utf-8")


def test_files_of_text_and_of_documents(extract: Callable, tmp_path: Path) -> None:
    text = tmp_path / "news.txt"
    text.write_text("Tom flew to Oslo .\nWe eat soup .\n")
    options = ("--labels", "person", "--format", "jsonl")
    assert rows(extract(text, *options).out) == [[("Tom", "person")]]
    assert rows(extract(text, *options, "--lines").out) == [[("Tom", "person")], []]
    documents = tmp_path / "news.jsonl"
    documents.write_text('{"id": "a", "text": "Ann flew to Oslo .", "entities": []}\n')
    outcome = extract(documents, *options)
    assert rows(outcome.out) == [[("Ann", "person")]]
    assert json.loads(outcome.out)["id"] == "a"


def test_standard_input_goes_line_by_line_to_json_lines(extract: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Tom flew to Oslo .\n\nGreta flew to Lima .\n")))
    outcome = extract("-", "--labels", "city", "--format", "jsonl")
    assert rows(outcome.out) == [[("Oslo", "city")], [], [("Lima", "city")]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Tom",), "no labels"),
        (("Tom", "--labels", " ，, "), "no labels"),
        (("missing.txt", "--labels", "person"), "missing.txt: there is no such file"),
        (("Tom", "--labels", "person", "--threshold", "high"), "a threshold is"),
        (("Tom", "--labels", "person", "--threshold", "city=0.5"), "not among the labels"),
        (("Tom", "--labels", "person", "--types", "missing.yaml"), "missing.yaml"),
        (("Tom", "--labels", "person", "--overlap", "crossed"), "crossed"),
        (("Tom", "--labels", "person", "--format", "xml"), "xml"),
    ],
)
def test_bad_use_exits_with_2(
    extract: Callable, arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = extract(*arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


def test_a_missing_model_exits_with_2(command: Callable) -> None:
    outcome = command("extract", "Tom", "--labels", "person", "--model", "/no/such/model")
    assert outcome.code == 2
    assert "no model folder" in outcome.err


def test_help_has_an_example(command: Callable) -> None:
    outcome = command("extract", "--help")
    assert outcome.code == 0
    assert "Example: onoma extract" in outcome.out


def test_what_the_command_needs_is_light() -> None:
    script = """
import sys
import onoma.cli, onoma.asking, onoma.data.texts, onoma.extractor, onoma.rendering
heavy = {"torch", "transformers", "yaml", "rich", "huggingface_hub", "onnxruntime", "spacy"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
