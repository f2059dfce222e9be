"""Rows of files in JSON lines, CSV, plain text and Parquet, each with its text or with the reason why it has none.

Rows are counted from 0, the lines of a file with their blank ones. A row that cannot be read is a row with an error:
reading goes on behind it. Blank lines are skipped but counted.
"""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from onoma.errors import DataError
from onoma.files import BYTE_ORDER_MARK, describe_binary, max_bytes
from onoma.scale.storage import input_errors, is_url, name_suffixes, open_filesystem, open_input, require

FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""Formats of rows by the extension of a file."""
TEXT = "text"
"""The column of plain text."""

SEPARATORS = {"csv": ",", "tsv": "\t"}
"""What separates the columns of a table, if nothing else is asked for."""
OTHER_SEPARATORS = (";", "\t", "|")

MAX_CSV_ROW = 16_000_000
"""Bytes of a CSV row; in a longer one, a quote is missing."""
MAX_REASON = 300

_BINARY_FIX = "convert it to UTF-8 text, or leave it out"
_BINARY_FIXES = {
    "text in UTF-16": "save it as UTF-8",
    "a binary file": "remove its NUL bytes; if it is text in another encoding, save it as UTF-8",
    "a Parquet file": "give it a name that ends with .parquet, or choose --from parquet",
    "a gzip file without the suffix .gz": "add the suffix to its name",
    "an xz file without the suffix .xz": "add the suffix to its name",
    "a bzip2 file": "add the suffix .bz2 to its name",
    "a Zstandard file": "add the suffix .zst to its name",
}
"""What to do with kinds of files that `describe_binary` names."""

_ROWS_AT_ONCE = 256  # rows of Parquet that are in memory as Python objects


@dataclass(slots=True)
class Row:
    """A row as it is in the file. `RowReader.parse` adds text and record, or the reason why it has none."""

    number: int
    size: int  # bytes, for Parquet those of the text
    offset: int  # in the file, if it is one of lines
    source: Any = None  # what the reader of the file knows of it
    text: str | None = None
    error: str | None = None
    record: dict[str, Any] | None = None
    line: str | None = None  # of JSON lines, as it is in the file
    arrow: ArrowRow | None = None  # of Parquet

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing in this row."""
        return self.text is None and self.error is None

    def values(self) -> dict[str, Any]:
        """All columns of the row as plain values."""
        if self.arrow is not None:
            return self.arrow.values()
        return {} if self.record is None else self.record

    def has_null(self, column: str) -> bool:
        """Whether there is a null in a column, which exists."""
        values = self.values()
        return column in values and values[column] is None


class ArrowRow(NamedTuple):
    """A row of a pyarrow record batch."""

    batch: Any
    place: int

    def values(self) -> dict[str, Any]:
        """The row as plain values."""
        values: dict[str, Any] = self.batch.slice(self.place, 1).to_pylist()[0]
        return values


class RowReader(ABC):
    """Reads the rows of one file."""

    is_typed = False  # whether the file itself says of which types its columns are

    def __init__(self, name: str, text_column: str, columns: Sequence[str] = ()) -> None:
        """`columns` of a table, if they are known already."""
        self.name, self.text_column, self.columns = name, text_column, list(columns)

    @property
    def can_seek(self) -> bool:
        """Whether reading can start anywhere, so that rows before it need not be read."""
        return not name_suffixes(self.name)[1]

    @abstractmethod
    def rows(self, first: int = 0, offset: int = 0) -> Iterator[Row]:
        """The rows from number `first` on, which starts at a byte `offset`; blank rows too. They are not parsed."""

    def sizes(self) -> Iterator[Row]:
        """All rows with their sizes only."""
        return self.rows()

    @abstractmethod
    def parse(self, row: Row) -> Row:
        """Add text and record to a row, or the reason why it has none; a blank row has neither."""

    def _with_text(self, row: Row, text: object) -> Row:
        """Add the text to a row, or the reason why this is not a text."""
        if isinstance(text, str):
            row.text = text
            if _has_surrogate(text):
                row.text, row.error = None, f"{self.text_column!r} has an unpaired surrogate or is not UTF-8"
        elif text is None:
            row.error = f"{self.text_column!r} is null"
        else:
            row.error = f"{self.text_column!r} is not a string but {type(text).__name__}"
        return row


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


