"""The format spacy (DocBin): exact texts, entities or span groups."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from onoma import DataError, Document, OnomaError
from onoma.data.formats import read, write

spacy_tokens = pytest.importorskip("spacy.tokens")
from spacy.tokens import Doc, DocBin, Span  # noqa: E402
from spacy.vocab import Vocab  # noqa: E402


def docs(path: Path) -> list[Doc]:
    return list(DocBin().from_disk(path).get_docs(Vocab()))


@pytest.mark.parametrize("text", ["", " ", "\n", "  a", "a  b", "a \n b ", "a\u3000b\x85", "中 文。", "\x00 a"])
def test_white_space_is_kept_exactly(tmp_path: Path, text: str) -> None:
    write([Document(text)], tmp_path / "a.spacy")
    assert [doc.text for doc in docs(tmp_path / "a.spacy")] == [text]


def test_flat_mentions_are_entities_and_overlapping_ones_a_span_group(tmp_path: Path) -> None:
    flat = Document.from_spans("Ann Lee ran", [(0, 7, "a person")])
    nested = Document.from_spans("Ann Lee ran", [(0, 7, "per"), (4, 7, "per"), (4, 7, "name")])
    write([flat, nested], tmp_path / "a.spacy")
    first, second = docs(tmp_path / "a.spacy")
    assert [(entity.text, entity.label_) for entity in first.ents] == [("Ann Lee", "a person")]
    assert not first.spans
    assert len(second.spans["sc"]) == 3
    assert not second.ents


def test_a_single_span_group_of_any_name_is_read(tmp_path: Path) -> None:
    doc = Doc(Vocab(), words=["Ann", "ran"], spaces=[True, False])
    doc.spans["mine"] = [Span(doc, 0, 1, label="per")]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    (document,) = read(tmp_path / "a.spacy")
    assert [entity.key for entity in document.entities] == [(0, 3, "per")]
    assert document.words == ((0, 3), (4, 7))


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    write([Document("Ann ran")], tmp_path / "a.spacy.gz")
    assert [document.text for document in read(tmp_path / "a.spacy.gz")] == ["Ann ran"]


def test_files_without_documents_can_be_written_and_read(tmp_path: Path) -> None:
    assert write([], tmp_path / "a.spacy") == 0
    assert list(read(tmp_path / "a.spacy")) == []
    (tmp_path / "b.spacy").touch()
    assert list(read(tmp_path / "b.spacy")) == []


def test_a_span_without_a_label_is_a_data_error(tmp_path: Path) -> None:
    doc = Doc(Vocab(), words=["Ann"])
    doc.spans["sc"] = [Span(doc, 0, 1)]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    with pytest.raises(DataError, match="empty label"):
        list(read(tmp_path / "a.spacy"))


def test_the_error_without_spacy_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(OnomaError, match=r'pip install "onoma\[spacy\]"'):
        write([Document("x")], tmp_path / "a.spacy")
