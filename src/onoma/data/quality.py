"""Warnings about the labels of a corpus: likely annotation errors, found before a model learns them.

A warning is a hint, not an error: "Washington" may be a person in one text and a city in another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise

from onoma.data.overlaps import count_overlaps, first_overlap
from onoma.entities import Corpus, Document, Entity

MAX_EXAMPLES = 3
MAX_EXAMPLE_LENGTH = 60
BRACKETS = {"(": ")", "[": "]", "{": "}", "（": "）", "《": "》", "「": "」", "『": "』", "【": "】", "“": "”"}
CLOSING = {closing: opening for opening, closing in BRACKETS.items()}


@dataclass(frozen=True, slots=True)
class Example:
    """One occurrence of what a warning is about; `index` is the document in its split, counted from 0."""

    split: str
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class LabelWarning:
    """A possible problem: a fixed `code` for programs, a message, the number of occurrences, and some examples.

    The message continues the count: "12 texts repeated within a split".
    """

    code: str
    message: str
    count: int
    examples: tuple[Example, ...] = ()


Place = tuple[str, int, Document]
"""A split, the index of a document in it, and the document."""


def check(splits: Mapping[str, Corpus], *, rare: int = 5) -> list[LabelWarning]:
    """Find doubtful labels in the splits of a corpus; types with fewer than `rare` mentions are reported as rare.

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
    """A key that is equal for texts that differ only in letter case and white space."""
    return blake2b("".join(text.split()).casefold().encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _places(splits: Mapping[str, Corpus]) -> Iterator[Place]:
    return ((split, index, document) for split, corpus in splits.items() for index, document in enumerate(corpus))


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_EXAMPLE_LENGTH else flat[: MAX_EXAMPLE_LENGTH - 1] + "…"


class _Tally:
    """A warning that is being counted."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message, self.count = code, message, 0
        self.examples: list[Example] = []

    def add(self, place: Place, text: str, count: int = 1) -> None:
        self.count += count
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(Example(place[0], place[1], _shorten(text)))

    def warning(self) -> LabelWarning:
        return LabelWarning(self.code, self.message, self.count, tuple(self.examples))


# --- copies of a text


def _check_copies(splits: Mapping[str, Corpus]) -> list[LabelWarning]:
    duplicates = _Tally("duplicate-documents", "texts repeated within a split")
    leaks = _Tally("leaked-documents", "texts that also occur in another split, which makes scores too high")
    conflicts = _Tally("conflicting-copies", "copies of a text with labels that differ from its first occurrence")
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
    return _normalised_mentions(one, shared) != _normalised_mentions(other, shared)


def _normalised_mentions(document: Document, labels: frozenset[str]) -> set[tuple[int, int, str]]:
    """The mentions, with offsets in the text as `text_key` normalises it: without white space, case-folded."""
    lengths = (0 if character.isspace() else len(character.casefold()) for character in document.text)
    before = [0, *accumulate(lengths)]
    mentions = (entity for entity in document.entities if entity.label in labels)
    return {(before[entity.start], before[entity.end], entity.label) for entity in mentions}


# --- single mentions and pairs of mentions


def _check_mentions(splits: Mapping[str, Corpus]) -> list[LabelWarning]:
    repeated = _Tally("duplicate-mentions", "mentions repeated with the same span and label")
    spaced = _Tally("edge-space", "mentions with white space at an edge")
    brackets = _Tally("unbalanced-brackets", "mentions with a bracket at an edge that is not closed or opened inside")
    nested = _Tally("nested-mentions", "pairs of mentions with one inside the other or with the same span")
    crossing = _Tally("crossing-mentions", "pairs of mentions that overlap partly")
    for place in _places(splits):
        entities = place[2].entities
        unique = list({entity.key: entity for entity in entities}.values())
        if len(unique) < len(entities):
            copy = next(a for a, b in pairwise(entities) if a.key == b.key)
            repeated.add(place, copy.text, len(entities) - len(unique))
        for entity in unique:
            if entity.text != entity.text.strip():
                spaced.add(place, repr(entity.text))
            if _has_unbalanced_bracket(entity.text):
                brackets.add(place, entity.text)
        pairs = count_overlaps(unique)
        if pairs.nested or pairs.same_span:
            pair = first_overlap(unique, lambda left, right: right.end <= left.end)
            nested.add(place, _format_pair(pair), pairs.nested + pairs.same_span)
        if pairs.crossing:
            pair = first_overlap(unique, lambda left, right: right.end > left.end)
            crossing.add(place, _format_pair(pair), pairs.crossing)
    return [tally.warning() for tally in (repeated, spaced, brackets, nested, crossing)]


def _has_unbalanced_bracket(text: str) -> bool:
    first, last = text.strip()[:1], text.strip()[-1:]
    opened = first in BRACKETS and BRACKETS[first] not in text
    return opened or (last in CLOSING and CLOSING[last] not in text)


def _format_pair(pair: tuple[Entity, Entity] | None) -> str:
    return " / ".join(f"{one.text} ({one.label})" for one in pair or ())


# --- strings with several labels


def _check_surfaces(splits: Mapping[str, Corpus]) -> list[LabelWarning]:
    """Mentions that lack the most frequent label of their string although it is annotated in their document."""
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
            # labels that are not annotated in a document are unknown there, so their absence is not a conflict
            if text in usual and not labels & usual[text] and usual[text] & annotated:
                unusual[text] += 1
                where.setdefault(text, place)
    tally = _Tally("conflicting-labels", "mentions whose label differs from the usual label of their string")
    for text, count in sorted(unusual.items(), key=lambda item: (-item[1], item[0])):
        tally.add(where[text], f"{_shorten(text)}: {_format_labellings(labellings[text])}", count)
    return [tally.warning()]


def _labels_by_span(document: Document) -> Iterator[tuple[str, frozenset[str]]]:
    spans: dict[tuple[int, int], set[str]] = {}
    for entity in document.entities:
        spans.setdefault((entity.start, entity.end), set()).add(entity.label)
    return ((document.text[start:end], frozenset(labels)) for (start, end), labels in spans.items())


def _format_labellings(counts: Counter[frozenset[str]]) -> str:
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
            message = f"documents in split {split!r}, which has no mentions"
            warnings.append(LabelWarning("unlabelled-split", message, len(splits[split])))
            continue
        missing = sorted(name for name in total if not found[name])
        message = f"types of other splits without a mention in {split!r}: {_list_some(missing)}"
        warnings.append(LabelWarning("missing-types", message, len(missing)))
    return warnings


def _list_some(names: Sequence[str], limit: int = 8) -> str:
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
