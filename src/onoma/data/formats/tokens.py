"""`tokens`: JSON lines with tokens, and mentions counted in tokens."""

from __future__ import annotations

from typing import Any

from onoma.data.formats.records import Record, json_format
from onoma.data.formats.spans import from_tokens, to_tokens
from onoma.entities import Document

_KEYS = ("id", "text", "tokens", "entities", "queried_types", "absent")
EXAMPLE = '{"tokens": ["Tom", "flew"], "entities": [{"start": 0, "end": 1, "type": "person"}]} (tokens, end exclusive)'


def _decode(record: Record) -> Document:
    """A record without "entities" is an unlabelled document.

    "queried_types" lists the annotated labels; "absent" lists labels that are annotated and have no mention.
    """
    items = record.records("entities") if "entities" in record else []
    spans = [(item.integer("start"), item.integer("end"), item.text("type")) for item in items]
    annotated: list[str] | None = None
    if "entities" not in record:
        annotated = []
    elif "queried_types" in record:
        annotated = record.texts("queried_types")
    elif "absent" in record:
        annotated = [*(label for *_, label in spans), *record.texts("absent")]
    text = record.text("text") if "text" in record else None
    return from_tokens(
        record.texts("tokens"),
        spans,
        text=text,
        annotated=annotated,
        id=record.identifier("id"),
        meta=record.others(_KEYS),
    )


def _encode(document: Document) -> dict[str, Any]:
    tokens, spans, text = to_tokens(document)
    row: dict[str, Any] = {"tokens": tokens}
    if text is not None:
        row["text"] = text
    if document.annotated is None or document.annotated:
        row["entities"] = [{"start": first, "end": end, "type": label} for first, end, label in spans]
    if document.annotated:
        row["queried_types"] = sorted(document.annotated)
    if document.id is not None:
        row["id"] = document.id
    return row


def _recognise(fields: dict[str, Any]) -> bool:
    return isinstance(fields.get("tokens"), list)


FORMAT = json_format("tokens", (), example=EXAMPLE, keys=_KEYS, recognise=_recognise, decode=_decode, encode=_encode)
