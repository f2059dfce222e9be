"""The vocabulary of the package: entity types, entities, documents and corpora.

All classes are frozen; functions that change something return a new object. Offsets count characters of a Python
string (Unicode code points), and `end` is exclusive.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, get_args

from onoma.errors import OnomaError

SHOWN_TYPES = 8
"""How many of its types `repr(corpus)` names, and how many of its entities `repr(document)`."""
SHOWN_CHARACTERS = 60
"""How much of its text `repr(document)` shows."""

_MARK = re.compile(r"\\(\[\[|\]\])|(\[\[)|(\]\])")  # an escaped mark, an opening one, a closing one


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise OnomaError(f"the text of a document must be a string, got {text!r}")


def _check_offsets(start: object, end: object) -> None:
    """Offsets are integers, numpy's included, but neither booleans nor floats."""
    if not all(isinstance(offset, Integral) and not isinstance(offset, bool) for offset in (start, end)):
        raise OnomaError(f"the start and end of a mention must be integers, got start={start!r}, end={end!r}")


def parse_marks(example: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    r"""The text of a marked example, and the offsets of its mentions; an example without marks has none.

    `\[[` and `\]]` stand for the characters themselves.

    >>> parse_marks("take [[40 mg]] in the morning and [[20 mg]] at night")[1]
    ((5, 10), (30, 35))
    """
    text, position, opened, spans = "", 0, None, []
    for mark in _MARK.finditer(example):
        text += example[position : mark.start()]
        position = mark.end()
        escaped, opening, _ = mark.groups()
        if escaped:
            text += escaped
        elif bool(opening) == (opened is not None):
            problem = "[[ inside of [[" if opening else "]] without [["
            raise OnomaError(
                f"the example {example!r} has {problem}. Fix: mark each mention as [[mention]], and write \\[[ or "
                "\\]] for the characters themselves"
            )
        elif opening:
            opened = len(text)
        elif opened is not None:
            mention = text[opened:]
            if not mention.strip():
                raise OnomaError(f"the example {example!r} has an empty mark. Fix: write the mention inside of [[ ]]")
            start = opened + len(mention) - len(mention.lstrip())
            spans.append((start, start + len(mention.strip())))
            opened = None
    if opened is not None:
        raise OnomaError(f"the example {example!r} has [[ without ]]. Fix: mark each mention as [[mention]]")
    return text + example[position:], tuple(spans)


Preset = Literal["precise", "balanced", "complete"]
"""Words for thresholds, whose numbers depend on the model; see `onoma.labels.presets`."""


def check_threshold(value: object, what: str) -> None:
    """Raise an error unless a threshold is a number between 0 and 1, or the word for one."""
    if isinstance(value, str) and value in get_args(Preset):
        return
    if isinstance(value, Real) and 0.0 <= float(value) <= 1.0:
        return
    raise OnomaError(f"{what} must be a number between 0 and 1, or {', '.join(get_args(Preset))}; got {value!r:.80}")


@dataclass(frozen=True, slots=True)
class EntityType:
    """What is asked for: a name in words, and optionally a description, examples and a threshold.

    An example is a mention ("aspirin"), or a text in which all mentions of the type are marked: "take [[40 mg]] daily".

    >>> EntityType("drug", "a medicine or active substance", examples=("aspirin",), threshold=0.4).name
    'drug'
    """

    name: str
    description: str = ""
    examples: tuple[str, ...] = ()
    threshold: float | Preset | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise OnomaError(f"an entity type needs a name in words, got {self.name!r}")
        if not isinstance(self.description, str):
            raise OnomaError(f"the description of type {self.name!r} must be a string, got {self.description!r}")
        if isinstance(self.examples, str) or not all(isinstance(example, str) for example in self.examples):
            raise OnomaError(f"the examples of type {self.name!r} must be a list of strings, got {self.examples!r}")
        object.__setattr__(self, "examples", tuple(self.examples))
        for example in self.examples:
            parse_marks(example)
        if self.threshold is not None:
            check_threshold(self.threshold, f"the threshold of type {self.name!r}")

    def __repr__(self) -> str:
        """The name, and those of the other fields that are given."""
        others = ((key, getattr(self, key)) for key in ("description", "examples", "threshold"))
        given = [f"{key}={value!r}" for key, value in others if value not in ("", (), None)]
        return f"EntityType({', '.join([repr(self.name), *given])})"

    @property
    def marked_examples(self) -> tuple[Document, ...]:
        """The examples with marks as documents, whose annotation is complete for this type alone.

        >>> EntityType("dose", examples=["20 ml", "take [[40 mg]] daily"]).marked_examples[0].entities[0].text
        '40 mg'
        """
        parsed = filter(lambda one: one[1], map(parse_marks, self.examples))
        return tuple(
            Document.from_spans(text, ((*span, self.name) for span in spans), annotated=[self.name])
            for text, spans in parsed
        )

    def as_text(self) -> str:
        """The type in one line, as models read it: its name, its description and the examples without marks.

        >>> EntityType("drug", "a medicine", ("aspirin",)).as_text()
        'drug: a medicine, such as aspirin'
        """
        text = f"{self.name}: {self.description}" if self.description else self.name
        plain = [example for example, spans in map(parse_marks, self.examples) if not spans]
        return f"{text}, such as {', '.join(plain)}" if plain else text


@dataclass(frozen=True, slots=True, order=True)
class Entity:
    """A mention: `text[start:end]` of its document, with its label and the model's score (1.0 for gold)."""

    start: int
    end: int
    text: str
    label: str
    score: float = 1.0

    def __post_init__(self) -> None:
        # local variables and one type comparison for the usual case, because readers create millions of entities
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
        if score != score:  # only NaN differs from itself
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
        """The triple (start, end, label), which strict evaluation compares."""
        return self.start, self.end, self.label

    def to_dict(self) -> dict[str, Any]:
        """The entity as plain values, ready for JSON.

        >>> Entity(0, 3, "Tom", "person", 0.5).to_dict()
        {'start': 0, 'end': 3, 'text': 'Tom', 'label': 'person', 'score': 0.5}
        """
        return {"start": self.start, "end": self.end, "text": self.text, "label": self.label, "score": self.score}


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its gold or predicted entities, sorted by offsets.

    Args:
        annotated: the labels for which the annotation is complete; None means all types of the corpus. Other
            labels are unknown here, never negatives.
        words: character offsets of the words that the source gave (token corpora); None: the text is segmented.
        id: an identifier from the source.
        meta: other fields of the source record, kept when the document is written as JSON lines.
    """

    text: str
    entities: tuple[Entity, ...] = ()
    annotated: frozenset[str] | None = None
    words: tuple[tuple[int, int], ...] | None = field(default=None, repr=False)
    id: str | int | None = None
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _check_text(self.text)
        object.__setattr__(self, "entities", tuple(sorted(self.entities)) if self.entities else ())
        for entity in self.entities:
            if self.text[entity.start : entity.end] != entity.text:
                raise OnomaError(
                    f"the entity {entity.text!r} ({entity.start}-{entity.end}) does not match its document, "
                    f"whose text there is {self.text[entity.start : entity.end]!r}"
                )
        if self.annotated is not None:
            object.__setattr__(self, "annotated", frozenset(self.annotated))
            outside = {entity.label for entity in self.entities} - self.annotated if self.entities else None
            if outside:
                raise OnomaError(f"labels used but not listed in 'annotated': {', '.join(sorted(outside))}")
        if self.words is not None:
            object.__setattr__(self, "words", tuple((start, end) for start, end in self.words))
            previous = 0
            for start, end in self.words:
                if not previous <= start < end <= len(self.text):
                    raise OnomaError(f"word {start}-{end} is empty, out of order or outside the text")
                previous = end

    def __repr__(self) -> str:
        """A short form, because a text may have a million characters."""
        parts = [repr(self.text)]
        if len(self.text) > SHOWN_CHARACTERS:
            parts = [repr(f"{self.text[: SHOWN_CHARACTERS - 1]}…"), f"{len(self.text):,} characters"]
        if self.id is not None:
            parts.append(f"id={self.id!r}")
        mentions = ", ".join(f"{one.text} ({one.label})" for one in self.entities[:SHOWN_TYPES])
        more = len(self.entities) - SHOWN_TYPES
        entities = f"entities: {mentions or 'none'}" + (f" and {more:,} more" if more > 0 else "")
        return f"Document({', '.join([*parts, entities])})"

    @classmethod
    def from_spans(
        cls,
        text: str,
        spans: Iterable[tuple[int, int, str]],
        *,
        annotated: Iterable[str] | None = None,
        words: Iterable[tuple[int, int]] | None = None,
        id: str | int | None = None,
        meta: Mapping[str, Any] | None = None,
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
                    f"the mention {start}-{end} ({label}) is empty or outside the text, which has {length} characters"
                )
            entities.append(Entity(start, end, text[start:end], label))
        return cls(
            text,
            tuple(entities),
            frozenset(annotated) if annotated is not None else None,
            tuple(words) if words is not None else None,
            id,
            meta or {},
        )

    @property
    def labels(self) -> frozenset[str]:
        """The labels that have a mention in this document."""
        return frozenset(entity.label for entity in self.entities)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents with a name and a type inventory (by default all labels that occur)."""

    name: str
    documents: Sequence[Document]
    types: tuple[EntityType, ...] = ()
    _label_set: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", tuple(self.documents))
        used = {entity.label for document in self.documents for entity in document.entities}
        if not self.types:
            asked = used.union(*(document.annotated or () for document in self.documents))
            object.__setattr__(self, "types", tuple(EntityType(name) for name in sorted(asked)))
        object.__setattr__(self, "types", tuple(self.types))
        names = [entity_type.name for entity_type in self.types]
        object.__setattr__(self, "_label_set", frozenset(names))
        if len(self._label_set) != len(names):
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            raise OnomaError(f"corpus {self.name!r} lists a type twice: {twice}")
        unknown = used.difference(names)
        if unknown:
            raise OnomaError(f"corpus {self.name!r} has mentions of types outside its inventory: {sorted(unknown)}")

    def __repr__(self) -> str:
        """A short form, because a corpus may hold a million documents and thousands of types."""
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
        """The labels whose annotation is complete in a document."""
        return self._label_set if document.annotated is None else document.annotated
