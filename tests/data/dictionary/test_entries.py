"""Files of entries."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from onoma import OnomaError
from onoma.data.dictionary import Dictionary, Entry, read_entries, read_phrases


def entries(folder: Path, name: str, content: str, type: str | None = None) -> list[Entry]:
    (folder / name).write_text(content, "utf-8")
    return list(read_entries(folder / name, type))


def test_plain_entries_have_the_name_of_the_file_as_type(tmp_path: Path) -> None:
    assert entries(tmp_path, "side effect.txt", " headache \r\n\nnausea\n") == [
        Entry("headache", "side effect"),
        Entry("nausea", "side effect"),
    ]
    assert entries(tmp_path, "a.txt", "headache\n", "symptom") == [Entry("headache", "symptom")]


def test_compressed_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "drug.txt.xz").write_bytes(lzma.compress(b"aspirin\n"))
    assert list(read_entries(tmp_path / "drug.txt.xz")) == [Entry("aspirin", "drug")]


def test_the_column_with_fewer_values_is_the_type(tmp_path: Path) -> None:
    expected = [Entry("Oslo", "city"), Entry("Lima", "city"), Entry("Tom", "person")]
    assert entries(tmp_path, "a.tsv", "Oslo\tcity\nLima\tcity\nTom\tperson\n") == expected
    assert entries(tmp_path, "b.txt", "city\tOslo\ncity\tLima\nperson\tTom\n") == expected
    assert entries(tmp_path, "c.tsv", "Oslo\tcity\n") == [Entry("Oslo", "city")]


def test_counts_beside_entries_are_ignored(tmp_path: Path) -> None:
    content = "阿司匹林\t120\n肝素\t7\n青霉素\t7\n"
    assert [one.type for one in entries(tmp_path, "drug.txt", content)] == ["drug"] * 3
    assert entries(tmp_path, "drug.txt", content)[1].text == "肝素"


def test_json_lines_and_yaml_have_rules(tmp_path: Path) -> None:
    line = '{"entry": "Paris", "type": "city", "not_before": ["Hilton"]}\n{"entry": "no", "type": "x"}\n'
    assert entries(tmp_path, "a.jsonl", line) == [Entry("Paris", "city", ("Hilton",)), Entry("no", "x")]
    yaml = "city:\n  entries: [Paris, no, 1984]\n  not_after: [Mr.]\ndrug: [aspirin]\n"
    assert entries(tmp_path, "a.yaml", yaml) == [
        *(Entry(name, "city", (), ("Mr.",)) for name in ("Paris", "no", "1984")),
        Entry("aspirin", "drug"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "Oslo\tcity\nLima\n", "line 2: the line must have two columns.*got 1"),
        ("a.tsv", "Oslo\tcity\nLima\tcity\tx\n", "line 2: the line must have two columns.*got 3"),
        ("a.tsv", "Oslo\tcity\n\tcity\n", "line 2: the line must have two columns"),
        ("a.jsonl", '{"entry": "Oslo"}\n', "line 1: the key 'type' is missing"),
        ("a.jsonl", '{"entry": "Oslo", "type": ""}\n', "must not be empty"),
        ("a.jsonl", '{"entry": 5, "type": "x"}\n', "'entry' must be a string"),
        ("a.jsonl", '{"entry": "Oslo", "type": "x", "nt_before": []}\n', "the key 'nt_before' is not known"),
        ("a.jsonl", "rubbish\n", "not valid JSON"),
        ("a.yaml", "- Oslo\n", "gives the entries of each type"),
        ("a.yaml", "city: Oslo\n", "the entries of 'city' must be a list"),
        ("a.yaml", "city: {names: [Oslo]}\n", "the entries of 'city' must be a list"),
        ("a.yaml", "city: [Oslo, [Lima]]\n", "the entries of 'city' must be a list"),
        ("a.yaml", "city: [Oslo\n", "not valid YAML"),
        ("a.txt", "%PDF-1.7", "a PDF document"),
        ("a.txt", "\n \n", "has no entries"),
        ("missing", None, "no such file"),
    ],
)
def test_rubbish_is_refused(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(OnomaError, match=message):
        Dictionary.load(tmp_path / name)


def test_a_tab_that_appears_late_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("entry\n" * 2000 + "Oslo\tcity\n")
    with pytest.raises(OnomaError, match="line 2001: the line has a tab"):
        list(read_entries(tmp_path / "a.txt"))


def test_stop_lists_are_lines(tmp_path: Path) -> None:
    (tmp_path / "stop.txt").write_text("may\n\n the new york times \n")
    assert read_phrases(tmp_path / "stop.txt") == ["may", "the new york times"]
