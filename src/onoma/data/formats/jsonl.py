"""`jsonl`, the canonical format: one document per line, mentions in characters. It keeps all fields of a document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from onoma.data.formats.base import check_mention_text
from onoma.data.formats.records import Record, has_entities_with, json_format
from onoma.entities import Document

_KEYS = ("id", "text", "entities", "annotated", "words")
EXAMPLE = '{"text": "Tom flew.", "entities": [{"start": 0, "end": 3, "label": "person"}]} (characters, end exclusive)'


def _decode(record: Record) -> Document:
    """A record without "entities" is an unlabelled document."""
    text = record.text("text")
    items = record.records("entities") if "entities" in record else []
    mentions = [_mention(item, text) for item in items]
    annotated = record.texts("annotated") if "annotated" in record else None if "entities" in record else ()
    document = Document.from_spans(
        text,
        [mention[:3] for mention in mentions],
        annotated=annotated,
        words=record.pairs("words") if "words" in record else None,
        id=record.identifier("id"),
        meta=record.others(_KEYS),
    )
    # sorted mentions have the same order as the entities of the document
    scores = [score for *_, score in sorted(mentions)]
    entities = (replace(entity, score=score) for entity, score in zip(document.entities, scores, strict=True))
    return replace(document, entities=tuple(entities)) if set(scores) - {1.0} else document


def _mention(item: Record, text: str) -> tuple[int, int, str, float]:
    start, end = item.integer("start"), item.integer("end")
    if "text" in item:
        check_mention_text(text[max(start, 0) : max(end, 0)], item.text("text"))
    return start, end, item.text("label"), item.number("score") if "score" in item else 1.0


def _encode(document: Document) -> dict[str, Any]:
    row: dict[str, Any] = {} if document.id is None else {"id": document.id}
    row["text"] = document.text
    row["entities"] = [
        {"start": entity.start, "end": entity.end, "label": entity.label}
        | ({} if entity.score == 1.0 else {"score": entity.score})
        for entity in document.entities
    ]
    if document.annotated is not None:
        row["annotated"] = sorted(document.annotated)
    if document.words is not None:
        row["words"] = document.words
    return row


def _recognise(fields: dict[str, Any]) -> bool:
    has_mentions = "annotated" in fields or has_entities_with(fields, "start")
    return has_mentions and "text" in fields and "tokens" not in fields


FORMAT = json_format(
    "jsonl", (".jsonl", ".ndjson"), example=EXAMPLE, keys=_KEYS, recognise=_recognise, decode=_decode, encode=_encode
)
