"""Types of columns, found in JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from onoma.errors import DataError
from onoma.scale.columns import ColumnTypes, is_json, to_table, unify
from onoma.scale.rows import open_rows
from tiny_rows import write_lines


def schema_of(path: Path, rows: list[Any]) -> pa.Schema:
    reader = open_rows(str(write_lines(path, rows)), "jsonl", "text")
    types = ColumnTypes(reader)
    list(types.watch(reader.rows()))
    return types.schema()


def test_values_of_one_type_keep_it_and_others_become_json(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "n": 1, "mixed": 1, "list": [1], "nested": {"a": 1}, "empty": {}, "null": None, "big": 10**30},
        {"text": "b", "n": 2.5, "mixed": "x", "list": None, "nested": {"b": "y"}, "later": True},
    ]
    schema = schema_of(tmp_path / "a.jsonl", rows)
    assert schema.field("n").type == pa.float64()
    assert schema.field("list").type == pa.list_(pa.int64())
    assert schema.field("later").type == pa.bool_()
    assert {field.name for field in schema if is_json(field)} == {"mixed", "empty", "big"}
    table = to_table(rows, schema).to_pylist()
    assert [row["mixed"] for row in table] == ["1", "x"]
    assert [row["nested"] for row in table] == [{"a": 1, "b": None}, {"a": None, "b": "y"}]
    assert table[0]["big"] == "1" + "0" * 30
    assert [row["later"] for row in table] == [None, True]


def test_types_are_found_beyond_the_first_thousand_rows(tmp_path: Path) -> None:
    rows = [{"text": "a", "n": 1} for _ in range(2500)] + [{"text": "a", "n": "late"}]
    assert is_json(schema_of(tmp_path / "a.jsonl", rows).field("n"))


def test_objects_with_ever_new_keys_become_json(tmp_path: Path) -> None:
    rows = [{"text": "a", "counts": {f"key {number}": 1}} for number in range(300)]
    assert is_json(schema_of(tmp_path / "a.jsonl", rows).field("counts"))


def test_files_with_other_columns_have_one_schema() -> None:
    one, other = pa.schema({"text": pa.string(), "n": pa.int64()}), pa.schema({"text": pa.string(), "m": pa.int8()})
    assert unify([one, other], ["a", "b"]).names == ["text", "n", "m"]
    with pytest.raises(DataError, match="'n'"):
        unify([one, pa.schema({"n": pa.string()})], ["a", "b"])
