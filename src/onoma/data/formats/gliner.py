"""`gliner`: the training data of GLiNER, with mentions counted in tokens and the last token inclusive."""

from __future__ import annotations

from typing import Any

from onoma.data.formats.records import Record, json_format
from onoma.data.formats.spans import from_tokens, to_tokens
from onoma.entities import Document

_KEYS = ("id", "text", "tokenized_text", "ner")
EXAMPLE = '{"tokenized_text": ["Tom", "flew"], "ner": [[0, 0, "person"]]} (tokens, end inclusive)'


def _decode(record: Record) -> Document:
    """A record without "ner" is an unlabelled document."""
    mentions = record.triples("ner") if "ner" in record else []
    return from_tokens(
        record.texts("tokenized_text"),
        [(first, last + 1, label) for first, last, label in mentions],
        text=record.text("text") if "text" in record else None,
        annotated=None if "ner" in record else (),
        id=record.identifier("id"),
        meta=record.others(_KEYS),
    )


def _encode(document: Document) -> dict[str, Any]:
    tokens, spans, text = to_tokens(document)
    row: dict[str, Any] = {"tokenized_text": tokens}
    if document.annotated is None or document.annotated:
        row["ner"] = [[first, end - 1, label] for first, end, label in spans]
    if text is not None:
        row["text"] = text
    if document.id is not None:
        row["id"] = document.id
    return row


def _recognise(fields: dict[str, Any]) -> bool:
    return "tokenized_text" in fields


FORMAT = json_format(
    "gliner", (".json",), example=EXAMPLE, keys=_KEYS, recognise=_recognise, decode=_decode, encode=_encode
)
