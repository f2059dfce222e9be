"""`onoma extract`."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onoma.cli.shared import TextProgress
from onoma.data import write
from tiny import document

TEXT = "The Rome Players will sing for Maria Silva today ."


@pytest.fixture
def extract(command: Callable[..., Any], tiny_model: Path) -> Callable[..., Any]:
    return lambda *arguments: command("extract", *arguments, "--model", tiny_model, "--backend", "torch")


def rows(lines: str) -> list[list[tuple[str, str]]]:
    return [[(one["text"], one["label"]) for one in json.loads(line)["entities"]] for line in lines.splitlines()]


def give_input(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_table_of_entities(extract: Callable[..., Any]) -> None:
    outcome = extract(TEXT, "--labels", "person, city")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split("│")[1:4] for line in outcome.out.splitlines() if "Maria Silva" in line] == [
        ["    31 ", "  42 ", " Maria Silva "]
    ]
    assert "Rome" in outcome.out


@pytest.mark.parametrize("name", ["embedded", "embedded/en"])
def test_the_embedded_model_by_name(command: Callable[..., Any], name: str) -> None:
    outcome = command("extract", "Tom flew to Paris.", "--labels", "city", "--model", name, "--format", "json")
    assert [one["text"] for one in json.loads(outcome.out)[0]["entities"]] == ["Paris"]


def test_overlap_threshold_and_json(extract: Callable[..., Any]) -> None:
    outcome = extract(TEXT, "--labels", "person,city,band", "--overlap", "nested", "--format", "json")
    (document,) = json.loads(outcome.out)
    assert [one["label"] for one in document["entities"]] == ["band", "city", "person"]
    outcome = extract(TEXT, "--labels", "person,city,band", "--threshold", "city=1,band=1", "--format", "json")
    assert [one["label"] for one in json.loads(outcome.out)[0]["entities"]] == ["person"]


@pytest.mark.parametrize(
    "labels", [["person，city、"], ["person", "city"], ["city", "person, city"], ['"person" ,city', ""]]
)
def test_labels_are_separated_by_any_commas_or_given_one_by_one(extract: Callable[..., Any], labels: list[str]) -> None:
    expected = extract(TEXT, "--labels", "person,city", "--format", "jsonl").out
    options = [word for label in labels for word in ("--labels", label)]
    assert extract(TEXT, *options, "--format", "jsonl").out == expected != ""


def test_a_label_in_double_quotes_may_contain_commas(extract: Callable[..., Any]) -> None:
    arguments = ("--labels", '"city, town", person', "--threshold", "0.0", "--overlap", "any", "--format", "jsonl")
    found = rows(extract("Tom flew to Paris .", *arguments).out)
    assert {label for _, label in found[0]} == {"city, town", "person"}


def test_types_from_a_file_and_html(extract: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "types.yaml").write_text("city: a large town\n")
    page = tmp_path / "found.html"
    outcome = extract(
        TEXT, "--labels", "person", "--types", tmp_path / "types.yaml", "--format", "html", "--output", page
    )
    assert (outcome.code, outcome.out) == (0, "")
    assert "<span>city</span>Rome</mark>" in page.read_text("utf-8")
    assert "<span>person</span>Maria Silva</mark>" in page.read_text("utf-8")


def test_files_of_text_and_of_documents(extract: Callable[..., Any], tmp_path: Path) -> None:
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


@pytest.mark.parametrize("output_format", ["jsonl", "json"])
def test_other_keys_and_integer_ids_of_json_lines_are_kept(
    extract: Callable[..., Any], output_format: str, tmp_path: Path
) -> None:
    records = [
        {"id": 7, "text": "Ann flew to Oslo .", "source": "news", "tags": ["a", {"b": None}], "year": 1999},
        {"id": "x", "text": "We eat soup .", "entities": [], "title": "Suppe – 汤"},
    ]
    source = tmp_path / "news.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    out = extract(source, "--labels", "person", "--format", output_format).out
    found = json.loads(out) if output_format == "json" else [json.loads(line) for line in out.splitlines()]
    entities = [[one["text"] for one in record.pop("entities")] for record in found]
    assert entities == [["Ann"], []]
    assert found == [{key: value for key, value in record.items() if key != "entities"} for record in records]


def test_each_line_of_standard_input_is_a_document_for_json_lines(
    extract: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    give_input(b"Tom flew to Oslo .\n\nGreta flew to Lima .\n", monkeypatch)
    outcome = extract("-", "--labels", "city", "--format", "jsonl")
    assert rows(outcome.out) == [[("Oslo", "city")], [], [("Lima", "city")]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Tom",), "no labels"),
        (("Tom", "--labels", " ，, "), "no labels"),
        (("Tom", "--labels", '"person, city'), "a double quote is not closed"),
        (("missing.txt", "--labels", "person"), "missing.txt: there is no such file"),
        (("Tom", "--labels", "person", "--threshold", "high"), "or precise, balanced, complete"),
        (("Tom", "--labels", "person", "--threshold", "person=high"), "or precise, balanced, complete"),
        (("Tom", "--labels", "person", "--threshold", "city=0.5"), "not among the labels"),
        (("Tom", "--labels", "person", "--types", "missing.yaml"), "missing.yaml"),
        (("Tom", "--labels", "person", "--overlap", "crossed"), "crossed"),
        (("Tom", "--labels", "person", "--format", "xml"), "xml"),
    ],
)
def test_bad_use_exits_with_2(
    extract: Callable[..., Any],
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = extract(*arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


def docx() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", "<w:document><w:t>Tom flew to Paris .</w:t></w:document>" * 50)
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("letter.docx", docx(), "an Office document (docx"),
        ("letter.txt", docx(), "an Office document (docx"),
        ("paper.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "a PDF document"),
        ("paper.pdf", b"%PDF-1.7\nonly ASCII\n", "a PDF document"),
        ("letter.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "an old Office document"),
        ("letter.rtf", b"{\\rtf1\\ansi Tom}", "an RTF document"),
        ("photo.png", b"\x89PNG\r\n\x1a\n", "a PNG image"),
        ("photo.jpg", b"\xff\xd8\xff\xe0", "a JPEG image"),
        ("notes.txt", "Tom flew".encode("utf-16"), "text in UTF-16"),
        ("news.txt", b"\x1f\x8b\x08\x00", "a gzip file"),
        ("data.sqlite", b"SQLite format 3\x00", "an SQLite database"),
        ("data.bin", b"Tom\x00Ann", "a binary file"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--lines",)])
def test_binary_files_are_refused_by_kind(
    command: Callable[..., Any], name: str, content: bytes, kind: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    outcome = command("extract", tmp_path / name, "--labels", "person", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert name in outcome.err
    assert kind in outcome.err
    assert "Fix: " in outcome.err


@pytest.mark.parametrize(
    ("content", "kind"), [(docx(), "an Office document"), (b"\x89PNG\r\n\x1a\n\xff", "a PNG image")]
)
def test_binary_standard_input_is_refused_by_kind(
    command: Callable[..., Any], content: bytes, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_input(content, monkeypatch)
    outcome = command("extract", "-", "--labels", "person")
    assert (outcome.code, outcome.out) == (2, "")
    assert kind in outcome.err


def test_a_missing_model_exits_with_2(command: Callable[..., Any]) -> None:
    outcome = command("extract", "Tom", "--labels", "person", "--model", "/no/such/model")
    assert outcome.code == 2
    assert "no model folder" in outcome.err


def test_help_has_an_example(command: Callable[..., Any]) -> None:
    outcome = command("extract", "--help")
    assert outcome.code == 0
    assert "Example: onoma extract" in outcome.out


def test_the_command_imports_no_heavy_library() -> None:
    script = """
