"""JSON and YAML files: whatever is wrong with them is one DataError, found in bounded time and memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma import structured
from onoma.errors import DataError
from onoma.structured import MAX_DEPTH, compose_yaml, parse_yaml, read_json, read_yaml

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_json_and_yaml_are_read_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("values") / "value"
    path.write_text(json.dumps(value), "utf-8")
    assert read_json(path, "") == value
    path.write_text(yaml.safe_dump(value, allow_unicode=True), "utf-8")
    assert read_yaml(path) == yaml.safe_load(path.read_text("utf-8"))


@settings(max_examples=300)
@given(st.text(alphabet=list("ab1:-?&*!|>{}[],#'\"\n \t<~."), max_size=40))
def test_any_text_is_read_as_pyyaml_reads_it_or_refused(text: str) -> None:
    try:
        value = parse_yaml(text)
    except DataError:
        return
    assert repr(value) == repr(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def test_strings_stay_strings_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("no: 3\n1984: [yes, 2001-01-01]\nempty:\n")
    assert read_yaml(tmp_path / "a.yaml", strings=True) == {"no": "3", "1984": ["yes", "2001-01-01"], "empty": ""}
    assert read_yaml(tmp_path / "a.yaml")[False] == 3


def test_an_empty_file_has_no_value(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n")
    assert read_yaml(tmp_path / "a.yaml") is None
    assert compose_yaml(tmp_path / "a.yaml") is None


def test_aliases_and_merges_work(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]\n")
    assert read_yaml(tmp_path / "a.yaml") == {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": [{"x": 1}, {"x": 1}]}


def bomb(first: str, line: str, levels: int = 30) -> str:
    """Lines of which each one doubles the one before."""
    return "\n".join([f"a0: &a0 {first}", *(line.format(here=n, before=n - 1) for n in range(1, levels))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 40_000, rf"line 1: lists and mappings are nested more than {MAX_DEPTH} levels deep"),
        ("{a: " * 40_000, "nested more than"),
        ("- " * 40_000, "nested more than"),
        ("\n".join(" " * n + "a:" for n in range(500)), "line 65: .*nested more than"),
        (bomb("[x, x]", "a{here}: &a{here} [*a{before}, *a{before}]"), "more than 1,000,000 values.*aliases"),
        (bomb("{k: v}", "a{here}: &a{here} {{<<: [*a{before}, *a{before}]}}"), "more than 1,000,000 values"),
        (bomb("[x]", "a{here}: &a{here} [*a{before}]", 200), "nested more than"),
        ("a: &a [1, *a]", "contains itself"),
        ("a: 1\nb: {c: 1, d: 2, c: 3}", "line 2: the key 'c' is given twice. Fix: .*line 2"),
        ("a: " + ":".join("1" * 60), "a number is too long"),
        ("a: " + "1" * 5000, "a number is too long"),
        ("a: !!int x", "not valid YAML"),
        ("a: !!bool x", "not valid YAML"),
        ("a: !!timestamp x", "not valid YAML"),
        ("a: 2001-99-99", "not valid YAML"),
        ("a: !!python/object:os.system x", "not valid YAML"),
        ("? [a]\n: b", "not valid YAML"),
        ("a: *b", "line 1: this is not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("a: \x07", "not valid YAML"),
    ],
)
def test_bad_yaml_is_one_error_with_a_fix(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, "utf-8")
    tracemalloc.start()
    with pytest.raises(DataError, match=message) as caught:
        read_yaml(path)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    assert caught.value.path == path
    assert caught.value.fix


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * 65 + "]" * 65,
        '{"a": ' * 500 + "1" + "}" * 500,
        '{"a": ' + "1" * 5000 + "}",
        "[1,]",
    ],
)
def test_bad_json_is_one_error_with_the_fix(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(DataError, match="Fix: copy it again") as caught:
        read_json(path, "copy it again")
    assert caught.value.path == path


def test_an_unpaired_surrogate_in_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('"\\ud83d"')
    with pytest.raises(DataError, match=r"unpaired surrogate.*Fix: correct or remove the escape"):
        read_json(tmp_path / "a.json", "copy it again")


def test_json_may_be_nested_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 64 + "]" * 64)
    assert read_json(tmp_path / "a.json", "")


@pytest.mark.parametrize("read", [read_yaml, compose_yaml, lambda path: read_json(path, "")])
def test_large_files_and_pipes_are_refused(
    tmp_path: Path, read: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.setattr(structured, "MAX_CHARACTERS", 1000)
    (tmp_path / "large").write_text(" " * 1001)
    with pytest.raises(DataError, match="more than 1,000 characters"):
        read(tmp_path / "large")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="a pipe or a device"):
        read(tmp_path / "pipe")
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "missing")
