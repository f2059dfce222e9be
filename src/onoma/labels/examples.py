"""Types by example: texts in which the mentions of types are marked, and the file of a model folder that keeps them.

examples.json   {"documents": [{"text": "take 40 mg daily", "entities": [{"start": 5, "end": 10, "label": "dose"}],
                 "annotated": ["dose"]}]}

`annotated` are the labels whose mentions are all marked: other spans of the text are not of these types.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from onoma.entities import Corpus, Document, EntityType
from onoma.errors import DataError, OnomaError
from onoma.files import atomic_write
from onoma.structured import read_json

EXAMPLES_FILE = "examples.json"
Examples = Corpus | Iterable[Document] | Mapping[str, Iterable[str]]
"""A corpus, documents, or texts with marks ("take [[40 mg]] daily") by type."""

_FIX = "save the model again"


class MarkedText(NamedTuple):
    """A text, and where the mentions of one type are in it; no other span is of this type."""

    text: str
    mentions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Documents that show what types are."""

    documents: tuple[Document, ...] = ()  # each says for which labels its annotation is complete

    @classmethod
    def parse(cls, examples: Examples) -> ExampleSet:
        """Examples in any of the forms in which they are given."""
        if isinstance(examples, Mapping):
            return cls(tuple(document for item in examples.items() for document in _marked(*item)))
        if isinstance(examples, (str, bytes)) or not isinstance(examples, Iterable):
            raise OnomaError(f"examples must be a corpus, documents, or texts with marks by type, got {examples!r:.80}")
        corpus = examples if isinstance(examples, Corpus) else Corpus("examples", _checked(examples))
        if not any(document.entities for document in corpus):
            raise OnomaError("there are no mentions in the examples. Fix: annotate some, or mark them as [[mention]]")
        return cls(tuple(replace(document, annotated=corpus.annotated(document)) for document in corpus))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that have a mention."""
        return tuple(sorted({entity.label for document in self.documents for entity in document.entities}))

    def __add__(self, other: ExampleSet) -> ExampleSet:
        return ExampleSet(tuple(dict.fromkeys(self.documents + other.documents)))

    def of(self, entity_type: EntityType) -> tuple[MarkedText, ...]:
        """The examples of a type: these, and its own marked ones; empty if none of them has a mention."""
        label = entity_type.name
        marked = [
            MarkedText(one.text, tuple((entity.start, entity.end) for entity in one.entities if entity.label == label))
            for one in (*self.documents, *entity_type.marked_examples)
            if label in (one.annotated or ())
        ]
        return tuple(dict.fromkeys(marked)) if any(one.mentions for one in marked) else ()

    def write(self, folder: Path) -> None:
        """Write examples.json into a model folder."""
        documents = [
            {
                "text": one.text,
                "entities": [{"start": each.start, "end": each.end, "label": each.label} for each in one.entities],
                "annotated": sorted(one.annotated or ()),
            }
            for one in self.documents
        ]
        with atomic_write(folder / EXAMPLES_FILE) as file:
            json.dump({"documents": documents}, file, ensure_ascii=False, indent=0)

    @classmethod
    def read(cls, folder: Path) -> ExampleSet:
        """The examples of a model folder; none if it has no examples.json."""
        path = folder / EXAMPLES_FILE
        if not os.path.lexists(path):
            return cls()
        content = read_json(path, _FIX)
        if not isinstance(content, dict) or not isinstance(content.get("documents"), list):
            raise DataError("there is no list of documents", path=path, fix=_FIX)
        return cls(tuple(_document(row, path) for row in content["documents"]))


def _marked(label: object, texts: object) -> Sequence[Document]:
    if not isinstance(label, str) or isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise OnomaError(
            f'examples by type are written as {{"dose": ["take [[40 mg]] daily"]}}, got {label!r}: {texts!r:.80}'
        )
    one = EntityType(label, examples=tuple(texts))
    if len(one.marked_examples) < len(one.examples):
        raise OnomaError(
            f"an example of {label!r} has no mark. Fix: mark the mentions, as in 'take [[40 mg]] daily'; examples "
            "without context belong to the type: EntityType(name, examples=[...])"
        )
    return one.marked_examples


def _checked(documents: Iterable[Document]) -> list[Document]:
    documents = list(documents)
    for one in documents:
        if not isinstance(one, Document):
            raise OnomaError(f"examples must be documents, or texts with marks by type, got {one!r:.80}")
    return documents


def _document(row: Any, path: Path) -> Document:
    try:
        spans = [(one["start"], one["end"], one["label"]) for one in row["entities"]]
        return Document.from_spans(row["text"], spans, annotated=row["annotated"])
    except (TypeError, KeyError, OnomaError) as error:
        raise DataError(f"a document is damaged ({error})", path=path, fix=_FIX) from None