import sys
import onoma.cli, onoma.data.rendering, onoma.data.texts, onoma.extractor, onoma.labels.parsing
heavy = {"torch", "transformers", "yaml", "rich", "huggingface_hub", "onnxruntime", "spacy"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_japanese_with_many_kanji_warns_once(tmp_path: Path) -> None:
    (tmp_path / "news.txt").write_text("東京都知事選挙は七月に行われる予定\n" * 3 + "北京在下雨\n", "utf-8")
    arguments = ["extract", "news.txt", "--lines", "--labels", "city", "--format", "jsonl"]
    command = [sys.executable, "-m", "onoma", *arguments]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, text=True, check=True)
    assert len(rows(done.stdout)) == 4
    (warning,) = done.stderr.splitlines()
    assert "letters of the script Hiragana" in warning


def test_long_extraction_prints_rate_and_remaining_time(
    extract: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.cli.shared.SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("onoma.extractor.SECTION_TOKENS", 500)
    path = tmp_path / "long.txt"
    path.write_text("Tom flew to Paris . " * 1000)
    outcome = extract(path, "--labels", "person", "--format", "jsonl")
    assert len(rows(outcome.out)[0]) == 1000
    lines = outcome.err.splitlines()
    assert len(lines) > 5
    pattern = r"read [\d,]+ characters of 20,000 \(\d+%\), [\d,]+ per second, (\d+ min )?\d+ s left"
    assert all(re.fullmatch(pattern, line) for line in lines)
    read = [int(line.split()[1].replace(",", "")) for line in lines]
    assert read == sorted(set(read))
    assert lines[-1].startswith("read 20,000 characters of 20,000 (100%)")
    assert lines[-1].endswith(", 0 s left")


def test_lines_of_unknown_number_have_a_rate_but_no_remaining_time(
    extract: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.cli.shared.SECONDS_BETWEEN_LINES", 0.0)
    give_input(b"Tom flew to Paris .\n" * 40, monkeypatch)
    outcome = extract("-", "--labels", "person", "--format", "jsonl", "--batch-size", 1)
    lines = outcome.err.splitlines()
    assert re.fullmatch(r"read 760 characters, [\d,]+ per second", lines[-1])


def test_short_extraction_prints_no_progress(extract: Callable[..., Any]) -> None:
    assert extract("Tom flew to Paris . " * 100, "--labels", "person").err == ""


def test_remaining_time_follows_from_the_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 9.0, 10.0, 15.0, 30.0])
    monkeypatch.setattr("onoma.cli.shared.time.monotonic", lambda: next(clock))
    progress = TextProgress(10_000)
    for characters in (900, 1000, 1500, 9000):  # after 9, 10, 15 and 30 seconds
        progress.update(characters)
    assert capsys.readouterr().err.splitlines() == [
        "read 1,000 characters of 10,000 (10%), 100 per second, 1 min 30 s left",
        "read 9,000 characters of 10,000 (90%), 300 per second, 3 s left",
    ]


