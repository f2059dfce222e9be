"""Alignment of mentions and words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onoma import Document
from onoma.text import align, segment
from onoma.text.alignment import document_words


@st.composite
def documents(draw: st.DrawFn) -> Document:
    text = draw(st.text(min_size=1, max_size=30) | st.text(alphabet=list("ab -'\n北京1"), min_size=1, max_size=30))
    spans = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text) - 1))
        spans.append((start, draw(st.integers(start + 1, len(text))), "x"))
    return Document.from_spans(text, spans)


@given(documents())
def test_exact_alignment_restores_every_mention(document: Document) -> None:
    alignment = align(document, exact=True)
    for entity, (first, last) in zip(document.entities, alignment.mentions, strict=True):
        assert (alignment.words[first, 0], alignment.words[last, 1]) == (entity.start, entity.end)


@given(documents())
def test_alignment_trims_only_white_space_of_mentions(document: Document) -> None:
    alignment = align(document)
    for entity, (first, last) in zip(document.entities, alignment.mentions, strict=True):
        if entity.text.strip():
            assert document.text[alignment.words[first, 0] : alignment.words[last, 1]] == entity.text.strip()
        else:
            assert (first, last) == (-1, -1)


@given(documents())
def test_words_with_an_edge_of_a_mention_inside_are_counted(document: Document) -> None:
    cuts = {place for entity in document.entities for place in (entity.start, entity.end)}
    cut_words = [1 for start, end in segment(document.text) if any(start < cut < end for cut in cuts)]
    assert align(document).splits == len(cut_words)


def test_words_of_the_source_are_kept() -> None:
    document = Document.from_spans("do n't", [(0, 6, "x")], words=[(0, 2), (3, 6)])
    assert align(document).words.tolist() == [[0, 2], [3, 6]]
    assert align(document).mentions.tolist() == [[0, 1]]
    assert document_words(document).tolist() == [[0, 2], [3, 6]]
    assert document_words(Document("do n't")).tolist() == segment("do n't").tolist()
