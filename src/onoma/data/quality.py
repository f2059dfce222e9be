"""Warnings about the labels of a corpus: what is likely wrong in the data before a model learns it.

A warning is a hint, not an error: "Washington" may well be a person here and a city there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise

from onoma.data.statistics import count_overlaps
from onoma.entities import Corpus, Document, Entity

EXAMPLES = 3
SHOWN_CHARACTERS = 60
BRACKETS = {"(": ")", "[": "]", "{": "}", "（": "）", "《": "》", "「": "」", "『": "』", "【": "】", "“": "”"}
CLOSING = {closing: opening for opening, closing in BRACKETS.items()}


@dataclass(frozen=True, slots=True)
class Example:
    """One place that a warning is about; `index` counts the documents of the split from 0."""

    split: str
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class LabelWarning:
    """Something to look at: a fixed `code` for programs, a message for people, how often, and where.

    The message reads well after the count: "12 texts repeated within a split".
    """

    code: str
    message: str
    count: int
    examples: tuple[Example, ...] = ()


Place = tuple[str, int, Document]
"""A split, the index of a document in it, and the document."""


def check(splits: Mapping[str, Corpus], *, rare: int = 5) -> list[LabelWarning]:
    """Look for doubtful labels in the splits of a corpus; types with fewer than `rare` mentions count as rare.

    >>> twice = Document.from_spans("Ann sings.", [(0, 3, "person")])
    >>> [warning.code for warning in check({"train": Corpus("songs", [twice, twice])}, rare=1)]
    ['duplicate-documents']
    """
    found = [
        *_check_copies(splits),
        *_check_mentions(splits),
        *_check_surfaces(splits),
        *_check_types(splits, rare),
    ]
    return [warning for warning in found if warning.count]


def text_key(text: str) -> bytes:
    """The same key for texts that differ in letter case and white space only."""
    return blake2b("".join(text.split()).casefold().encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _places(splits: Mapping[str, Corpus]) -> Iterator[Place]:
    return ((split, index, document) for split, corpus in splits.items() for index, document in enumerate(corpus))


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN_CHARACTERS else flat[: SHOWN_CHARACTERS - 1] + "…"


class _Tally:
    """A warning that is being counted."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message, self.count = code, message, 0
        self.examples: list[Example] = []

    def add(self, place: Place, text: str, count: int = 1) -> None:
        self.count += count
        if len(self.examples) < EXAMPLES:
            self.examples.append(Example(place[0], place[1], _shorten(text)))

    def warning(self) -> LabelWarning:
        return LabelWarning(self.code, self.message, self.count, tuple(self.examples))


# --- copies of a text


def _check_copies(splits: Mapping[str, Corpus]) -> list[LabelWarning]:
    duplicates = _Tally("duplicate-documents", "texts repeated within a split")
    leaks = _Tally("leaked-documents", "texts that another split has as well, so scores come out too good")
    conflicts = _Tally("conflicting-copies", "copies of a text with other labels than its first occurrence")
    first: dict[bytes, Place] = {}
    seen: dict[bytes, set[str]] = {}
    for place in _places(splits):
        split, _, document = place
        key = text_key(document.text)
        if key not in first:
            first[key], seen[key] = place, {split}
            continue
        if split in seen[key]:
            duplicates.add(place, document.text)
        if seen[key] - {split}:
            leaks.add(place, document.text)
        seen[key].add(split)
        if _disagree(document, splits[split], first[key][2], splits[first[key][0]]):
            conflicts.add(place, document.text)
    return [tally.warning() for tally in (duplicates, leaks, conflicts)]


def _disagree(one: Document, one_corpus: Corpus, other: Document, other_corpus: Corpus) -> bool:
    """Whether two copies of a text differ in a label that is annotated in both of them."""
    if one.entities == other.entities and one.text == other.text:
        return False
    shared = one_corpus.annotated(one) & other_corpus.annotated(other)
    return _letters_marked(one, shared) != _letters_marked(other, shared)


def _letters_marked(document: Document, labels: frozenset[str]) -> set[tuple[int, int, str]]:
    """The mentions, with offsets that count as `text_key` does: no white space, letter case folded."""
    widths = (0 if character.isspace() else len(character.casefold()) for character in document.text)
    before = [0, *accumulate(widths)]
    mentions = (entity for entity in document.entities if entity.label in labels)
    return {(before[entity.start], before[entity.end], entity.label) for entity in mentions}


# --- single mentions and pairs of them