def test_rows_of_a_table_appear_while_input_is_read() -> None:
    script = """
import onoma.data.rendering
from onoma.cli import main
onoma.data.rendering.SECONDS_BETWEEN_TABLES = 0.0
main()
"""
    arguments = ["extract", "-", "--lines", "--labels", "city", "--batch-size", "1"]
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write("Tom flew to Paris.\n" * 17)  # one more than are read together
        running.stdin.flush()
        while "Paris" not in running.stdout.readline():  # its input is still open
            assert running.poll() is None
        running.stdin.close()
        rest = running.stdout.read()
        assert running.wait(timeout=60) == 0
    assert rest.count("Paris") == 16
    assert "label" not in rest  # the header is printed once


def test_types_are_shown_by_examples(extract: Callable[..., Any], tmp_path: Path) -> None:
    marked = [document("[who|Tom] flew to Rome ."), document("In Oslo it rains , says [who|Ann] .")]
    write([*marked, document("[who|Maria Silva] flew to Lima .")], tmp_path / "examples.conll")
    examples = ("--examples", tmp_path / "examples.conll")
    outcome = extract("Greta flew to Paris .", *examples, "--format", "jsonl")
    assert rows(outcome.out) == [[("Greta", "who")]]
    outcome = extract("Greta flew to Paris .", *examples, "--labels", "who, city", "--format", "jsonl")
    assert rows(outcome.out) == [[("Greta", "who"), ("Paris", "city")]]
    outcome = extract("Greta flew to Paris .", *examples, "--labels", "city")
    assert outcome.code == 2
    assert "there are no examples of the types asked for (its types: who). Fix: give examples of city" in outcome.err


def test_several_files_at_once(extract: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("Tom flew to Oslo .\nGreta flew to Lima .\n")
    Path("b.jsonl").write_text('{"id": 7, "text": "We eat soup ."}\n{"text": "Ann flew to Rome ."}\n')
    options = ("--labels", "person")
    outcome = extract("a.txt", "b.jsonl", *options, "--format", "jsonl")
    assert rows(outcome.out) == [[("Tom", "person"), ("Greta", "person")], [], [("Ann", "person")]]
    assert [json.loads(line)["file"] for line in outcome.out.splitlines()] == ["a.txt", "b.jsonl", "b.jsonl"]
    found = [line.split(",") for line in extract("a.txt", "b.jsonl", *options, "--format", "csv").out.splitlines()]
    assert [row[:7] for row in found] == [
        ["file", "document", "id", "start", "end", "text", "label"],
        ["a.txt", "1", "", "0", "3", "Tom", "person"],
        ["a.txt", "1", "", "19", "24", "Greta", "person"],
        ["b.jsonl", "2", "", "0", "3", "Ann", "person"],
    ]
    table = extract("b.jsonl", "a.txt", *options, "--lines").out
    assert [line.split()[1] for line in table.splitlines() if "person" in line] == ["b.jsonl:2", "a.txt:1", "a.txt:2"]
    page = extract("a.txt", "b.jsonl", *options, "--format", "html").out
    assert [name in page for name in ("<h2>a.txt</h2>", "<h2>7</h2>", "<h2>b.jsonl</h2>")] == [True] * 3


def test_the_name_of_the_output_gives_the_format(extract: Callable[..., Any], tmp_path: Path) -> None:
    for name, start in {
        "found.csv": b"file,document,id,start",
        "found.CSV.gz": b"\x1f\x8b",
        "found.parquet": b"PAR1",
        "found.jsonl": b'{"text"',
        "found.json": b"[\n",
        "found.html": b"<!DOCTYPE html>",
        "found.txt": "┏".encode(),
    }.items():
        outcome = extract(TEXT, "--labels", "person, city", "--output", tmp_path / name)
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
        assert (tmp_path / name).read_bytes().startswith(start)
    extract(TEXT, "--labels", "person", "--format", "jsonl", "--output", tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_bytes().startswith(b'{"text"')  # what is named counts


def test_words_without_quotes_are_not_taken_for_texts(extract: Callable[..., Any]) -> None:
    outcome = extract("Tom", "flew", "--labels", "person")
    assert (outcome.code, outcome.out) == (2, "")
    assert (
        "Tom: there is no such file. Fix: check the path; a text (in quotes) or - must be the only source."
        in outcome.err
    )


def test_parquet_without_a_file_exits_with_2(extract: Callable[..., Any]) -> None:
    outcome = extract("Tom", "--labels", "person", "--format", "parquet")
    assert (outcome.code, outcome.out) == (2, "")
    assert "Fix: --output found.parquet" in outcome.err
