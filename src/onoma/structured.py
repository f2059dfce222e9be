"""JSON and YAML files of settings, types and metadata, read safely.

Size, nesting and the growth by YAML aliases are bounded, keys may not be repeated, and whatever is wrong becomes one
DataError. Nesting is checked before values are built: the YAML library for C overflows its stack, and Python its
recursion limit, on a text of nothing but brackets.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from onoma.errors import DataError
from onoma.files import open_text

if TYPE_CHECKING:
    from yaml import Node

    AnyPath = str | os.PathLike[str]

MAX_CHARACTERS = 1 << 25
MAX_DEPTH = 64
"""Lists and mappings inside each other."""
MAX_NODES = 1_000_000
"""Values of a YAML file, those behind aliases counted every time they are used."""
MAX_NUMBER_LENGTH = 100

YAML_FIX = "check indentation, colons and quotes there"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_DEEP = f"lists and mappings are nested more than {MAX_DEPTH} levels deep"


def read_json(path: AnyPath, fix: str) -> Any:
    """The value of a JSON file; `fix` says what to do if it is damaged."""
    return parse_json(_read(path), path, fix=fix)


def parse_json(source: str, path: AnyPath, line: int = 1, fix: str = "") -> Any:
    """The value of one JSON text that starts on a line of a file; a DataError if it is not valid."""
    try:
        value = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise invalid_json(error, path, line, fix) from None
    check_json(value, source, path, line, fix)
    return value


def invalid_json(error: Exception, path: AnyPath, line: int, fix: str) -> DataError:
    """The error for a text that starts on a line of a file and for which `json` has raised `error`."""
    if isinstance(error, json.JSONDecodeError):
        line += error.lineno - 1
        message = f"this is not valid JSON at character {error.colno} of the line ({error.msg})"
    elif isinstance(error, RecursionError):
        message = _TOO_DEEP
    else:  # a number with thousands of digits
        message = f"this is not valid JSON ({error})"
    return DataError(message, path=path, line=line, fix=fix)


def check_json(value: Any, source: str, path: AnyPath, line: int, fix: str) -> None:
    r"""Refuse values that are nested too deeply, and unpaired surrogates such as "\ud83d", which are not characters."""
    if source.count("[") + source.count("{") > MAX_DEPTH and _is_deep(value):
        raise DataError(_TOO_DEEP, path=path, line=line, fix=fix)
    if not _SURROGATE.search(source):
        return
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        message = "a \\u escape is an unpaired surrogate, which is not a character"
        raise DataError(message, path=path, line=line, fix="correct or remove the escape") from None


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def read_yaml(path: AnyPath, *, strings: bool = False) -> Any:
    """The value of a YAML file; with `strings`, numbers, dates and words such as "no" stay strings."""
    return parse_yaml(_read(path), path, strings=strings)


def parse_yaml(source: str, path: AnyPath | None = None, *, strings: bool = False) -> Any:
    """The value of a YAML text; `path` is for error messages."""
    import yaml

    node = _compose(source, path)
    if node is None:
        return None
    loader = (yaml.BaseLoader if strings else yaml.SafeLoader)("")
    try:
        with _yaml_errors(path):
            return loader.construct_document(node)
    finally:
        loader.dispose()


def compose_yaml(path: AnyPath) -> Node | None:
    """The nodes of a YAML file: unlike values, they have line numbers, and all of them are strings."""
    return _compose(_read(path), path)


def _read(path: AnyPath) -> str:
    with open_text(path) as file:
        source = file.read(MAX_CHARACTERS + 1)
    if len(source) > MAX_CHARACTERS:
        message = f"the file has more than {MAX_CHARACTERS:,} characters"
        raise DataError(message, path=path, fix="give a file of settings, or split it")
    return source


def _compose(source: str, path: AnyPath | None) -> Node | None:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with _yaml_errors(path):
        _check_nesting(source, loader, path)
        node: Node | None = yaml.compose(source, Loader=loader)
    if node is not None:
        _NodeCheck(path).visit(node)
    return node


@contextmanager
def _yaml_errors(path: AnyPath | None) -> Iterator[None]:
    import yaml

    try:
        yield
    except DataError:
        raise
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise DataError(f"this is not valid YAML ({error.problem})", path=path, line=line, fix=YAML_FIX) from None
    except Exception as error:  # an explicit tag, as in `!!int x`, makes the library raise almost anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"this is not valid YAML ({reason})", path=path, fix="correct or quote the value") from None


def _check_nesting(source: str, loader: Any, path: AnyPath | None) -> None:
    """Check nesting while the text is parsed, before anything is built from it."""
    from yaml import CollectionEndEvent, CollectionStartEvent, parse

    depth = 0
    for event in parse(source, Loader=loader):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise DataError(_TOO_DEEP, path=path, line=event.start_mark.line + 1, fix="write fewer levels")


class _Extent(NamedTuple):
    """How many values a node has, itself included, and on how many levels."""

    values: int
    depth: int


class _NodeCheck:
    """Refuses repeated keys, long numbers, and aliases that make values too many, too deep, or endless."""

    def __init__(self, path: AnyPath | None) -> None:
        self.path = path
        self.extents: dict[int, _Extent | None] = {}  # None: not finished

    def visit(self, node: Node) -> _Extent:
        """Check a node and all below it. An alias stands for a node that was visited before."""
        if isinstance(node.value, str):
            self._check_scalar(node)
            return _Extent(1, 0)
        if id(node) not in self.extents:
            self.extents[id(node)] = None
            self.extents[id(node)] = self._visit_below(node)
        extent = self.extents[id(node)]
        if extent is None:
            raise self._error(node, "a value contains itself through an alias", "remove the alias")
        return extent

    def _visit_below(self, node: Node) -> _Extent:
        parts = node.value
        if parts and isinstance(parts[0], tuple):
            self._check_keys(node)
            parts = [part for pair in parts for part in pair]
        below = [self.visit(part) for part in parts]
        extent = _Extent(1 + sum(one.values for one in below), 1 + max((one.depth for one in below), default=0))
        if extent.values > MAX_NODES:
            raise self._error(node, f"there are more than {MAX_NODES:,} values", "use fewer aliases, or split the file")
        if extent.depth > MAX_DEPTH:
            raise self._error(node, _TOO_DEEP, "use fewer aliases")
        return extent

    def _check_keys(self, node: Node) -> None:
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key.value, str):
                continue
            name = key.tag, key.value
            if name in lines:
                message = f"the key {key.value!r:.80} is given twice"
                raise self._error(key, message, f"keep one of them (the first is in line {lines[name]})")
            lines[name] = key.start_mark.line + 1

    def _check_scalar(self, node: Node) -> None:
        if len(node.value) > MAX_NUMBER_LENGTH and node.tag.endswith((":int", ":float")):
            raise self._error(node, "a number is too long", "put it in quotes if it is a text")

    def _error(self, node: Node, message: str, fix: str) -> DataError:
        return DataError(message, path=self.path, line=node.start_mark.line + 1, fix=fix)
