"""Dictionaries: names with types, whose mentions in texts are labelled.

A mention starts and ends at word boundaries (characters, in scripts without spaces). Case, width and traditional
characters are folded unless they are to be matched, and any white space stands for any other. Of overlapping mentions
the longest stays, of equally long ones the first. Phrases of the stop list, entries with an unclear type and entries to
which a context rule applies are not labelled, but they still hide shorter entries inside them: if "Paris Hilton" is in
the stop list, the city is not found in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from json.encoder import encode_basestring as quote
from os import PathLike
from typing import TypedDict, TypeVar, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from onoma.data.dictionary.entries import AnyPath, Entry, read_entries
from onoma.data.dictionary.folding import Folding
from onoma.data.dictionary.matching import SourceWords, Spans, find_spans, longest_first
from onoma.data.dictionary.pieces import Integers
from onoma.data.dictionary.table import Ambiguous, EntryTable
from onoma.entities import Document
from onoma.errors import DataError, OnomaError

T = TypeVar("T")

BLOCK = 1 << 20
"""Characters that are searched together: several documents, or a part of a long one."""
FORMATTED = 1 << 14
"""Offsets below this are formatted once."""
MARGIN = 1 << 12
"""Characters around a part of a long document that are searched with it; longer than any word."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some documents, and their mentions of entries as columns, sorted by document and start."""

    documents: list[Document]
    document: Integers
    start: Integers
    end: Integers
    label: Integers  # in `types`
    entry: Integers  # below `Dictionary.size`
    types: tuple[str, ...]

    def spans(self) -> Iterator[list[tuple[int, int, str]]]:
        """The mentions of each document."""
        labels = map(self.types.__getitem__, self.label.tolist())
        return self._by_document(list(zip(self.start.tolist(), self.end.tolist(), labels, strict=True)))

    def _by_document(self, parts: list[T], per_mention: int = 1) -> Iterator[list[T]]:
        edges = np.searchsorted(self.document, np.arange(len(self.documents) + 1)) * per_mention
        return (parts[first:end] for first, end in pairwise(edges.tolist()))

    def annotate(self) -> Iterator[Document]:
        """The documents with these mentions as their only entities; of other fields, they keep words and identifier."""
        for document, spans in zip(self.documents, self.spans(), strict=True):
            yield Document.from_spans(document.text, spans, words=document.words, id=document.id)

    def json_lines(self) -> Iterator[bytes]:
        """The lines that the format jsonl writes for `annotate()`, several times as fast."""
        names = np.array([f', "label": {quote(name)}}}'.encode() for name in self.types], object)
        columns = _formatted(b', {"start": ', self.start), _formatted(b', "end": ', self.end), names[self.label]
        parts = np.stack(columns, axis=1).ravel().tolist()
        texts = _escaped([document.text.encode() for document in self.documents])
        for document, text, mentions in zip(self.documents, texts, self._by_document(parts, len(columns)), strict=True):
            number = "" if document.id is None else f'"id": {json.dumps(document.id, ensure_ascii=False)}, '
            words = "" if document.words is None else f', "words": {json.dumps(document.words)}'
            entities = b"".join(mentions)[2:]  # without the comma before the first one
            yield b'{%b"text": "%b", "entities": [%b]%b}\n' % (number.encode(), text, entities, words.encode())


def _formatted(prefix: bytes, numbers: Integers) -> NDArray[np.object_]:
    """A prefix and a number each; numbers are usually small, so that few different texts have to be made."""
    if numbers.max(initial=0) >= FORMATTED:
        return _with_prefix(prefix, numbers.tolist())
    return _small_numbers(prefix)[numbers]


@lru_cache(maxsize=2)
def _small_numbers(prefix: bytes) -> NDArray[np.object_]:
    return _with_prefix(prefix, range(FORMATTED))


def _with_prefix(prefix: bytes, numbers: Iterable[int]) -> NDArray[np.object_]:
    return np.array([b"%b%d" % (prefix, number) for number in numbers], object)


def _escaped(texts: list[bytes]) -> list[bytes]:
    """Texts in UTF-8 as they stand in JSON strings: most have nothing but quotes and backslashes to escape."""
    joined = b"\n".join(texts)
    controls = np.flatnonzero(np.frombuffer(joined, np.uint8) < ord(" "))
    others: list[int] = []  # texts with line breaks, tabs and the like
    if len(controls) >= len(texts):
        breaks = np.cumsum([len(text) + 1 for text in texts]) - 1
        others = np.unique(np.searchsorted(breaks, np.setdiff1d(controls, breaks, assume_unique=True))).tolist()
        taken = set(others)
        joined = b"\n".join([b"" if place in taken else text for place, text in enumerate(texts)])
    escaped = joined.replace(b"\\", b"\\\\").replace(b'"', b'\\"').split(b"\n")
    for place in others:
        escaped[place] = quote(texts[place].decode())[1:-1].encode()
    return escaped


class Options(TypedDict, total=False):
    """The options of `Dictionary`."""

    ambiguous: Ambiguous
    stop: Iterable[str]
    not_before: Sequence[str]
    not_after: Sequence[str]
    match_case: bool
    match_width: bool
    match_traditional: bool