class _LineReader(RowReader):
    """Files of lines."""

    def rows(self, first: int = 0, offset: int = 0) -> Iterator[Row]:
        with open_input(self.name, offset) as file:
            for number, line in enumerate(_lines(file, self.name, offset), first):
                yield Row(number, line.size, line.offset, line.content)

    def parse(self, row: Row) -> Row:
        if row.source is None:
            row.error = f"the line has more than {max_bytes():,} bytes"
            return row
        try:
            self._read_line(row, row.source.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            row.error = f"the line is not UTF-8 (byte {error.start + 1}: {error.reason})"
        return row

    @abstractmethod
    def _read_line(self, row: Row, line: str) -> None:
        """Parse a line, which is UTF-8."""


class _Line(NamedTuple):
    offset: int
    size: int
    content: bytes | None  # None: it is too long


def _lines(file: IO[bytes], name: str, offset: int) -> Iterator[_Line]:
    """The lines of a file with their ends, without a byte order mark."""
    limit = max_bytes()
    while line := file.readline(limit):
        start, size, is_long = offset, len(line), not line.endswith(b"\n")
        while is_long and (rest := file.readline(limit)):  # read to its end, but not kept
            size += len(rest)
            is_long = not rest.endswith(b"\n")
        offset += size
        if not start:
            _refuse_binary(line, name)
            line = line.removeprefix(BYTE_ORDER_MARK)
        yield _Line(start, size, line if size <= limit else None)


def _refuse_binary(head: bytes, name: str) -> None:
    kind = describe_binary(head[:512])
    if kind is not None:
        raise DataError(f"this is {kind}, not UTF-8 text", path=name, fix=_BINARY_FIXES.get(kind, _BINARY_FIX))


class JsonLines(_LineReader):
    """One JSON object per line."""

    def _read_line(self, row: Row, line: str) -> None:
        line = line.strip()
        if not line:
            return
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            row.error = f"the line is not valid JSON ({error})"[:MAX_REASON]
            return
        if not isinstance(record, dict):
            row.error = f"the line is not a JSON object but {type(record).__name__}"
        elif self.text_column not in record:
            row.error = f"there is no {self.text_column!r}, only: {', '.join(record)}"[:MAX_REASON]
        elif _has_surrogate("".join(record)):
            row.error = "the name of a field has an unpaired surrogate"
        else:
            row.record, row.line = record, line
            self._with_text(row, record[self.text_column])


class PlainText(_LineReader):
    """One document per line."""

    def _read_line(self, row: Row, line: str) -> None:
        if line.strip():
            row.record = {TEXT: line}
            self._with_text(row, line)


class CsvTable(RowReader):
    """Comma or tab separated values with a header; all values are strings. Fields in quotes may have line breaks."""

    def __init__(self, name: str, text_column: str, columns: Sequence[str] = (), *, delimiter: str = ",") -> None:
        super().__init__(name, text_column, columns)
        self.delimiter = delimiter

    def rows(self, first: int = 0, offset: int = 0) -> Iterator[Row]:
        with open_input(self.name, offset) as file:
            records = _CsvRecords(_lines(file, self.name, offset), self.delimiter)
            if not offset:
                self._read_header(records)
            for number, record in enumerate(records, first):
                yield Row(number, record.size, record.offset, record)

    def _read_header(self, records: Iterator[_CsvRecord]) -> None:
        header = next(records, None)
        columns = [] if header is None else header.fields
        if not columns or len(set(columns)) < len(columns) or not all(columns):
            reason = header.error if header is not None and header.error else "the header has no or equal names"
            fix = "write the names of the columns, each once, into the first line"
            raise DataError(f"this is not a table with a header ({reason})", path=self.name, line=1, fix=fix)
        self.columns = columns

    def parse(self, row: Row) -> Row:
        fields = row.source.fields
        if row.source.error is not None:
            row.error = row.source.error
        elif fields and len(fields) != len(self.columns):
            row.error = f"the row has {len(fields)} fields, but there are {len(self.columns)} columns"
        elif fields:
            row.record = dict(zip(self.columns, fields, strict=True))
            if any(map(_has_surrogate, fields)):
                row.error = "the row is not UTF-8"
            elif self.text_column in row.record:
                self._with_text(row, row.record[self.text_column])
            else:
                row.error = f"there is no {self.text_column!r}"
        return row


class _CsvRecord(NamedTuple):
    offset: int
    size: int
    fields: list[str]
    error: str | None


class _CsvRecords(Iterator[_CsvRecord]):
    """The records of a table, each of one or several lines. Behind a damaged record, the next line is read."""

    def __init__(self, lines: Iterator[_Line], delimiter: str) -> None:
        self.lines, self.delimiter = lines, delimiter
        self.returned: deque[_Line] = deque()  # lines that are to be read again
        self.taken: list[_Line] = []  # lines of the current record
        csv.field_size_limit(max_bytes())

    def __next__(self) -> _CsvRecord:
        self.taken = []
        fields, error = [], None
        try:
            fields = next(csv.reader(self._take_lines(), delimiter=self.delimiter, strict=True))
        except csv.Error as reason:
            error = f"the row is not valid CSV ({reason})"[:MAX_REASON]
            self.returned.extendleft(reversed(self.taken[1:]))
            del self.taken[1:]
        return _CsvRecord(self.taken[0].offset, sum(line.size for line in self.taken), fields, error)

    def _take_lines(self) -> Iterator[str]:
        size = 0
        while (line := self.returned.popleft() if self.returned else next(self.lines, None)) is not None:
            self.taken.append(line)
            size += line.size
            if line.content is None or (size > MAX_CSV_ROW and len(self.taken) > 1):
                raise csv.Error(f"a line is too long, or a quote is not closed within {MAX_CSV_ROW:,} bytes")
            yield line.content.decode("utf-8", "surrogateescape")  # what is not UTF-8 becomes an error of its row


class ParquetTable(RowReader):
    """A Parquet file, of which a few hundred rows are read at once."""

    is_typed = True

    def open(self) -> Any:
        """The file as a `pyarrow.parquet.ParquetFile`."""
        parquet = require("pyarrow.parquet", "a Parquet file")
        from pyarrow import ArrowException

        try:
            if is_url(self.name):
                system, path = open_filesystem(self.name)
                return parquet.ParquetFile(system.open_input_file(path))
            return parquet.ParquetFile(self.name)
        except FileNotFoundError:
            raise DataError("there is no such file", path=self.name, fix="check the path") from None
        except (ArrowException, OSError) as error:
            reason = str(error).strip().split("\n")[0]
            message = f"this is not a Parquet file that can be read ({reason:.200})"
            raise DataError(message, path=self.name, fix="create or download the file again") from None

    @property
    def can_seek(self) -> bool:
        return True

    def rows(self, first: int = 0, offset: int = 0) -> Iterator[Row]:
        with input_errors(self.name), closing(self.open()) as file:
            groups, start = _row_groups_from(file.metadata, first)
            self._require_text(file.schema_arrow.names)
            for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=groups):
                texts = batch.column(self.text_column).to_pylist()
                for place in range(max(0, first - start), len(texts)):
                    yield Row(start + place, text_size(texts[place]), 0, texts[place], arrow=ArrowRow(batch, place))
                start += len(texts)

    def sizes(self) -> Iterator[Row]:
        number = 0
        with input_errors(self.name), closing(self.open()) as file:
            self._require_text(file.schema_arrow.names)
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[self.text_column]):
                for text in batch.column(0).to_pylist():
                    yield Row(number, text_size(text), 0)
                    number += 1

    def parse(self, row: Row) -> Row:
        return self._with_text(row, row.source)

    def _require_text(self, names: Sequence[str]) -> None:
        self.columns = list(names)
        if len(set(names)) < len(names):
            raise DataError("two columns have the same name", path=self.name, fix="rename one of them")
        if self.text_column not in names:
            raise missing_column(self.name, self.text_column, names)


