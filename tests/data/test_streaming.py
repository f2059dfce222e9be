"""Documents of corpora and of plain text, one by one."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from onoma import Document, OnomaError
from onoma.data import write
from onoma.data.streaming import stream_documents

GOLD = [Document.from_spans("Tom sings", [(0, 3, "person")]), Document("All is quiet.")]


def texts(source: Path | str, format: str | None = None) -> list[str]:
    return [document.text for document in stream_documents(source, format).documents]


@pytest.mark.parametrize("name", ["a.jsonl", "a.conll", "a.txt", "a.spacy"])
def test_corpora_of_any_format(tmp_path: Path, name: str) -> None:
    write(GOLD, tmp_path / name, "conll" if name.endswith(".txt") else None)
    assert [one.entities for one in stream_documents(tmp_path / name).documents] == [one.entities for one in GOLD]


def test_lines_of_plain_text_are_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Tom sings.\r\n\n  \nÅre\u2028 is far.\n".encode())
    stream = stream_documents(tmp_path / "a.txt")
    documents = list(stream.documents)
    assert [one.text for one in documents] == ["Tom sings.", "Åre\u2028 is far."]
    assert {one.annotated for one in documents} == {frozenset()}
    assert stream.bytes == (tmp_path / "a.txt").stat().st_size
    assert texts(tmp_path / "a.txt", "text") == ["Tom sings.", "Åre\u2028 is far."]


def test_a_folder_of_text_files(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("second\n")
    (tmp_path / "a.txt").write_text("first\n")
    assert texts(tmp_path) == ["first", "second"]


def test_one_split_of_a_folder(tmp_path: Path) -> None:
    write(GOLD[:1], tmp_path / "train.jsonl")
    assert texts(tmp_path) == ["Tom sings"]
    write(GOLD[1:], tmp_path / "test.jsonl")
    assert texts(f"{tmp_path}:test") == ["All is quiet."]
    with pytest.raises(OnomaError, match="several splits"):
        stream_documents(tmp_path)


def test_documents_are_read_when_they_are_needed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"first\n" * 100_000 + b"\xff\n")
    assert len(list(islice(stream_documents(tmp_path / "a.txt").documents, 10))) == 10
    with pytest.raises(OnomaError, match="line 100001: the line is not UTF-8"):
        texts(tmp_path / "a.txt")


def test_rubbish_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"%PDF-1.7")
    with pytest.raises(OnomaError, match="PDF"):
        stream_documents(tmp_path / "a.txt")
    with pytest.raises(OnomaError, match="no such file"):
        stream_documents(tmp_path / "b.txt")
    (tmp_path / "c.txt").write_text("x")
    with pytest.raises(OnomaError, match="there is no format 'word'"):
        stream_documents(tmp_path / "c.txt", "word")