class Dictionary:
    """Entries with types, ready to label documents.

    `types` are the types of the entries, `size` is the number of entries that can be found, and `ambiguous` the number
    of those that are skipped because they have several types.

    >>> dictionary = Dictionary([Entry("new york", "city"), Entry("york", "city"), Entry("aspirin", "drug")])
    >>> document = next(dictionary.label([Document("ASPIRIN in New York")]))
    >>> [(entity.text, entity.label) for entity in document.entities]
    [('ASPIRIN', 'drug'), ('New York', 'city')]
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        ambiguous: Ambiguous = "skip",
        stop: Iterable[str] = (),
        not_before: Sequence[str] = (),
        not_after: Sequence[str] = (),
        match_case: bool = False,
        match_width: bool = False,
        match_traditional: bool = False,
    ) -> None:
        """Index entries.

        Args:
            ambiguous: what to do with entries of several types: "skip" them, use the "first" type, or "all" of them.
            stop: phrases that are not labelled.
            not_before: words before which no entry is labelled, in addition to those of single entries.
            not_after: words after which no entry is labelled.
            match_case: "Paris" matches only "Paris", not "PARIS".
            match_width: full-width and half-width characters differ.
            match_traditional: traditional and simplified characters differ.
        """
        if ambiguous not in get_args(Ambiguous):
            raise OnomaError(f"ambiguous must be one of {', '.join(get_args(Ambiguous))}, got {ambiguous!r}")
        self._folding = Folding(case=not match_case, width=not match_width, traditional=not match_traditional)
        self._table = EntryTable.build(
            entries, self._folding, ambiguous=ambiguous, stop=stop, not_before=not_before, not_after=not_after
        )
        self.types, self.size, self.ambiguous = self._table.types, self._table.size, self._table.ambiguous

    def __repr__(self) -> str:
        return f"Dictionary({self.size} entries, types: {', '.join(self.types)})"

    @classmethod
    def load(
        cls,
        paths: AnyPath | Iterable[AnyPath],
        *,
        type: str | None = None,
        **options: Unpack[Options],
    ) -> Dictionary:
        """Read entries from one or several files; `onoma.data.dictionary.entries` describes their formats.

        Args:
            type: the type of entries in files that name none; by default the name of the file.
            options: as of `Dictionary`.
        """
        files = [paths] if isinstance(paths, str | PathLike) else list(paths)
        entries = chain.from_iterable(_require_entries(read_entries(path, type), path) for path in files)
        return cls(entries, **options)

    def label(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents with the mentions of entries as their only entities, one by one, in constant memory."""
        for batch in self.label_batches(documents):
            yield from batch.annotate()

    def label_batches(self, documents: Iterable[Document]) -> Iterator[Batch]:
        """Like `label`, but several documents at a time, and faster."""
        for batch in _batches(documents):
            starts = np.cumsum([0, *(len(document.text) + 1 for document in batch)])
            spans = self._search("\n".join([document.text for document in batch]), starts, _source_words(batch, starts))
            spans = longest_first(spans)
            spans = spans.take(spans.label >= 0)
            document = np.searchsorted(starts, spans.start, side="right") - 1
            shift = starts[document]
            yield Batch(batch, document, spans.start - shift, spans.end - shift, spans.label, spans.entry, self.types)

    def _search(self, text: str, starts: Integers, words: SourceWords | None) -> Spans:
        """All mentions; a long document is searched part by part."""
        if len(text) <= 2 * BLOCK:
            return find_spans(text, starts[1:] - 1, self._table, self._folding, words)
        margin, parts = max(MARGIN, 4 * self._table.longest), []
        for start in range(0, len(text), BLOCK):
            low, high = max(0, start - margin), min(len(text), start + BLOCK + margin)
            near = None if words is None else SourceWords(*(column[low : high + 1] for column in words))
            spans = find_spans(text[low:high], np.array([high - low]), self._table, self._folding, near)
            spans = spans._replace(start=spans.start + low, end=spans.end + low)
            parts.append(spans.take((spans.start >= start) & (spans.start < start + BLOCK)))
        return Spans(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _require_entries(entries: Iterator[Entry], path: AnyPath) -> Iterator[Entry]:
    entry = None
    for entry in entries:
        yield entry
    if entry is None:
        raise DataError("the dictionary has no entries", path=path, fix="write one entry per line")


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents that are searched together; a long document is alone."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        if batch and characters + len(document.text) > BLOCK:
            yield batch
            batch, characters = [], 0
        batch.append(document)
        characters += len(document.text) + 1
    if batch:
        yield batch


def _source_words(documents: Sequence[Document], starts: Integers) -> SourceWords | None:
    if all(document.words is None for document in documents):
        return None
    known, edges = np.zeros(int(starts[-1]), np.bool_), np.zeros(int(starts[-1]), np.bool_)
    for document, (start, end) in zip(documents, pairwise(starts.tolist()), strict=True):
        if document.words is not None:
            known[start:end] = True
            edges[start + np.array(document.words, np.int64).ravel()] = True
    return SourceWords(known, edges)
