"""Files of candidates that an annotator accepts or rejects, and merging the accepted ones into a corpus.

A file has one row per candidate, as a table (`.csv`) or as JSON lines (`.jsonl`). The annotator fills the field
`accept`: "yes" adds the mention, "no" or nothing leaves it out. A candidate that overlaps mentions of the corpus needs
a decision about these: "replace" removes them, "both" keeps them.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from onoma.data.corpora import CorpusInfo
from onoma.data.formats.base import short_repr
from onoma.data.formats.records import read_records, write_records
from onoma.entities import Document, Entity
from onoma.errors import DataError
from onoma.files import atomic_write, open_text, plain_suffix

AnyPath = str | PathLike[str]

CONTEXT = 60
"""Characters of context on each side of a candidate."""
ANSWERS = {
    **dict.fromkeys(("yes", "y", "true", "1"), "yes"),
    **dict.fromkeys(("no", "n", "false", "0", ""), "no"),
    "replace": "replace",
    "both": "both",
}
"""What can be written into the field `accept`, and what it means."""
EXAMPLE = '{"accept": "yes", "label": "city", "text": "Paris", "document": 1, "start": 12, "end": 17}'
_BYTE_ORDER_MARK = "\ufeff"  # without it, spreadsheet programs do not read UTF-8
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheet programs would calculate


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mention that an annotator decides about. Documents are counted from 1, in the order of the corpus."""

    accept: str
    score: float
    label: str
    text: str
    context: str
    overlaps: str
    document: int
    start: int
    end: int

    @classmethod
    def of(cls, number: int, document: Document, entity: Entity) -> Candidate:
        """A candidate for a document, with its context and the mentions that it overlaps."""
        return cls(
            accept="",
            score=round(float(entity.score), 4),
            label=entity.label,
            text=entity.text,
            context=_context(document.text, entity),
            overlaps="; ".join(f"{one.text} ({one.label})" for one in overlapping(document.entities, entity)),
            document=number,
            start=entity.start,
            end=entity.end,
        )


COLUMNS = tuple(field.name for field in fields(Candidate))
_NEEDED = ("accept", "label", "text", "document", "start", "end")


def overlapping(entities: Iterable[Entity], span: Entity) -> list[Entity]:
    """The entities that share a character with a span."""
    return [one for one in entities if one.start < span.end and span.start < one.end]


def _context(text: str, entity: Entity) -> str:
    low, high = max(0, entity.start - CONTEXT), min(len(text), entity.end + CONTEXT)
    before, after = text[low : entity.start], text[entity.end : high]
    marked = f"{'…' * (low > 0)}{before}[[{entity.text}]]{after}{'…' * (high < len(text))}"
    return " ".join(marked.split())


def write_candidates(candidates: Iterable[Candidate], path: AnyPath) -> int:
    """Write candidates to a .csv or .jsonl file and return their number."""
    rows = map(asdict, candidates)
    if not _is_table(path):
        return write_records(rows, Path(path))
    table = [{name: _protect(value) for name, value in row.items()} for row in rows]
    with atomic_write(path) as file:
        file.write(_BYTE_ORDER_MARK)
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return len(table)


def check_name(path: AnyPath) -> None:
    """Raise an error unless a file of candidates can have this name."""
    _is_table(path)


def _is_table(path: AnyPath) -> bool:
    suffix = plain_suffix(path)
    if suffix not in (".csv", ".jsonl", ".ndjson"):
        fix = "name it .csv, for a spreadsheet program, or .jsonl"
        raise DataError(f"candidates cannot be in a file with the extension {suffix!r}", path=path, fix=fix)
    return suffix == ".csv"


