"""`doccano`: JSON lines as the annotation tool doccano exports and imports them, with mentions in characters."""

from __future__ import annotations

from typing import Any

from onoma.data.formats.records import Record, has_entities_with, json_format
from onoma.entities import Document

_KEYS = ("id", "text", "data", "label", "labels", "entities")
EXAMPLE = '{"text": "Tom flew.", "label": [[0, 3, "person"]]} (characters, end exclusive)'


def _decode(record: Record) -> Document:
    """A record without "label", "labels" and "entities" is an unlabelled document."""
    annotated = None
    if "label" in record or "labels" in record:
        spans = record.triples("label" if "label" in record else "labels")
    elif "entities" in record:
        items = record.records("entities")
        spans = [(item.integer("start_offset"), item.integer("end_offset"), item.text("label")) for item in items]
    else:
        spans, annotated = [], ()
    text = record.text("data" if "data" in record and "text" not in record else "text")
    meta = record.others(_KEYS)
    return Document.from_spans(text, spans, annotated=annotated, id=record.identifier("id"), meta=meta)


def _encode(document: Document) -> dict[str, Any]:
    row: dict[str, Any] = {} if document.id is None else {"id": document.id}
    row["text"] = document.text
    if document.annotated is None or document.annotated:
        row["label"] = [list(entity.key) for entity in document.entities]
    return row


def _recognise(fields: dict[str, Any]) -> bool:
    if not ("text" in fields or "data" in fields):
        return False
    has_list = any(isinstance(fields.get(key), list) for key in ("label", "labels", "relations"))
    return has_list or has_entities_with(fields, "start_offset")


FORMAT = json_format("doccano", (), example=EXAMPLE, keys=_KEYS, recognise=_recognise, decode=_decode, encode=_encode)