def text_size(text: object) -> int:
    """The bytes of a text; 0 for what is not a text."""
    return len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0


def _row_groups_from(metadata: Any, first: int) -> tuple[list[int], int]:
    """The row groups from the one with row `first` on, and the number of their first row."""
    start = 0
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        if first < start + rows:
            return list(range(number, metadata.num_row_groups)), start
        start += rows
    return [], start


def missing_column(name: str, column: str, names: Sequence[str], option: str = "--text-column") -> DataError:
    """The error for a table that has no column of texts."""
    shown = ", ".join(names[:20]) or "none"
    fix = f"name the column of texts with {option}; the columns are: {shown}"
    separator = next((one for one in OTHER_SEPARATORS if len(names) == 1 and one in names[0]), None)
    if separator is not None and option.startswith("-"):
        fix = f"the columns seem to be separated by {separator!r}: name the separator with --separator"
    return DataError(f"there is no column {column!r}", path=name, fix=fix)


def is_known(name: str) -> bool:
    """Whether the name of a file says which format it has."""
    extension, compression = name_suffixes(name)
    return extension in FORMATS and not (FORMATS[extension] == "parquet" and compression)


def detect_format(name: str) -> str:
    """The format of a file by its name."""
    if not is_known(name):
        known = ", ".join(FORMATS)
        fix = f"name the format with --from; names that end with {known} are known, and these with .gz, .xz, .bz2, .zst"
        raise DataError("the format of this file is not known", path=name, fix=fix)
    return FORMATS[name_suffixes(name)[0]]


def open_rows(
    name: str, format: str, text_column: str, columns: Sequence[str] = (), separator: str | None = None
) -> RowReader:
    """A reader for a file in one of the formats; `columns` and `separator` are those of a table."""
    match format:
        case "jsonl":
            return JsonLines(name, text_column)
        case "text":
            return PlainText(name, TEXT)
        case "parquet":
            return ParquetTable(name, text_column)
    return CsvTable(name, text_column, columns, delimiter=separator or SEPARATORS[format])