def _protect(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


def _unprotect(value: str) -> str:
    return value[1:] if value.startswith("'") and value[1:].startswith(_FORMULA_STARTS) else value


@dataclass(frozen=True, slots=True)
class _Decision:
    """A candidate that was accepted, and the line that says so."""

    answer: str
    entity: Entity
    line: int


class ReviewMerger:
    """Adds the accepted candidates of a file to documents; `added`, `removed` and `present` count what happened.

    `present` counts accepted mentions that the corpus has already.
    """

    def __init__(self, path: AnyPath, info: CorpusInfo | None = None) -> None:
        """Read a file of candidates.

        Args:
            info: the metadata of the corpus; natural names of types are replaced by the labels that they stand for.
        """
        self.path = Path(path)
        self.added = self.removed = self.present = 0
        rename = _labels_by_name(info) if info is not None else {}
        self._decisions: dict[int, list[_Decision]] = defaultdict(list)
        for line, row in _read_rows(self.path):
            answer = ANSWERS.get(str(row["accept"] or "").strip().lower())
            if answer is None:
                message = f"'accept' cannot be {short_repr(row['accept'])}"
                raise self._error(message, line, "write yes, no, replace or both")
            if answer != "no":
                number, entity = self._parse(row, line)
                entity = replace(entity, label=rename.get(entity.label, entity.label))
                self._decisions[number].append(_Decision(answer, entity, line))

    def _parse(self, row: Mapping[str, Any], line: int) -> tuple[int, Entity]:
        try:
            number, start, end = (int(row[name]) for name in ("document", "start", "end"))
            return number, Entity(start, end, str(row["text"]), str(row["label"]))
        except (TypeError, ValueError) as error:
            fix = "leave the columns document, start, end, text and label as they were written"
            raise self._error(f"the row is not a mention ({error})", line, fix) from None

    def _error(self, message: str, line: int, fix: str) -> DataError:
        return DataError(message, path=self.path, line=line, fix=fix)

    def apply(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents with the accepted mentions; an error if a row does not fit its document."""
        count = 0
        for count, document in enumerate(documents, start=1):
            decisions = self._decisions.get(count)
            yield self._merge(count, document, decisions) if decisions else document
        for number, decisions in self._decisions.items():
            if not 1 <= number <= count:
                message = f"there is no document {number}, the corpus has {count}"
                raise self._error(message, decisions[0].line, "merge into the file that was evaluated")

    def to_dict(self) -> dict[str, int]:
        """The counts, ready for JSON."""
        return {"added": self.added, "removed": self.removed, "present": self.present}

    def _merge(self, number: int, document: Document, decisions: list[_Decision]) -> Document:
        entities = list(document.entities)
        for one in decisions:
            self._check(number, document, one)
            if any(entity.key == one.entity.key for entity in entities):
                self.present += 1
                continue
            others = overlapping(entities, one.entity)
            if others and one.answer == "yes":
                shown = ", ".join(f"{short_repr(other.text)} ({other.label})" for other in others)
                message = f"{short_repr(one.entity.text)} ({one.entity.label}) overlaps the mention {shown}"
                raise self._error(message, one.line, "write 'replace' to remove what it overlaps, or 'both' to keep it")
            if one.answer == "replace":
                entities = [entity for entity in entities if entity not in others]
                self.removed += len(others)
            entities.append(one.entity)
            self.added += 1
        return replace(document, entities=tuple(entities))

    def _check(self, number: int, document: Document, decision: _Decision) -> None:
        entity = decision.entity
        found = document.text[entity.start : entity.end]
        if found != entity.text:
            message = f"document {number} has {short_repr(found)} there, not {short_repr(entity.text)}"
            raise self._error(message, decision.line, "merge into the file that was evaluated, unchanged")
        if document.annotated is not None and entity.label not in document.annotated:
            message = f"the label {short_repr(entity.label)} is not annotated in document {number}"
            raise self._error(message, decision.line, "correct the label, or reject the row")


def _labels_by_name(info: CorpusInfo) -> dict[str, str]:
    """The labels that natural names stand for; names of several labels, or that are labels themselves, are left out."""
    labels: dict[str, set[str]] = defaultdict(set)
    for label, names in info.type_names.items():
        for name in [names] if isinstance(names, str) else names.values():
            labels[name].add(label)
    known = {*info.types, *info.type_names}
    return {name: each.pop() for name, each in labels.items() if len(each) == 1 and name not in known}


def _read_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if not _is_table(path):
        for record in read_records(path, EXAMPLE):
            _require_columns(record.fields.keys(), path, record.line)
            yield record.line, record.fields
        return
    with open_text(path) as file:
        header = file.readline()
        delimiter = max(",;\t", key=header.count)  # spreadsheet programs choose it by the country
        names = next(csv.reader([header], delimiter=delimiter), [])
        _require_columns(names, path, 1)
        yield from _table_rows(csv.DictReader(file, names, delimiter=delimiter), path)


def _table_rows(reader: csv.DictReader[str], path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        for row in reader:
            line = reader.line_num + 1  # the header was read before
            if None in row or None in row.values():
                fix = "keep one cell per column; texts with commas are in double quotes"
                raise DataError("the row has more or fewer cells than the header", path=path, line=line, fix=fix)
            yield line, {name: _unprotect(value) for name, value in row.items()}
    except csv.Error as error:
        message = f"this is not a valid table ({error})"
        raise DataError(message, path=path, line=reader.line_num + 1, fix="save it as CSV in UTF-8") from None


def _require_columns(names: Iterable[str], path: Path, line: int) -> None:
    missing = [name for name in _NEEDED if name not in set(names)]
    if missing:
        fix = f"keep the columns that were written: {', '.join(COLUMNS)}"
        raise DataError(f"the column {', '.join(missing)} is missing", path=path, line=line, fix=fix)
