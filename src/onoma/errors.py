"""Errors that say what is wrong and what to change."""

from __future__ import annotations

from os import PathLike


class OnomaError(ValueError):
    """Bad input or use. The command line prints its message and exits with 2."""


class DataError(OnomaError):
    """A file that cannot be read or written: where, what is wrong, and how to fix it.

    >>> raise DataError("the mention ends before it starts", path="a.jsonl", line=3, fix="swap 'start' and 'end'")
    Traceback (most recent call last):
    onoma.errors.DataError: a.jsonl, line 3: the mention ends before it starts. Fix: swap 'start' and 'end'.
    """

    def __init__(
        self, message: str, *, path: str | PathLike[str] | None = None, line: int | None = None, fix: str = ""
    ) -> None:
        self.message, self.path, self.line, self.fix = message, path, line, fix
        place = ", ".join([str(path)] * (path is not None) + [f"line {line}"] * (line is not None))
        parts = [f"{place}: " * bool(place) + message.rstrip(".") + ".", f"Fix: {fix.rstrip('.')}." * bool(fix)]
        super().__init__(" ".join(filter(None, parts)))


class TooLargeError(DataError):
    """A file that would take too much memory, such as a decompression bomb."""
