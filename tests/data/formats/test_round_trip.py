"""Every format restores what was written: the same texts in the same order, with the same mentions."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma import DataError, Document
from onoma.data.formats import FORMATS, convert, read, write
from onoma.data.formats.spans import to_tokens

NAMES = {
    "jsonl": "a.jsonl",
    "tokens": "a.jsonl.gz",
    "conll": "a.conll",
    "brat": "a",
    "doccano": "a.jsonl",
    "gliner": "a.json",
    "spacy": "a.spacy",
    "pubtator": "a.pubtator",
}
CHARACTERS = "aab B#-.|%\"'\\é中文カ\n\t\r \u3000\x85\u2028\ufeff\u0301😀\x00"
texts = st.text(alphabet=CHARACTERS, max_size=16) | st.sampled_from(
    ["-DOCSTART- x", '# text = "a"', "#\tO", "\ufeffa b", "12|t|a", "a b", "  a  b  ", "中 文", "\n", ""]
)
labels = st.sampled_from(["a", "person, nominal", "AI/ML-tool", "人名", "50%25", ".", "_-", "a b", "%"]) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=4
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    text = draw(texts)
    edges = st.lists(st.integers(0, len(text)), max_size=6, unique=True).map(sorted)
    cuts = draw(edges)
    words = list(zip(cuts[::2], cuts[1::2], strict=False)) if draw(st.booleans()) else None
    spans = [
        (min(pair), max(pair), draw(labels))
        for pair in draw(st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))), max_size=3))
        if pair[0] != pair[1]
    ]
    return Document.from_spans(text, spans, words=words)


def content(document: Document) -> tuple[str, list[tuple[int, int, str]]]:
    return document.text, [entity.key for entity in document.entities]


def restored(format: str, document: Document) -> tuple[str, list[tuple[int, int, str]]]:
    """The expected content after a round trip; columns cannot represent a repeated mention."""
    text, keys = content(document)
    return text, sorted(set(keys)) if format == "conll" else keys


def overlaps(document: Document) -> bool:
    taken: set[int] = set()
    for start, end, _ in {entity.key for entity in document.entities}:
        places = set(range(start, end))
        if taken & places:
            return True
        taken |= places
    return False


def refused(format: str, document: Document) -> bool:
    """Whether the format cannot represent the document."""
    if format == "pubtator":
        return "\n" in document.text or "\r" in document.text
    if format == "conll":
        return overlaps(document) or any(set(token) & set("\t\n\r") for token in to_tokens(document).tokens)
    return False


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=50, deadline=None)
@given(st.lists(documents(), max_size=3))
def test_random_documents_are_restored_or_refused(format: str, batch: list[Document]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / NAMES[format]
        if any(refused(format, document) for document in batch):
            with pytest.raises(DataError):
                write(batch, path, format)
            assert not any(Path(folder).iterdir())
            return
        assert write(batch, path, format) == len(batch)
        if not batch and format == "brat":  # an empty folder has no format
            return
        assert list(map(content, read(path, format))) == [restored(format, document) for document in batch]


DIFFICULT = {
    "a word that also occurs in a gap": Document.from_spans("ab ab", [(3, 5, "x")], words=[(3, 5)]),
    "one of two spaces": Document.from_spans("a  b", [(2, 4, "x")]),
    "a mark of documents as a word": Document.from_spans("-DOCSTART- x", [(0, 10, "x")], words=[(0, 10), (11, 12)]),
    "a byte order mark as a word": Document.from_spans("\ufeff a", [(0, 1, "x")], words=[(0, 1), (2, 3)]),
    "a byte order mark in a word": Document.from_spans("\ufeffa b", [(0, 2, "x")], words=[(0, 2), (3, 4)]),
    "a comment as words": Document.from_spans('# text = "a"', [(0, 1, "x")]),
    "no words at all": Document(" \u3000"),
    "a mention of white space": Document.from_spans("a   b", [(1, 4, "x")]),
    "the same mention twice": Document.from_spans("a b", [(0, 1, "x"), (0, 1, "x")]),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("document", DIFFICULT.values(), ids=DIFFICULT)
def test_difficult_documents_are_restored(format: str, document: Document, tmp_path: Path) -> None:
    path = tmp_path / NAMES[format]
    write([document, document], path, format)
    assert list(map(content, read(path, format))) == [restored(format, document)] * 2


FLAT = [
    Document.from_spans("Ann met Bo Li in Rome.", [(0, 3, "person"), (8, 13, "person"), (17, 21, "city")]),
    Document("Nothing here."),
    Document.from_spans("李明住在上海 。", [(0, 2, "人名"), (4, 6, "地名")]),
]
NESTED = [Document.from_spans("University of Oslo", [(0, 18, "school"), (14, 18, "city"), (14, 18, "place")])]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("batch", [FLAT, NESTED], ids=["flat", "nested"])
def test_documents_are_converted_from_and_to_the_canonical_format(
    format: str, batch: list[Document], tmp_path: Path
) -> None:
    if format == "conll" and batch is NESTED:
        pytest.skip("columns cannot represent nested mentions")
    progress: list[int] = []
    write(batch, tmp_path / "source.jsonl")
    there = convert(tmp_path / "source.jsonl", tmp_path / NAMES[format], target_format=format)
    back = convert(tmp_path / NAMES[format], tmp_path / "back.jsonl", on_progress=progress.append)
    assert there == back == len(batch)
    assert progress == list(range(1, len(batch) + 1))
    assert list(map(content, read(tmp_path / "back.jsonl"))) == list(map(content, batch))


@pytest.mark.parametrize("format", ["jsonl", "tokens", "conll", "gliner", "spacy"])
def test_the_words_of_the_source_are_kept(format: str, tmp_path: Path) -> None:
    document = Document.from_spans("re-do it", [(6, 8, "thing")], words=[(0, 5), (6, 8)])
    write([document], tmp_path / NAMES[format], format)
    (back,) = read(tmp_path / NAMES[format], format)
    assert back.words == document.words


@pytest.mark.parametrize("format", ["jsonl", "tokens", "brat", "doccano", "gliner", "spacy"])
def test_an_unlabelled_document_stays_unlabelled(format: str, tmp_path: Path) -> None:
    write([Document("one two", annotated=frozenset()), Document("three")], tmp_path / NAMES[format], format)
    unlabelled, without_mentions = read(tmp_path / NAMES[format], format)
    assert unlabelled.annotated == frozenset()
    assert without_mentions.annotated is None


@pytest.mark.parametrize("format", ["conll", "pubtator"])
def test_formats_that_cannot_mark_unlabelled_documents_warn_once(
    format: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write([Document("one", annotated=frozenset())] * 3 + [Document("three")], tmp_path / NAMES[format], format)
    (record,) = caplog.records
    assert "3 unlabelled documents" in record.getMessage()
    caplog.clear()
    write([Document("three")], tmp_path / NAMES[format], format)
    assert not caplog.records


def test_the_canonical_format_keeps_all_fields_of_a_document(tmp_path: Path) -> None:
    from dataclasses import replace

    first = Document.from_spans("Ann, Ann", [(0, 3, "a"), (0, 3, "b"), (5, 8, "a")], words=[(0, 3), (3, 4)], id="7")
    scored = tuple(replace(entity, score=0.25 * number) for number, entity in enumerate(first.entities))
    labels = frozenset({"a", "b", "c"})
    batch = [
        replace(first, entities=scored, annotated=labels, meta={"source": "news", "pages": [1, 2]}),
        Document("x", id="é"),
        Document("y", id=7),
    ]
    write(batch, tmp_path / "a.jsonl")
    assert list(read(tmp_path / "a.jsonl")) == batch


def test_a_file_can_be_converted_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(FLAT, path, "tokens")
    assert convert(path, path) == len(FLAT)
    assert "text" in path.read_text(encoding="utf-8")
    assert list(map(content, read(path))) == list(map(content, FLAT))
