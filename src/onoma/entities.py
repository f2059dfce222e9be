"""The vocabulary: what is asked for, what is found, and the texts that both belong to.

Everything here is frozen: a function that changes something returns a new object.
Offsets are characters of a Python string (Unicode code points), `end` exclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING

from onoma.errors import OnomaError

if TYPE_CHECKING:
    from onoma.data.statistics import Statistics

SHOWN_TYPES = 8
"""How many of its types a corpus names when it is printed."""


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise OnomaError(f"the text of a document must be a string, got {text!r}")


def _check_offsets(start: object, end: object) -> None:
    """Whole numbers, those of numpy too; True and 3.0 are mistakes, though Python would compare them."""
    if not all(isinstance(offset, Integral) and not isinstance(offset, bool) for offset in (start, end)):
        raise OnomaError(f"the start and end of a mention are whole numbers, got start={start!r}, end={end!r}")


@dataclass(frozen=True, slots=True)
class EntityType:
    """What is asked for: a name in words, and optionally what helps to recognise it.

    >>> EntityType("drug", "a medicine or active substance", examples=("aspirin",), threshold=0.4).name
    'drug'
    """

    name: str
    description: str = ""
    examples: tuple[str, ...] = ()
    threshold: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise OnomaError(f"an entity type needs a name in words, got {self.name!r}")
        if not isinstance(self.description, str):
            raise OnomaError(f"the description of type {self.name!r} must be a string, got {self.description!r}")
        if isinstance(self.examples, str) or not all(isinstance(example, str) for example in self.examples):
            raise OnomaError(f"the examples of type {self.name!r} must be a list of strings, got {self.examples!r}")
        object.__setattr__(self, "examples", tuple(self.examples))
        if self.threshold is not None and not (isinstance(self.threshold, Real) and 0.0 <= self.threshold <= 1.0):
            raise OnomaError(f"the threshold of type {self.name!r} must lie between 0 and 1, got {self.threshold!r}")


@dataclass(frozen=True, slots=True, order=True)
class Entity:
    """A mention: `text[start:end]` of its document, its label and how sure the model is (1.0 for gold)."""

    start: int
    end: int
    text: str
    label: str
    score: float = 1.0

    def __post_init__(self) -> None:
        # locals, and one comparison for what nearly every mention is: readers make millions of them
        start, end, text, label, score = self.start, self.end, self.text, self.label, self.score
        if not (type(start) is type(end) is int and type(text) is type(label) is str and type(score) is float):
            self._check_types()
        if not 0 <= start < end:
            raise OnomaError(f"a mention needs 0 <= start < end, got start={start}, end={end}")
        if len(text) != end - start:
            raise OnomaError(
                f"a mention from {start} to {end} has {end - start} characters, but its text {text!r} has {len(text)}"
            )
        if not label:
            raise OnomaError(f"the mention {text!r} at {start} has an empty label")
        if score != score:  # true of nan alone
            raise OnomaError(f"the score of {text!r} is not a number")

    def _check_types(self) -> None:
        _check_offsets(self.start, self.end)
        if not isinstance(self.text, str):
            raise OnomaError(f"the text of the mention {self.start}-{self.end} must be a string, got {self.text!r}")
        if not isinstance(self.label, str):
            raise OnomaError(f"the label of the mention {self.text!r} must be a string, got {self.label!r}")
        if not isinstance(self.score, Real):
            raise OnomaError(f"the score of {self.text!r} is not a number: {self.score!r}")

    @property
    def key(self) -> tuple[int, int, str]:
        """What strict evaluation compares: (start, end, label)."""
        return self.start, self.end, self.label


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its gold or predicted entities, kept in order of their offsets.

    `annotated` names the labels for which the annotation is complete; None means all of the corpus's
    inventory. Other labels are unknown here, never negatives. `words` are the offsets of the words
    that the source itself gave (token corpora); None means that Onoma segments the text.
    """

    text: str
    entities: tuple[Entity, ...] = ()
    annotated: frozenset[str] | None = None
    words: tuple[tuple[int, int], ...] | None = field(default=None, repr=False)
    id: str | None = None

    def __post_init__(self) -> None:
        _check_text(self.text)
        object.__setattr__(self, "entities", tuple(sorted(self.entities)))
        for entity in self.entities:
            if self.text[entity.start : entity.end] != entity.text:
                raise OnomaError(
                    f"the entity {entity.text!r} ({entity.start}-{entity.end}) does not match its document, "
                    f"which reads {self.text[entity.start : entity.end]!r} there"
                )
        if self.annotated is not None:
            object.__setattr__(self, "annotated", frozenset(self.annotated))
            outside = {entity.label for entity in self.entities} - self.annotated
            if outside:
                raise OnomaError(f"labels used but not listed in 'annotated': {', '.join(sorted(outside))}")
        if self.words is not None:
            object.__setattr__(self, "words", tuple((start, end) for start, end in self.words))
            previous = 0
            for start, end in self.words:
                if not previous <= start < end <= len(self.text):
                    raise OnomaError(f"word {start}-{end} is empty, out of order or outside of the text")
                previous = end

    @classmethod
    def from_spans(
        cls,
        text: str,
        spans: Iterable[tuple[int, int, str]],
        *,
        annotated: Iterable[str] | None = None,
        words: Iterable[tuple[int, int]] | None = None,
        id: str | None = None,
    ) -> Document:
        """Build a document from (start, end, label) triples.

        >>> Document.from_spans("Tom flew to Paris.", [(12, 17, "city")]).entities[0].text
        'Paris'
        """
        _check_text(text)
        length, entities = len(text), []
        for start, end, label in spans:
            if not type(start) is type(end) is int:
                _check_offsets(start, end)
            if not 0 <= start < end <= length:
                raise OnomaError(
                    f"the mention {start}-{end} ({label}) is empty or outside of the text, "
                    f"which has {length} characters"
                )
            entities.append(Entity(start, end, text[start:end], label))
        return cls(
            text,
            tuple(entities),
            frozenset(annotated) if annotated is not None else None,
            tuple(words) if words is not None else None,
            id,
        )

    @property
    def labels(self) -> frozenset[str]:
        """The labels that have a mention here."""
        return frozenset(entity.label for entity in self.entities)

    def relabel(self, mapping: dict[str, str]) -> Document:
        """The same document with labels renamed; labels that `mapping` does not name stay as they are."""
        return replace(
            self,
            entities=tuple(replace(entity, label=mapping.get(entity.label, entity.label)) for entity in self.entities),
            annotated=None if self.annotated is None else frozenset(mapping.get(name, name) for name in self.annotated),
        )


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents with a name and a type inventory (by default every label that has a mention)."""

    name: str
    documents: Sequence[Document]
    types: tuple[EntityType, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", tuple(self.documents))
        used = {entity.label for document in self.documents for entity in document.entities}
        if not self.types:
            asked = used.union(*(document.annotated or () for document in self.documents))
            object.__setattr__(self, "types", tuple(EntityType(name) for name in sorted(asked)))
        object.__setattr__(self, "types", tuple(self.types))
        names = [entity_type.name for entity_type in self.types]
        if len(set(names)) != len(names):
            raise OnomaError(
                f"corpus {self.name!r} lists a type twice: {sorted({n for n in names if names.count(n) > 1})}"
            )
        unknown = used.difference(names)
        if unknown:
            raise OnomaError(f"corpus {self.name!r} has mentions of types outside of its inventory: {sorted(unknown)}")

    def __repr__(self) -> str:
        """Short, for a corpus may hold a million documents and a thousand types."""
        more = len(self.types) - SHOWN_TYPES
        types = ", ".join(self.labels[:SHOWN_TYPES]) + (f" and {more} more" if more > 0 else "")
        return f"Corpus({self.name!r}, {len(self)} documents, types: {types or 'none'})"

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the types, in the order of the inventory."""
        return tuple(entity_type.name for entity_type in self.types)

    def annotated(self, document: Document) -> frozenset[str]:
        """The labels whose annotation is complete in this document."""
        return frozenset(self.labels) if document.annotated is None else document.annotated

    def statistics(self) -> Statistics:
        """Counts of documents, words, mentions, types, lengths and nesting."""
        from onoma.data.statistics import describe  # the statistics need the segmenter; the vocabulary does not

        return describe(self)