def _check_mentions(splits: Mapping[str, Corpus]) -> list[LabelWarning]:
    repeated = _Tally("duplicate-mentions", "mentions given again with the same span and label")
    spaced = _Tally("edge-space", "mentions with white space at an edge")
    brackets = _Tally("unbalanced-brackets", "mentions with a bracket at an edge and no partner for it inside")
    nested = _Tally("nested-mentions", "pairs of mentions inside of each other or on one span")
    crossing = _Tally("crossing-mentions", "pairs of mentions that cross each other's edges")
    for place in _places(splits):
        entities = place[2].entities
        unique = list({entity.key: entity for entity in entities}.values())
        if len(unique) < len(entities):
            copy = next(a for a, b in pairwise(entities) if a.key == b.key)
            repeated.add(place, copy.text, len(entities) - len(unique))
        for entity in unique:
            if entity.text != entity.text.strip():
                spaced.add(place, repr(entity.text))
            if _has_lone_bracket(entity.text):
                brackets.add(place, entity.text)
        pairs = count_overlaps(unique)
        if pairs.nested or pairs.same_span:
            nested.add(place, _first_pair(unique, _is_inside), pairs.nested + pairs.same_span)
        if pairs.crossing:
            crossing.add(place, _first_pair(unique, _is_crossing), pairs.crossing)
    return [tally.warning() for tally in (repeated, spaced, brackets, nested, crossing)]


def _has_lone_bracket(text: str) -> bool:
    first, last = text.strip()[:1], text.strip()[-1:]
    opened = first in BRACKETS and BRACKETS[first] not in text
    return opened or (last in CLOSING and CLOSING[last] not in text)


def _is_inside(outer: Entity, inner: Entity) -> bool:
    return inner.end <= outer.end


def _is_crossing(left: Entity, right: Entity) -> bool:
    return right.end > left.end


def _first_pair(entities: Iterable[Entity], wanted: Callable[[Entity, Entity], bool]) -> str:
    """The first overlapping pair of the wanted kind, as text.

    Until mentions cross, those that are open at a place lie in each other, the innermost on top of the stack;
    so comparing with the top finds the first crossing, too.
    """
    stack: list[Entity] = []
    for entity in sorted(entities, key=lambda one: (one.start, -one.end)):
        while stack and stack[-1].end <= entity.start:
            stack.pop()
        if stack and wanted(stack[-1], entity):
            return " / ".join(f"{one.text} ({one.label})" for one in (stack[-1], entity))
        stack.append(entity)
    return ""


# --- one string, several labels


def _check_surfaces(splits: Mapping[str, Corpus]) -> list[LabelWarning]:
    """Strings whose usual label is missing where it should have been given, the most frequent first."""
    labellings: dict[str, Counter[frozenset[str]]] = {}
    for _, _, document in _places(splits):
        for text, labels in _labels_by_span(document):
            labellings.setdefault(text, Counter())[labels] += 1
    usual = {text: counts.most_common(1)[0][0] for text, counts in labellings.items() if len(counts) > 1}
    unusual: Counter[str] = Counter()
    where: dict[str, Place] = {}
    for place in _places(splits):
        split, _, document = place
        annotated = splits[split].annotated(document)
        for text, labels in _labels_by_span(document):
            # labels that were not annotated here are unknown, so their absence is no conflict
            if text in usual and not labels & usual[text] and usual[text] & annotated:
                unusual[text] += 1
                where.setdefault(text, place)
    tally = _Tally("conflicting-labels", "mentions with another label than their string usually has")
    for text, count in sorted(unusual.items(), key=lambda item: (-item[1], item[0])):
        tally.add(where[text], f"{_shorten(text)}: {_spell_labellings(labellings[text])}", count)
    return [tally.warning()]


def _labels_by_span(document: Document) -> Iterator[tuple[str, frozenset[str]]]:
    spans: dict[tuple[int, int], set[str]] = {}
    for entity in document.entities:
        spans.setdefault((entity.start, entity.end), set()).add(entity.label)
    return ((document.text[start:end], frozenset(labels)) for (start, end), labels in spans.items())


def _spell_labellings(counts: Counter[frozenset[str]]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], sorted(item[0])))
    return ", ".join(f"{'+'.join(sorted(labels))} {count}" for labels, count in ordered[:4])


# --- types


def _check_types(splits: Mapping[str, Corpus], rare: int) -> list[LabelWarning]:
    counts = {
        split: Counter(entity.label for document in corpus for entity in document.entities)
        for split, corpus in splits.items()
    }
    total: Counter[str] = sum(counts.values(), Counter())
    names = dict.fromkeys(label for corpus in splits.values() for label in corpus.labels)
    few = sorted((name for name in names if total[name] < rare), key=lambda name: (total[name], name))
    listing = _list_some([f"{name} ({total[name]})" for name in few])
    warnings = [LabelWarning("rare-types", f"types with fewer than {rare} mentions: {listing}", len(few))]
    for split, found in counts.items():
        if not found:
            message = f"documents in split {split!r}, which has no mention at all"
            warnings.append(LabelWarning("unlabelled-split", message, len(splits[split])))
            continue
        missing = sorted(name for name in total if not found[name])
        message = f"types of other splits without a mention in {split!r}: {_list_some(missing)}"
        warnings.append(LabelWarning("missing-types", message, len(missing)))
    return warnings


def _list_some(names: Sequence[str], limit: int = 8) -> str:
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
