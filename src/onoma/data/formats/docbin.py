"""`spacy`: a DocBin of spaCy (.spacy), mentions in `doc.ents`, or in `doc.spans["sc"]` where they overlap."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from onoma.data.files import atomic_write_bytes, open_bytes, read_bytes
from onoma.data.formats.base import Format, shown
from onoma.data.formats.spans import Span, aligned, first_overlap, tile
from onoma.entities import Document
from onoma.errors import DataError, OnomaError

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

SPAN_GROUP = "sc"
"""The group of spans that spaCy's own span categoriser uses."""


def _import_spacy() -> tuple[ModuleType, Vocab]:
    """The module of spaCy that holds its documents, and an empty vocabulary."""
    try:
        from spacy import tokens
        from spacy.vocab import Vocab
    except ImportError:
        raise OnomaError('the spacy format needs spaCy. Fix: pip install "onoma[spacy]".') from None
    return tokens, Vocab()


def _pieces(document: Document) -> tuple[list[str], list[bool], list[Span]]:
    """Words that together with the spaces after some of them make up the text, and the mentions in them.

    One space after a word is kept as spaCy keeps it, as a mark on the word; all other gaps become words.
    """
    offsets, spans = aligned(document)
    tiles, index = tile(offsets, len(document.text))
    is_word = set(index)
    words: list[str] = []
    spaces: list[bool] = []
    place: list[int] = []  # where in `words` each word stands
    for number, (start, end) in enumerate(tiles):
        piece = document.text[start:end]
        if number in is_word:
            place.append(len(words))
        elif words and piece[0] == " ":
            spaces[-1] = True
            piece = piece[1:]
        if piece:
            words.append(piece)
            spaces.append(False)
    return words, spaces, [(place[first], place[end - 1] + 1, label) for first, end, label in spans]


def _to_doc(document: Document, vocab: Vocab) -> Doc:
    from spacy.tokens import Doc
    from spacy.tokens import Span as DocSpan

    words, spaces, spans = _pieces(document)
    doc = Doc(vocab, words=words, spaces=spaces)
    mentions = [DocSpan(doc, first, end, label=label) for first, end, label in spans]
    if first_overlap(document.entities):
        doc.spans[SPAN_GROUP] = mentions
    elif document.annotated is None or document.annotated:
        doc.set_ents(mentions)
    return doc  # no entities set: to spaCy they are missing, not absent


def _from_doc(doc: Doc) -> Document:
    mentions = doc.ents or _span_group(doc)
    unlabelled = not mentions and not doc.spans and not doc.has_annotation("ENT_IOB")
    return Document.from_spans(
        doc.text,
        [(mention.start_char, mention.end_char, mention.label_) for mention in mentions],
        annotated=() if unlabelled else None,
        words=[(token.idx, token.idx + len(token.text)) for token in doc],
    )


def _span_group(doc: Doc) -> Any:
    if SPAN_GROUP in doc.spans:
        return doc.spans[SPAN_GROUP]
    return next(iter(doc.spans.values())) if len(doc.spans) == 1 else ()


def _read(path: Path) -> Iterator[Document]:
    tokens, vocab = _import_spacy()
    content = read_bytes(path)
    if not content:
        return
    try:
        docs = tokens.DocBin().from_bytes(content).get_docs(vocab)
        yield from map(_from_doc, docs)
    except Exception as error:  # a damaged file can make spaCy, msgpack or numpy raise anything
        fix = "write the file again with DocBin.to_disk, or name its true format"
        raise DataError(f"this is not a sound DocBin of spaCy ({shown(error)})", path=path, fix=fix) from None


def _write(documents: Iterable[Document], path: Path) -> int:
    tokens, vocab = _import_spacy()
    docbin = tokens.DocBin(attrs=["ENT_IOB", "ENT_TYPE"])
    with atomic_write_bytes(path) as file:
        for document in documents:
            docbin.add(_to_doc(document, vocab))
        file.write(docbin.to_bytes())
    return len(docbin)


def _sniff(path: Path) -> bool:
    with open_bytes(path) as file:
        head = file.read(256)
    try:
        return b"version" in zlib.decompressobj().decompress(head, 64)
    except zlib.error:
        return False


FORMAT = Format("spacy", (".spacy",), _sniff, _read, _write)
