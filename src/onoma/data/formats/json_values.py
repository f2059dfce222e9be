"""JSON values, read one by one from JSON lines or from one JSON array, without loading the whole file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

from onoma.errors import DataError
from onoma.files import BYTE_ORDER_MARK, max_bytes, open_bytes, open_text, read_lines, too_large
from onoma.structured import check_json, invalid_json, parse_json

_CHUNK = 1 << 20
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()

JSON_FIX = "write one JSON object on each line, or one JSON array of objects"


def read_values(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a file with the lines on which they start: one value per line, or the items of one array."""
    if _is_array(path):
        with open_text(path) as file:
            yield from _ArrayScanner(file, path).items()
        return
    for line, source in read_lines(path):
        if source.strip(" \t\r"):
            yield line, parse(source, path, line)


def _is_array(path: Path) -> bool:
    with open_bytes(path) as file:
        head = file.read(3).removeprefix(BYTE_ORDER_MARK)
        while not head.strip() and (more := file.read(4096)):
            head = more
    return head.lstrip().startswith(b"[")


def parse(source: str, path: Path, line: int = 1) -> Any:
    """The value of one JSON text that starts on a line of a file; a DataError if it is not valid."""
    return parse_json(source, path, line, JSON_FIX)


class _ArrayScanner:
    """Reads the items of a JSON array, with only the current item and one chunk of the file in memory."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self.file, self.path = file, path
        self.buffer, self.position, self.line, self.ended = "", 0, 1, False

    def items(self) -> Iterator[tuple[int, Any]]:
        """The items of the array with the lines on which they start."""
        self._take("[")
        if self._peek() != "]":
            yield self._item()
            while self._peek() != "]":
                self._take(",")
                yield self._item()
        self._take("]")
        if self._peek():
            self._raise_unexpected("the end of the file")

    def _peek(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            space = _SPACE.match(self.buffer, self.position)
            self._advance(space.end() if space else self.position)
            if self.position < len(self.buffer) or self.ended:
                return self.buffer[self.position : self.position + 1]
            self._fill()

    def _fill(self) -> None:
        # doubling the buffer keeps the total time linear when a long item is parsed again after each read
        rest = self.buffer[self.position :]
        more = self.file.read(max(_CHUNK, len(rest)))
        self.buffer, self.position, self.ended = rest + more, 0, not more

    def _advance(self, position: int) -> None:
        self.line += self.buffer.count("\n", self.position, position)
        self.position = position

    def _take(self, expected: str) -> None:
        if self._peek() != expected:
            self._raise_unexpected(repr(expected))
        self._advance(self.position + 1)

    def _raise_unexpected(self, expected: str) -> NoReturn:
        found = repr(self._peek()) if self._peek() else "the end of the file"
        message = f"this is not valid JSON: expected {expected}, found {found}"
        raise DataError(message, path=self.path, line=self.line, fix=JSON_FIX)

    def _item(self) -> tuple[int, Any]:
        if self._peek() != "{":
            self._raise_unexpected("'{'")
        line = self.line
        while True:
            try:
                value, end = _DECODER.raw_decode(self.buffer, self.position)
                break
            except RecursionError as error:
                raise invalid_json(error, self.path, line, JSON_FIX) from None
            except ValueError as error:
                self._check_unfinished(error, line)
            self._fill()
        source = self.buffer[self.position : end]
        check_json(value, source, self.path, line, JSON_FIX)
        self._advance(end)
        return line, value

    def _check_unfinished(self, error: ValueError, line: int) -> None:
        """Raise an error for an item that is not valid, unless it may be valid with more of the file."""
        if self.ended:
            # positions in `error` count from the start of the buffer, so the item is parsed again by itself
            parse(self.buffer[self.position :], self.path, line)
            raise AssertionError("the item is valid by itself") from error
        if len(self.buffer) - self.position > max_bytes():
            message = f"the object that starts here is damaged, or has more than {max_bytes():,} characters"
            raise too_large(message, self.path, line) from None
