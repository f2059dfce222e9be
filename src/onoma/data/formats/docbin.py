"""`spacy`: a DocBin of spaCy (.spacy) with mentions in `doc.ents`, or in `doc.spans["sc"]` if they overlap."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from onoma.data.formats.base import Format, short_repr
from onoma.data.formats.spans import tile, words_and_spans
from onoma.data.overlaps import first_overlap
from onoma.entities import Document
from onoma.errors import DataError, OnomaError
from onoma.files import atomic_write_bytes, max_expanded_bytes, open_bytes, read_bytes, too_large
from onoma.text.tags import Span

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

SPAN_GROUP = "sc"
"""The span group that spaCy's span categorizer uses by default."""

_CHUNK = 1 << 20


def _import_spacy() -> tuple[ModuleType, Vocab]:
    """The module `spacy.tokens` and an empty vocabulary."""
    try:
        from spacy import tokens
        from spacy.vocab import Vocab
    except ImportError:
        raise OnomaError('the spacy format needs spaCy. Fix: pip install "onoma[spacy]".') from None
    return tokens, Vocab()


def _pieces(document: Document) -> tuple[list[str], list[bool], list[Span]]:
    """The words of a spaCy Doc, whether a space follows each of them, and the mentions as spans of these words.

    One space after a word is stored as a flag of the word, as spaCy does; all other gaps become words.
    """
    offsets, spans = words_and_spans(document)
    tiles, index = tile(offsets, len(document.text))
    is_word = set(index)
    words: list[str] = []
    spaces: list[bool] = []
    place: list[int] = []  # the index in `words` of each word of the document
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
    return doc  # for an unlabelled document no entities are set, which spaCy treats as missing annotation


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
    _check_size(content, path)
    try:
        docs = tokens.DocBin().from_bytes(content).get_docs(vocab)
        yield from map(_from_doc, docs)
    except Exception as error:  # a damaged file can make spaCy, msgpack or numpy raise anything
        fix = "write the file again with DocBin.to_disk, or name the format it really has"
        raise DataError(f"this is not a valid DocBin of spaCy ({short_repr(error)})", path=path, fix=fix) from None


def _check_size(content: bytes, path: Path) -> None:
    """Refuse a DocBin that expands too far; spaCy decompresses it as a whole."""
    limit, size, rest = max_expanded_bytes(len(content)), 0, content
    decompressor = zlib.decompressobj()
    while rest and size <= limit:
        try:
            size += len(decompressor.decompress(rest, _CHUNK))
        except zlib.error:
            return  # damaged, which is reported when it is read
        rest = decompressor.unconsumed_tail
    if size > limit:
        raise too_large(f"the file expands to more than {limit:,} bytes", path)


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
